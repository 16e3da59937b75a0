"""zstd in bounded memory: several frames, skippable ones included.

The frame is fed block by block (a block inflates to at most 128 KiB), so neither a bomb nor damage
can make one call produce, or lose, more than that.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import zstandard

from eventlake.stage.pieces import Damage, Feed

MAGIC = b"\x28\xb5\x2f\xfd"
# RFC 8878: 0x184D2A50 to 0x184D2A5F, little-endian, then four bytes of size.
_SKIPPABLE_REST = b"\x2a\x4d\x18"
_HEADER_BYTES = 18
_BLOCK_BYTES = 128 << 10
# What `zstd --long` and every tool's default can need; more would be memory the archive dictates.
_WINDOW_BYTES = 128 << 20

_ENDS_EARLY = "the zstd stream ends early"


def is_zstd(head: bytes) -> bool:
    """Whether these first four bytes begin a zstd frame, a skippable one included."""
    return head == MAGIC or (head[1:] == _SKIPPABLE_REST and head[0] >> 4 == 5)


def unzstd(feed: Feed) -> Iterator[bytes | Damage]:
    """The decompressed pieces of all frames; a Damage, if any, comes last."""
    while head := feed.peek(4):
        if head == MAGIC:
            damage = yield from _frame(feed)
        elif len(head) == 4 and is_zstd(head):
            damage = _skip(feed)
        elif MAGIC.startswith(head):
            damage = Damage(feed.offset, _ENDS_EARLY)
        else:
            reason = "what follows the last zstd frame is not zstd"
            damage = Damage(feed.offset, reason, whole=True)
        if damage:
            yield damage
            return


def _frame(feed: Feed) -> Generator[bytes, None, Damage | None]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).decompressobj()
    at = feed.offset
    header = feed.peek(_HEADER_BYTES)
    try:
        checksum_bytes = 4 if zstandard.get_frame_parameters(header).has_checksum else 0
        decompressor.decompress(feed.take(zstandard.frame_header_size(header)))
        last = False
        while not last:
            at = feed.offset
            mark = int.from_bytes(feed.peek(3), "little")
            last, kind, size = bool(mark & 1), mark >> 1 & 3, mark >> 3
            if size > _BLOCK_BYTES:
                return Damage(at, "zstd: a block is larger than the format allows")
            # A block of kind 1 is one byte, repeated.
            wanted = 3 + (1 if kind == 1 else size)
            block = feed.take(wanted)
            if len(block) < wanted:
                return Damage(at, _ENDS_EARLY)
            piece = decompressor.decompress(block)
            if piece:
                yield piece
        at = feed.offset
        checksum = feed.take(checksum_bytes)
        if len(checksum) < checksum_bytes:
            return Damage(at, _ENDS_EARLY)
        if checksum:
            decompressor.decompress(checksum)
    except zstandard.ZstdError as error:
        short = feed.offset == at and len(header) < _HEADER_BYTES
        return Damage(at, _ENDS_EARLY if short else f"zstd: {error}")
    return None


def _skip(feed: Feed) -> Damage | None:
    at = feed.offset
    header = feed.take(8)
    left = int.from_bytes(header[4:], "little")
    while len(header) == 8 and left and (part := feed.some(min(left, _BLOCK_BYTES))):
        left -= len(part)
    return Damage(at, _ENDS_EARLY) if left or len(header) < 8 else None
