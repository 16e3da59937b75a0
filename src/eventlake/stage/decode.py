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
    """Batches of lines in order, lines of more than `max_line` bytes as TooLarge, Damage last.

    Holds one batch and never more of a line than `max_line` and a batch. The last line counts
    without a line feed too, unless the archive is damaged: then it belongs to the damage.

    >>> for batch in lines([b"a\\nbcde\\nf"], max_line=3):
    ...     print(batch)
    Lines(first=1, lines=[b'a'])
    TooLarge(number=2, size=4, prefix=b'bcde')
    Lines(first=3, lines=[b'f'])
    """
    number = 1
    parts: list[bytes] = []
    fresh = 0
    too_large: TooLarge | None = None
    damage: Damage | None = None
    for piece in pieces:
        if isinstance(piece, Damage):
            damage = piece
            break
        if too_large:
            ends = piece.find(b"\n")
            too_large = _longer(too_large, len(piece) if ends < 0 else ends)
            if ends < 0:
                continue
            yield too_large
            too_large, number = None, number + 1
            parts.append(piece[ends + 1 :])
        else:
            parts.append(piece)
        fresh += len(piece)
        if fresh < _BATCH_BYTES:
            continue
        split = b"".join(parts).split(b"\n")
        rest = split.pop()
        yield from _batches(number, split, max_line)
        number += len(split)
        if len(rest) > max_line:
            too_large = TooLarge(number, len(rest), rest[:PREFIX_BYTES])
            rest = b""
        parts, fresh = [rest], 0
    split = b"".join(parts).split(b"\n")
    rest = split.pop()
    if rest and (not damage or damage.whole):
        split.append(rest)
        rest = b""
    yield from _batches(number, split, max_line)
    if too_large and (not damage or damage.whole):
        yield too_large
        number, too_large = number + 1, None
    if damage:
        fragment = too_large.prefix if too_large else rest[:PREFIX_BYTES]
        yield replace(damage, line=number + len(split), fragment=fragment)


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
