"""gzip in bounded memory, several members and trailing zeros included, as `gzip -d` reads it."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from typing import cast

from isal import igzip_lib

from eventlake.stage.pieces import PIECE_BYTES, Damage, Feed

MAGIC = b"\x1f\x8b"
_FEED_BYTES = 256 << 10
# isal's stubs declare the class as an instance.
_GzipError = cast("type[Exception]", igzip_lib.IsalError)
# isal drops the output of the call in which it finds damage. So much compressed input of a member
# is kept to read its end once more with zlib, which stops at the very byte; archives are smaller.
_KEPT_BYTES = 32 << 20

_ENDS_EARLY = "the gzip stream ends early"


def gunzip(feed: Feed) -> Iterator[bytes | Damage]:
    """The decompressed pieces of all members; a Damage, if any, comes last."""
    while True:
        damage = yield from _member(feed)
        if damage:
            yield damage
            return
        _skip_zeros(feed)
        following = feed.peek(2)
        if not following:
            return
        if following != MAGIC:
            yield Damage(feed.offset, "what follows the last gzip member is not gzip", whole=True)
            return


def _member(feed: Feed) -> Generator[bytes, None, Damage | None]:
    start = feed.offset
    decompressor = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    kept: list[bytes] = []
    given = 0
    while not decompressor.eof:
        block = feed.some(_FEED_BYTES) if decompressor.needs_input else b""
        ended = not block and decompressor.needs_input
        if block and feed.offset - start <= _KEPT_BYTES:
            kept.append(block)
        elif block:
            kept.clear()
        try:
            piece = b"" if ended else decompressor.decompress(block, PIECE_BYTES)
        except _GzipError as error:
            read_to = yield from _salvage(kept, given)
            return Damage(start + read_to if kept else feed.offset, f"gzip: {error}")
        if ended:
            yield from _salvage(kept, given)
            return Damage(feed.offset, "the gzip stream ends early")
        given += len(piece)
        if piece:
            yield piece
    feed.give_back(decompressor.unused_data)
    return None


def _salvage(kept: list[bytes], given: int) -> Generator[bytes, None, int]:
    """What zlib can read after the first `given` bytes; returns where in `kept` it had to stop."""
    decompressor = zlib.decompressobj(wbits=31)
    step, produced, offset = PIECE_BYTES, 0, 0
    for block in kept:
        offset += len(block)
        data, piece = block, b"?"
        while (data or piece) and not decompressor.eof:
            before = decompressor.copy()
            try:
                piece = decompressor.decompress(data[:1] if step == 1 else data, step)
            except zlib.error:
                if step == 1:
                    return offset - len(data)
                # The output of a failed call is lost, so come closer in smaller steps.
                decompressor, step = before, max(1, step // 16)
                continue
            data = decompressor.unconsumed_tail + (data[1:] if step == 1 else b"")
            produced += len(piece)
            fresh = piece[-(produced - given) :] if produced > given else b""
            if fresh:
                yield fresh
    return offset


def _skip_zeros(feed: Feed) -> None:
    """Tape blocks and some uploaders pad archives with zeros; gzip ignores them."""
    while block := feed.some(_FEED_BYTES):
        rest = block.lstrip(b"\0")
        if rest:
            feed.give_back(rest)
            return
