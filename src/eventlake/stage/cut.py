"""A stream of decompressed pieces → objects cut at line ends, each named by its content.

Every byte of the stream ends up in exactly one object, in order. Where the cuts fall depends on
the content and the target size only, so the same content always gives the same objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from typing import IO, Protocol

import zstandard
from isal import isal_zlib

from eventlake.stage.pieces import Damage

# Above this a compressed object waits on disk: lines can be of any length, memory cannot.
_MEMORY_BYTES = 16 << 20
# A torn last line is held back up to this; no event is larger, so what is longer is staged.
_TORN_BYTES = 4 << 20
_FRAGMENT_BYTES = 1024
_GZIP_LEVEL, _ZSTD_LEVEL = 2, 3


@dataclass(frozen=True, slots=True)
class Cut:
    """One object, compressed in `file` and ready to be stored under the digest of its content."""

    digest: str
    file: IO[bytes]
    size: int
    raw_size: int
    lines: int


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class _Object:
    """The object being written: hash, compressor and file go on together."""

    def __init__(self, compression: str) -> None:
        self._hash = blake2b(digest_size=16)
        self._compressor: _Compressor = (
            isal_zlib.compressobj(_GZIP_LEVEL, wbits=31)
            if compression == "gz"
            else zstandard.ZstdCompressor(_ZSTD_LEVEL, write_checksum=True).compressobj()
        )
        self._file = SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115  # the Cut owns it
        self.raw_size = 0
        self._line_feeds = 0
        self._last = b""

    def write(self, data: bytes) -> None:
        if not data:
            return
        self._hash.update(data)
        self._file.write(self._compressor.compress(data))
        self.raw_size += len(data)
        self._line_feeds += data.count(b"\n")
        self._last = data[-1:]

    def close(self) -> Cut:
        self._file.write(self._compressor.flush())
        size = self._file.tell()
        self._file.seek(0)
        lines = self._line_feeds + (self._last != b"\n")
        return Cut(self._hash.hexdigest(), self._file, size, self.raw_size, lines)


def cuts(
    pieces: Iterable[bytes | Damage], cut_bytes: int, compression: str
) -> Iterator[Cut | Damage]:
    """The objects of a stream: each ends with the first line that takes it to `cut_bytes`.

    Of a damaged stream the torn last line is not staged; it comes with the Damage, at the end.
    """
    current = _Object(compression)
    line = 1
    held: list[bytes] = []
    held_bytes = 0
    for piece in pieces:
        if isinstance(piece, Damage):
            torn = b"".join(held)
            if piece.whole:
                current.write(torn)
            if current.raw_size:
                cut = current.close()
                yield cut
                line += cut.lines
            yield Damage(piece.offset, piece.reason, line, torn[:_FRAGMENT_BYTES], piece.whole)
            return
        at = 0
        while (end := _cut_at(piece, at, cut_bytes - current.raw_size - held_bytes)) >= 0:
            current.write(b"".join([*held, piece[at:end]]))
            held, held_bytes, at = [], 0, end
            cut = current.close()
            yield cut
            line += cut.lines
            current = _Object(compression)
        whole = piece.rfind(b"\n", at) + 1
        if whole > at:
            current.write(b"".join([*held, piece[at:whole]]))
            held, held_bytes, at = [], 0, whole
        held.append(piece[at:])
        held_bytes += len(piece) - at
        if held_bytes > _TORN_BYTES:
            current.write(b"".join(held))
            held, held_bytes = [], 0
    current.write(b"".join(held))
    if current.raw_size:
        yield current.close()


def _cut_at(piece: bytes, at: int, wanted: int) -> int:
    """The end of the first line in `piece[at:]` that ends `wanted` bytes on or later, or -1."""
    return piece.find(b"\n", at + max(0, wanted - 1)) + 1 or -1
