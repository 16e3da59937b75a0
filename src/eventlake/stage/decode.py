"""Bytes of an archive → decompressed pieces → batches of lines, in bounded memory.

Does not parse lines, skip blank ones or strip a carriage return: the JSON parser's work. Damage is
a value that comes last, after everything that could be read before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from eventlake.stage import gunzip, unzstd
from eventlake.stage.pieces import PIECE_BYTES, Damage, Feed

__all__ = ["Damage", "Lines", "TooLarge", "chunks", "lines"]

# Batches that still fit a core's cache: parsing larger ones costs 1.5 to 2 times as much.
_BATCH_BYTES = 4 << 20
_BATCH_LINES = 4096
# What is kept of a line that is too large or torn: enough to recognise it in a report.
PREFIX_BYTES = 1024


class Lines(NamedTuple):
    """Consecutive lines without their line feeds; `first` is the number of the first, from 1."""

    first: int
    lines: list[bytes]


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A line that is longer than allowed: its number, its size and how it begins."""

    number: int
    size: int
    prefix: bytes


def chunks(blocks: Iterable[bytes | memoryview]) -> Iterator[bytes | Damage]:
    """The decompressed bytes, in pieces of at most 256 KiB; what to inflate is told by its magic.

    >>> b"".join(chunks([b'{"a"', b":1}"]))
    b'{"a":1}'
    """
    feed = Feed(blocks)
    head = feed.peek(4)
    if head[:2] == gunzip.MAGIC:
        return gunzip.gunzip(feed)
    if unzstd.is_zstd(head):
        return unzstd.unzstd(feed)
    return iter(lambda: feed.some(PIECE_BYTES), b"")


def lines(pieces: Iterable[bytes | Damage], max_line: int) -> Iterator[Lines | TooLarge | Damage]:
    r"""Batches of lines in order, lines of more than `max_line` bytes as TooLarge, Damage last.

    Holds one batch and never more of a line than `max_line` and a batch. The last line counts
    without a line feed too, unless the archive is damaged: then it belongs to the damage.

    >>> for batch in lines([b"a\nbcde\nf"], max_line=3):
    ...     print(batch)
    Lines(first=1, lines=[b'a'])
    TooLarge(number=2, size=4, prefix=b'bcde')
    Lines(first=3, lines=[b'f'])
    """
    splitter = _Splitter(max_line)
    damage: Damage | None = None
    for piece in pieces:
        if isinstance(piece, Damage):
            damage = piece
            break
        yield from splitter.add(piece)
    fragment = b""
    if damage and not damage.whole:
        yield from splitter.split()
        fragment = splitter.torn()
    else:
        yield from splitter.end()
    if damage:
        yield replace(damage, line=splitter.number, fragment=fragment)


class _Splitter:
    """Where the splitting of a stream into lines stands."""

    __slots__ = ("_fresh", "_max_line", "_parts", "_too_large", "number")

    def __init__(self, max_line: int) -> None:
        self.number = 1
        self._max_line = max_line
        self._parts: list[bytes] = []
        self._fresh = 0
        self._too_large: TooLarge | None = None

    def add(self, piece: bytes) -> Iterator[Lines | TooLarge]:
        """Takes a piece; gives a batch when there is enough for one."""
        if self._too_large:
            ends = piece.find(b"\n")
            self._too_large = _longer(self._too_large, len(piece) if ends < 0 else ends)
            if ends < 0:
                return
            yield from self.end()
            piece = piece[ends + 1 :]
        if self._at_line_start and not piece.strip(b"\n"):
            # a bomb of line feeds must not cost what as many events do
            yield from self.split()
            self.number += len(piece)
            return
        self._parts.append(piece)
        self._fresh += len(piece)
        if self._fresh >= _BATCH_BYTES:
            yield from self.split()

    @property
    def _at_line_start(self) -> bool:
        last = next((part for part in reversed(self._parts) if part), b"\n")
        return last.endswith(b"\n")

    def split(self, *, ended: bool = False) -> Iterator[Lines | TooLarge]:
        """Every line that has ended; of one that is too large already, only the beginning stays."""
        split = b"".join(self._parts).split(b"\n")
        rest = split.pop()
        if ended and rest:
            split.append(rest)
            rest = b""
        first, self.number = self.number, self.number + len(split)
        if len(rest) > self._max_line:
            self._too_large = TooLarge(self.number, len(rest), rest[:PREFIX_BYTES])
            rest = b""
        self._parts, self._fresh = [rest], 0
        yield from _batches(first, split, self._max_line)

    def end(self) -> Iterator[Lines | TooLarge]:
        """Everything left; what has no line feed is a line too."""
        if self._too_large:
            yield self._too_large
            self._too_large = None
            self.number += 1
        else:
            yield from self.split(ended=True)

    def torn(self) -> bytes:
        """The beginning of the line that has not ended."""
        return self._too_large.prefix if self._too_large else b"".join(self._parts)[:PREFIX_BYTES]


def _longer(line: TooLarge, by: int) -> TooLarge:
    return TooLarge(line.number, line.size + by, line.prefix)


def _batches(first: int, split: list[bytes], max_line: int) -> Iterator[Lines | TooLarge]:
    if not split:
        return
    if max(map(len, split)) <= max_line:
        for at in range(0, len(split), _BATCH_LINES):
            yield Lines(first + at, split[at : at + _BATCH_LINES])
        return
    done = 0
    for at, line in enumerate(split):
        if len(line) > max_line:
            yield from _batches(first + done, split[done:at], max_line)
            yield TooLarge(first + at, len(line), line[:PREFIX_BYTES])
            done = at + 1
    yield from _batches(first + done, split[done:], max_line)
