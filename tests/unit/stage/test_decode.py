"""Archives → pieces → lines: nothing lost, nothing held whole, damage as a value at the end."""

import random
import tracemalloc
from collections.abc import Iterator

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from archives import events, gz, readable, zst
from eventlake.stage.decode import Damage, Lines, TooLarge, chunks, lines

DATA = events(3000)
SKIPPABLE = b"\x5f\x2a\x4d\x18\x05\0\0\0hello"


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def decoded(archive: bytes, block: int = 1 << 20) -> tuple[bytes, list[Damage]]:
    pieces = list(chunks(blocks(archive, block)))
    assert not any(isinstance(piece, Damage) for piece in pieces[:-1])
    good = [piece for piece in pieces if isinstance(piece, bytes)]
    return b"".join(good), [piece for piece in pieces if isinstance(piece, Damage)]


def split(archive: bytes, max_line: int = 1 << 20) -> list[tuple[int, bytes | TooLarge] | Damage]:
    """Every line with its number, as `lines` reports them."""
    found: list[tuple[int, bytes | TooLarge] | Damage] = []
    for batch in lines(chunks([archive]), max_line):
        if isinstance(batch, Lines):
            found += list(enumerate(batch.lines, batch.first))
        elif isinstance(batch, TooLarge):
            found.append((batch.number, batch))
        else:
            found.append(batch)
    return found


@pytest.mark.parametrize("block", [1, 777, 1 << 20])
@pytest.mark.parametrize(
    "archive",
    [
        DATA,
        gz(DATA),
        gz(DATA[:999], b"", DATA[999:]),
        gz(DATA) + b"\0" * 5000,
        zst(DATA),
        zst(DATA[:999], b"", DATA[999:]),
        SKIPPABLE + zst(DATA[:999]) + SKIPPABLE + zst(DATA[999:]),
    ],
    ids=["plain", "gz", "gz members", "gz padded", "zst", "zst frames", "zst skippable"],
)
def test_whole_archives_are_read_whole(archive: bytes, block: int) -> None:
    assert decoded(archive, block) == (DATA, [])


@pytest.mark.parametrize("data", [b"", b"x", b"\n", b"\x1f", b"{}"])
def test_the_shortest_inputs_are_plain(data: bytes) -> None:
    assert decoded(data) == (data, [])


def test_a_truncated_gzip_gives_all_that_can_be_read() -> None:
    archive = gz(DATA)
    for cut in random.Random(1).sample(range(2, len(archive)), 25):
        data, damage = decoded(archive[:cut])
        assert data == readable(archive[:cut])
        assert [d.offset for d in damage] == [cut]
        assert "ends early" in damage[0].reason


def test_a_flipped_bit_in_gzip_loses_nothing_before_it_is_noticed() -> None:
    archive = gz(DATA)
    for at in random.Random(2).sample(range(12, len(archive)), 25):
        flipped = bytearray(archive)
        flipped[at] ^= 1 << at % 8
        data, damage = decoded(bytes(flipped))
        assert data == readable(bytes(flipped))
        assert len(damage) == 1


def test_a_damaged_zstd_gives_every_block_before_the_damage() -> None:
    data = random.Random(3).randbytes(400_000)
    archive = zst(data)
    for cut in range(300, len(archive), 50_000):
        good, damage = decoded(archive[:cut])
        assert data.startswith(good)
        assert len(good) >= cut - 2 * (128 << 10)
        assert len(damage) == 1
    flipped = bytearray(archive)
    flipped[-6] ^= 1
    good, damage = decoded(bytes(flipped))
    assert len(good) == len(data)
    assert "checksum" in damage[0].reason


@pytest.mark.parametrize("archive", [gz(DATA) + b"{}", zst(DATA) + b"{}", gz(DATA) + b"\0x"])
def test_what_follows_an_archive_is_damage_but_its_content_is_whole(archive: bytes) -> None:
    data, damage = decoded(archive)
    assert data == DATA
    assert [d.whole for d in damage] == [True]


@pytest.mark.parametrize(
    "archive",
    [
        b"\x1f\x8b",
        b"\x1f\x8b\x07" + b"x" * 20,
        b"\x28\xb5\x2f\xfd",
        b"\x28\xb5\x2f\xfd" + b"\xff" * 40,
        b"\x50\x2a\x4d\x18\xff\xff",
        zst(DATA) + b"\x28\xb5",
    ],
)
def test_a_broken_head_is_damage(archive: bytes) -> None:
    assert len(decoded(archive)[1]) == 1


