"""What the decompressors share: a feed of compressed bytes, and damage as a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# Decompressed bytes come in pieces of at most this, whatever the archive claims to hold.
PIECE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Damage:
    """Where an archive stops being readable, and why.

    `offset` counts the bytes of the archive as it is stored. `line` is the number of the first
    line that was not read whole, `fragment` the beginning of what was read of it. `whole` says that
    the content before ended well (its checksum holds), so its last line is a line.
    """

    offset: int
    reason: str
    line: int = 0
    fragment: bytes = b""
    whole: bool = False


class Feed:
    """Compressed bytes in blocks of any size, taken in sizes the decompressor chooses."""

    __slots__ = ("_at", "_block", "_blocks", "offset")

    def __init__(self, blocks: Iterable[bytes | memoryview]) -> None:
        self._blocks = iter(blocks)
        self._block = memoryview(b"")
        self._at = 0
        self.offset = 0

    def some(self, most: int) -> bytes:
        """The next bytes, at least one and at most `most`; empty only at the end."""
        while self._at == len(self._block):
            block = next(self._blocks, None)
            if block is None:
                return b""
            self._block, self._at = memoryview(block).cast("B"), 0
        taken = self._block[self._at : self._at + most]
        self._at += len(taken)
        self.offset += len(taken)
        return bytes(taken)

    def take(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer only at the end."""
        taken = self.some(size)
        if len(taken) == size or not taken:
            return taken
        parts, missing = [taken], size - len(taken)
        while missing and (part := self.some(missing)):
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, left where they are; fewer only at the end."""
        taken = self.take(size)
        self.give_back(taken)
        return taken

    def give_back(self, data: bytes) -> None:
        """Puts bytes that were taken last in front again."""
        if not data:
            return
        self.offset -= len(data)
        if self._at >= len(data):
            self._at -= len(data)
            return
        self._block = memoryview(data + bytes(self._block[self._at :]))
        self._at = 0
