"""A stream of decompressed pieces → objects cut at line ends, each named by its content.

Every byte of the stream ends up in exactly one object, in order. Where the cuts fall depends on
the content and the target size only, so the same content always gives the same objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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
    """The object being written: hash, compressor and file go on together, a torn end held back."""

    def __init__(self, compression: str) -> None:
        self._hash = blake2b(digest_size=16)
        self._compressor: _Compressor = (
            isal_zlib.compressobj(_GZIP_LEVEL, wbits=31)
            if compression == "gz"
            else zstandard.ZstdCompressor(_ZSTD_LEVEL, write_checksum=True).compressobj()
        )
        self._file = SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115  # see discard()
        self._handed_on = False
        self._held: list[bytes] = []
        self._lines = 0
        self._ends_whole = True
        self.size = 0

    def write(self, data: bytes) -> None:
        """Adds bytes; those after the last line feed may still turn out to be torn."""
        self.size += len(data)
        whole = data.rfind(b"\n") + 1
        if whole:
            self._keep(data[:whole])
        if whole < len(data):
            self._held.append(data[whole:])
            if sum(map(len, self._held)) > _TORN_BYTES:
                self._keep(b"")

    def torn(self) -> bytes:
        """Takes out what follows the last line feed."""
        torn = b"".join(self._held)
        self._held.clear()
        self.size -= len(torn)
        return torn

    def close(self) -> Cut:
        """Ends the object; what was held back is part of it."""
        self._keep(b"")
        self._file.write(self._compressor.flush())
        size = self._file.tell()
        self._file.seek(0)
        lines = self._lines + (not self._ends_whole)
        self._handed_on = True
        return Cut(self._hash.hexdigest(), self._file, size, self.size, lines)

    def discard(self) -> None:
        """Drops an object that was not closed; a closed one belongs to whoever has its Cut."""
        if not self._handed_on:
            self._file.close()

    def _keep(self, data: bytes) -> None:
        data = b"".join([*self._held, data])
        self._held.clear()
        if data:
            self._hash.update(data)
            self._file.write(self._compressor.compress(data))
            self._lines += data.count(b"\n")
            self._ends_whole = data.endswith(b"\n")


def cuts(
    pieces: Iterable[bytes | Damage], cut_bytes: int, compression: str
) -> Iterator[Cut | Damage]:
    """The objects of a stream: each ends with the first line that takes it to `cut_bytes`.

    Of a damaged stream the torn last line is not staged; it comes with the Damage, at the end.
    """
    current = _Object(compression)
    lines = 0
    damage: Damage | None = None
    try:
        for piece in pieces:
            if isinstance(piece, Damage):
                torn = b"" if piece.whole else current.torn()
                damage = replace(piece, fragment=torn[:_FRAGMENT_BYTES])
                break
            at = 0
            while end := _cut_at(piece, at, cut_bytes - current.size):
                current.write(piece[at:end])
                cut = current.close()
                yield cut
                lines += cut.lines
                current, at = _Object(compression), end
            current.write(piece[at:])
        if current.size:
            cut = current.close()
            yield cut
            lines += cut.lines
    finally:
        current.discard()
    if damage:
        yield replace(damage, line=lines + 1)


def _cut_at(piece: bytes, at: int, wanted: int) -> int:
    """The end of the first line in `piece[at:]` that ends `wanted` bytes on or later, or 0."""
    return piece.find(b"\n", at + max(0, wanted - 1)) + 1
