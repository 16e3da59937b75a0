"""What a reader has gathered, put together: columns of chunks and pieces become packets.

Joins and cuts arrays; knows nothing of lines, documents or the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from eventlake.sync.columns import CODES, Columns, Rescue, Slot
from eventlake.sync.packets import RECEIVED, RESCUE
from eventlake.sync.parse import Document

# Cells (columns times rows) that are put together at once: 16 million are 128 MB.
MOST_CELLS = 16_000_000
# Rows that a kind must have in a chunk, on average, for its slices to be worth their overhead.
FRAGMENT_ROWS = 32


@dataclass(frozen=True, slots=True)
class Chunk:
    """The shared columns of a batch, and where the rows of each kind are."""

    shared: Columns
    fragments: dict[int, tuple[int, int]]
    received: npt.NDArray[np.int64]
    checks: npt.NDArray[np.uint32]
    first_row: int


@dataclass(slots=True)
class Gathered:
    """Events of a kind whose own columns are not extracted yet, and the columns before them."""

    docs: list[Document] = field(default_factory=list)
    first_rows: list[tuple[int, int]] = field(default_factory=list)
    pieces: list[Columns] = field(default_factory=list)

    def rows(self) -> npt.NDArray[np.int64]:
        """The rows of the bundle that are of this kind, in the order they came."""
        return np.concatenate([np.arange(first, first + count) for first, count in self.first_rows])


def runs(pieces: list[Columns]) -> Iterator[tuple[int, int, dict[tuple[str, Slot], pa.Array]]]:
    """Pieces put together, as many at a time as their columns allow: (first row, end, arrays).

    Ids used as keys make a column per event: all pieces at once would be rows × rows cells.
    """
    start = rows = 0
    names: set[tuple[str, Slot]] = set()
    run: list[Columns] = []
    for piece in pieces:
        wider = names | piece.arrays.keys()
        if run and len(wider) * (rows + piece.rows) > MOST_CELLS // 4:
            yield start, start + rows, joined(run)
            start, rows, run, wider = start + rows, 0, [], set(piece.arrays)
        names = wider
        run.append(piece)
        rows += piece.rows
    yield start, start + rows, joined(run)


def joined(parts: list[Columns]) -> dict[tuple[str, Slot], pa.Array]:
    """The columns of several pieces, one below the other."""
    if len(parts) == 1:
        return parts[0].arrays
    return {
        key: pa.concat_arrays([_of(part, key) for part in parts])
        for key in dict.fromkeys(chain.from_iterable(part.arrays for part in parts))
    }


def _of(part: Columns, key: tuple[str, Slot]) -> pa.Array:
    array = part.arrays.get(key)
    return pa.nulls(part.rows, CODES[key[0]][0]) if array is None else array


def by_kind(chunks: list[Chunk], numbers: list[int]) -> dict[int, dict[tuple[str, Slot], pa.Array]]:
    """The shared columns of each kind, out of the chunks.

    With few fragments their slices are put together; with many (a thousand kinds in each chunk)
    it is cheaper to gather the rows of all kinds at once and cut that.
    """
    keys = dict.fromkeys(chain.from_iterable(chunk.shared.arrays for chunk in chunks))
    found: dict[int, dict[tuple[str, Slot], pa.Array]] = {number: {} for number in numbers}
    fragments = sum(len(chunk.fragments) for chunk in chunks)
    if fragments * FRAGMENT_ROWS <= sum(chunk.shared.rows for chunk in chunks):
        for number in numbers:
            here = [
                (chunk.shared.arrays, chunk.fragments[number])
                for chunk in chunks
                if number in chunk.fragments
            ]
            for key in keys:
                slices = [
                    pa.nulls(end - start, CODES[key[0]][0])
                    if key not in arrays
                    else arrays[key].slice(start, end - start)
                    for arrays, (start, end) in here
                ]
                found[number][key] = pa.concat_arrays(slices)
        return found
    places = {
        number: np.concatenate(
            [
                np.arange(*chunk.fragments[number]) + chunk.first_row
                for chunk in chunks
                if number in chunk.fragments
            ]
        )
        for number in numbers
    }
    order = pa.array(np.concatenate(list(places.values())))
    for key, array in joined([chunk.shared for chunk in chunks]).items():
        gathered, at = array.take(order), 0
        for number in numbers:
            found[number][key] = gathered.slice(at, len(places[number]))
            at += len(places[number])
    return found


def packet_of(
    fields: dict[tuple[str, Slot], pa.Array],
    received: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    rescues: Mapping[int, list[Rescue]],
) -> tuple[pa.RecordBatch, tuple[tuple[str, int], ...]]:
    names, arrays, counts = [RECEIVED], [pa.array(received)], []
    for (code, slot), array in fields.items():
        values = len(array) - array.null_count
        if values:
            name = code + slot.text
            names.append(name)
            arrays.append(array)
            counts.append((name, values))
    if rescues:
        here = [_rescue_text(rescues[row]) if row in rescues else None for row in rows.tolist()]
        if any(here):
            names.append(RESCUE)
            arrays.append(pa.array(here, pa.string()))
    return pa.record_batch(arrays, names), tuple(counts)


def _rescue_text(rescues: list[Rescue]) -> str:
    found: dict[str, dict[str, str]] = {"rescued": {}, "rounded": {}}
    for rescue in rescues:
        found["rounded" if rescue.rounded else "rescued"][rescue.path] = rescue.text
    return orjson.dumps(found).decode()
