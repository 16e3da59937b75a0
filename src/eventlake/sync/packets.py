"""What travels between the steps of a sync, and its form in the store.

A *packet* holds the events of one kind as an Arrow stream, sorted by hour received. A *bundle*
is what a read task had in memory when it wrote: one object of packets and one of message ids.
They live in the run's folder in the lake rather than in Spark's shuffle: a task that only needs
some packets reads only those, and a lost worker loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlake.profiles.profile import Kind

# Columns of a packet: one letter of `columns.CODES` and the path; these two have no path.
RECEIVED = "#received"  # int64 microseconds
RESCUE = "#rescue"  # JSON {"rescued": {path: JSON text}, "rounded": {path: JSON text}}

# A message id's hash, when it was received, what else the line says, and its row in the bundle.
ID_RECORD = np.dtype(
    [("hi", ">u8"), ("lo", ">u8"), ("received", "<i8"), ("check", "<u4"), ("row", "<u4")]
)
Ids = npt.NDArray[np.void]
# ids are sorted by hash, so that one of this many equal ranges of hashes is a range of bytes
BUCKETS = 256


@dataclass(frozen=True, slots=True)
class Packet:
    """Where one kind's events of a bundle are, and what they look like."""

    kind: Kind
    offset: int
    size: int
    first_row: int
    rows: int
    hours: tuple[tuple[int, int], ...]  # (hour since 1970, rows), in row order
    fields: tuple[tuple[str, int], ...]  # (code and path, values)


@dataclass(frozen=True, slots=True)
class Bundle:
    """The packets and ids that a read task wrote at one time."""

    key: str
    ids_key: str
    rows: int
    bounds: tuple[int, ...]  # of each bucket, the number of ids before it
    packets: tuple[Packet, ...]


def encode(batch: pa.RecordBatch) -> pa.Buffer:
    """A packet's bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


# lz4 costs a tenth of what the reading costs and halves what an object store has to carry.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


def decode(data: bytes | pa.Buffer) -> pa.RecordBatch:
    """The packet that `encode` wrote."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


def sorted_ids(
    hashes: Iterable[bytes], received: npt.NDArray[np.int64], check: npt.NDArray[np.uint32]
) -> Ids:
    """The id records of a bundle's rows, sorted by hash."""
    ids = np.empty(len(received), ID_RECORD)
    halves = np.frombuffer(b"".join(hashes), ">u8").reshape(-1, 2)
    ids["hi"], ids["lo"] = halves[:, 0], halves[:, 1]
    ids["received"], ids["check"], ids["row"] = (
        received,
        check,
        np.arange(len(received), dtype=np.uint32),
    )
    return ids[np.argsort(halves[:, 0].astype(np.uint64))]


def bucket_bounds(ids: Ids) -> tuple[int, ...]:
    """For each bucket, how many ids stand before it; and the number of all."""
    starts = np.arange(BUCKETS, dtype=np.uint64) << np.uint64(56)
    return (*np.searchsorted(ids["hi"].astype(np.uint64), starts).tolist(), len(ids))
