"""Builders of event lines and of archives, whole and damaged."""

import gzip
import zlib

import zstandard


def events(count: int, start: int = 0) -> bytes:
    """Lines of small events, each with its number."""
    line = '{"type":"track","event":"Order Completed","messageId":"m-%d","properties":{"n":%d}}\n'
    return "".join(line % (n, n) for n in range(start, start + count)).encode()


def gz(*members: bytes) -> bytes:
    """A gzip archive of one member per argument."""
    return b"".join(gzip.compress(member, 6, mtime=0) for member in members)


def zst(*frames: bytes) -> bytes:
    """A zstd archive of one frame with a checksum per argument."""
    return b"".join(zstandard.ZstdCompressor(3, write_checksum=True).compress(f) for f in frames)


def readable(archive: bytes) -> bytes:
    """What zlib, fed byte by byte, reads from a gzip archive before it stops."""
    decompressor = zlib.decompressobj(wbits=31)
    parts: list[bytes] = []
    try:
        for at in range(len(archive)):
            piece = decompressor.decompress(archive[at : at + 1], 1)
            while piece:
                parts.append(piece)
                piece = decompressor.decompress(decompressor.unconsumed_tail, 1)
    except zlib.error:
        pass
    return b"".join(parts)