@pytest.mark.parametrize(
    "bomb",
    [
        isal_zlib.compress(bytes(200 << 20), 2, wbits=31),
        zstandard.ZstdCompressor(3).compress(bytes(200 << 20)),
    ],
    ids=["gz", "zst"],
)
def test_a_bomb_is_inflated_a_piece_at_a_time(bomb: bytes) -> None:
    total = 0
    for piece in chunks([bomb]):
        assert isinstance(piece, bytes)
        assert len(piece) <= 256 << 10
        total += len(piece)
    assert total == 200 << 20


def test_a_frame_that_asks_for_much_memory_is_refused() -> None:
    wide = zstandard.ZstdCompressionParameters(
        window_log=28, compression_level=1, write_content_size=False
    )
    writer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    data, damage = decoded(writer.compress(DATA) + writer.flush())
    assert data == b""
    assert len(damage) == 1


def test_lines_are_numbered_from_1_and_the_last_needs_no_line_feed() -> None:
    assert split(b"a\n\nb\r\nc") == [(1, b"a"), (2, b""), (3, b"b\r"), (4, b"c")]
    assert split(b"a\n") == [(1, b"a")]
    assert split(b"") == []


def test_batches_are_small_whatever_the_archive() -> None:
    sizes = [len(batch.lines) for batch in lines(chunks([b"{}\n" * 100_000]), 99) if batch]
    assert sum(sizes) == 100_000
    assert max(sizes) <= 4096


def test_a_line_that_is_too_large_is_reported_and_its_neighbours_kept() -> None:
    found = split(gz(b"a\n" + b"x" * 5000 + b"\nb\n" + b"y" * 101 + b"\n" + b"z" * 100), 100)
    assert found == [
        (1, b"a"),
        (2, TooLarge(2, 5000, b"x" * 1024)),
        (3, b"b"),
        (4, TooLarge(4, 101, b"y" * 101)),
        (5, b"z" * 100),
    ]


def test_a_line_of_100_mb_is_never_in_memory() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"first\n"
        for _ in range(400):
            yield b"x" * (256 << 10)
        yield b"\nlast"

    tracemalloc.start()
    found = list(lines(pieces(), 1 << 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[1] == TooLarge(2, 400 * (256 << 10), b"x" * 1024)
    assert found[2] == Lines(3, [b"last"])
    assert peak < 24 << 20


def test_the_torn_last_line_belongs_to_the_damage() -> None:
    archive = gz(DATA)[:-100]
    found = split(archive)
    damage = found.pop()
    whole, _, torn = readable(archive).rpartition(b"\n")
    assert isinstance(damage, Damage)
    assert [line for _, line in found] == whole.split(b"\n")  # type: ignore[misc]  # no Damage left
    assert (damage.line, damage.fragment) == (len(found) + 1, torn[:1024])


def test_damage_in_a_line_that_is_too_large_belongs_to_the_damage() -> None:
    found = split(gz(b"a\n" + random.Random(4).randbytes(9 << 20).replace(b"\n", b""))[:-9], 1000)
    assert found[0] == (1, b"a")
    assert isinstance(found[1], Damage)
    assert (found[1].line, len(found[1].fragment), len(found)) == (2, 1024, 2)


@given(
    st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=30),
    st.integers(1, 40),
    st.integers(0, 20),
)
def test_any_lines_in_any_blocks_come_out_in_order(
    content: list[bytes], block: int, max_line: int
) -> None:
    data = b"\n".join(content)
    want = {number: line for number, line in enumerate(data.split(b"\n"), 1) if line}
    got: dict[int, bytes] = {}
    for batch in lines(blocks(data, block), max_line):
        assert not isinstance(batch, Damage)
        if isinstance(batch, TooLarge):
            assert batch.size > max_line
            numbered = [(batch.number, batch.prefix)]
        else:
            assert max(map(len, batch.lines)) <= max_line
            numbered = list(enumerate(batch.lines, batch.first))
        for number, line in numbered:
            assert number > max(got, default=0)
            got[number] = line
    # blank lines may be left out, but count
    assert {number: line for number, line in got.items() if line} == want
