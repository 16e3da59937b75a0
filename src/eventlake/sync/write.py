"""Write: the packets of one table become Parquet files.

Drops duplicates, casts, rescues, sorts by time received.

One `WriteUnit` is what a task holds in memory at once. Files go to the run's folder; `publish`
moves them into place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.catalog.arrow import ARROW
from eventlake.model.counts import ValueCounts
from eventlake.model.layout import HOUR_US, PartitionLayout
from eventlake.model.names import path_keys
from eventlake.model.schema import RESCUED
from eventlake.model.types import ColumnType
from eventlake.profiles.profile import Profile
from eventlake.store import Store, guarded
from eventlake.sync.cast import cast, value_text
from eventlake.sync.packets import RECEIVED, RESCUE, Packet, decode

# Rows per row group: small enough to skip by received_at, large enough to compress.
ROW_GROUP = 131_072


@dataclass(frozen=True, slots=True)
class Part:
    """A packet's rows from `start` to before `stop`, less those dropped as duplicates."""

    key: str
    packet: Packet
    start: int
    stop: int
    dropped: npt.NDArray[np.int64]  # rows of the packet

    @property
    def size(self) -> int:
        """Bytes of its share of the packet."""
        return self.packet.size * (self.stop - self.start) // self.packet.rows


@dataclass(frozen=True, slots=True)
class WriteUnit:
    """Some packets of one table, all of one or more of its partitions."""

    table: str
    types: Mapping[str, ColumnType]
    new: frozenset[str]  # columns that appear only where some row has a cell in them
    parts: tuple[Part, ...]
    number: int  # within the table, part of the file names

    @property
    def size(self) -> int:
        """Bytes of packets."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, slots=True)
class Output:
    """A file that was written: where it is, and where it belongs."""

    table: str
    partition: int  # first hour since 1970
    key: str
    name: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a unit. With an `error` nothing of it counts."""

    table: str
    outputs: tuple[Output, ...] = ()
    rows: int = 0
    values: ValueCounts = field(default_factory=ValueCounts)
    columns: tuple[str, ...] = ()
    rescued_by_column: tuple[tuple[str, int], ...] = ()
    error_code: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """How files are written, the same for all units of a run."""

    run_id: str
    folder: str
    layout: PartitionLayout
    profile: Profile
    compression: str


def write_unit(store: Store, unit: WriteUnit, settings: WriteSettings) -> Written:
    """Write the files of a unit and account for its values."""
    rows = _load(store, unit, settings.profile)
    order = _order(rows)
    rows = rows if order is None else rows.take(pa.array(order))
    received = np.asarray(rows.column(RECEIVED))
    if not len(received):
        return Written(unit.table)
    table, values, rescued = _table(rows, unit, settings.profile)
    hours = received // HOUR_US
    if settings.layout.hour(1) == 0:
        hours -= hours % 24
    partitions, starts = np.unique(hours, return_index=True)
    outputs = []
    for hour, start, end in zip(
        partitions.tolist(), starts.tolist(), [*starts[1:].tolist(), len(received)], strict=True
    ):
        name = f"{settings.run_id}-{unit.number:04}.parquet"
        key = f"{settings.folder}/data/{unit.table}/{hour}/{name}"
        data = parquet_bytes(table.slice(start, end - start), settings.compression)
        with guarded("write", key):
            store.put(key, data)
        outputs.append(Output(unit.table, hour, key, name, end - start, len(data)))
    return Written(
        unit.table,
        tuple(outputs),
        len(received),
        values,
        tuple(table.schema.names),
        tuple(sorted(rescued.items())),
    )


def parquet_bytes(table: pa.Table, compression: str) -> bytes:
    """A table as a Parquet file that Hive, Spark, Trino, Athena and DuckDB read alike."""
    sink = pa.BufferOutputStream()
    schema = table.schema
    with pq.ParquetWriter(
        sink,
        schema,
        compression=compression,
        version="2.6",
        # readers since 2016 know microsecond INT64; the older INT96 has no statistics
        coerce_timestamps="us",
        # ids differ in every row: a dictionary of them is built for nothing
        use_dictionary=[name for name in schema.names if name not in _UNIQUE],
        write_statistics=True,
        store_schema=False,
        sorting_columns=[pq.SortingColumn(schema.get_field_index("received_at"))],
    ) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP)
    return bytes(sink.getvalue())


_UNIQUE = frozenset({"message_id", "received_at", "sent_at", "original_timestamp", "timestamp"})


def _load(store: Store, unit: WriteUnit, profile: Profile) -> pa.Table:
    """The rows of the parts, less those dropped: a column per path and kind of value."""
    by_key: defaultdict[str, list[Part]] = defaultdict(list)
    for part in unit.parts:
        by_key[part.key].append(part)
    batches: list[pa.RecordBatch] = []
    for key, those in by_key.items():
        with guarded("read", key):
            blobs = store.get_ranges(
                key,
                starts=[part.packet.offset for part in those],
                lengths=[part.packet.size for part in those],
            )
        for part, blob in zip(those, blobs, strict=True):
            batch = decode(pa.py_buffer(blob))
            if len(part.dropped):
                keep = np.ones(batch.num_rows, bool)
                keep[part.dropped] = False
                batch = batch.slice(part.start, part.stop - part.start).filter(
                    pa.array(keep[part.start : part.stop])
                )
            else:
                batch = batch.slice(part.start, part.stop - part.start)
            batches.append(_without_homeless(batch, unit.types, profile))
    if len(batches) == 1:
        return pa.Table.from_batches(batches)
    return pa.concat_tables(
        [pa.Table.from_batches([batch]) for batch in batches], promote_options="default"
    ).combine_chunks()


def _without_homeless(
    batch: pa.RecordBatch, types: Mapping[str, ColumnType], profile: Profile
) -> pa.RecordBatch:
    """The batch without columns that the table has no room for; their values become rescues.

    Before batches are put together, because there may be more such columns than events.
    """
    own = (RECEIVED, RESCUE)
    homeless = [
        name
        for name in batch.schema.names
        if name not in own and profile.column(path_keys(name[1:])) not in types
    ]
    if not homeless:
        return batch
    texts = batch.column(RESCUE).to_pylist() if RESCUE in batch.schema.names else []
    found = [orjson.loads(text) if text else None for text in texts] or [None] * batch.num_rows
    for name in homeless:
        values, code = batch.column(name), name[0]
        places = np.flatnonzero(np.asarray(values.is_valid()))
        present = values.take(pa.array(places))
        if code == "z":
            present, code = cast("z", present, ColumnType.STRING).cells, "s"
        for row, value in zip(places.tolist(), present.to_pylist(), strict=True):
            entry = found[row] or {"rescued": {}, "rounded": {}}
            # what was rounded when it was read is lost as a whole now
            original = entry["rounded"].pop(name[1:], None)
            entry["rescued"][name[1:]] = original or value_text(code, value)
            found[row] = entry
    gone = {*homeless, RESCUE}
    kept = [name for name in batch.schema.names if name not in gone]
    rescues = pa.array([entry and orjson.dumps(entry).decode() for entry in found], pa.string())
    return pa.record_batch([*map(batch.column, kept), rescues], [*kept, RESCUE])


def _order(rows: pa.Table) -> npt.NDArray[np.int64] | None:
    received = np.asarray(rows.column(RECEIVED))
    if (received[1:] >= received[:-1]).all():
        return None
    return np.argsort(received, kind="stable")


class _Ledger:
    """The account of a unit's values.

    What was read, what has a cell, what was kept in `_rescued`.
    """

    def __init__(self, rows: int) -> None:
        self.rescued: list[dict[str, str] | None] = [None] * rows
        self.by_column: defaultdict[str, int] = defaultdict(int)
        self.read = self.lost = self.rounded = 0

    def keep(self, row: int, path: str, text: str) -> None:
        entry = self.rescued[row]
        if entry is None:
            entry = self.rescued[row] = {}
        entry[path] = text

    def column(self) -> pa.Array:
        if not any(self.rescued):
            return pa.nulls(len(self.rescued), pa.string())
        return pa.array([entry and _object_text(entry) for entry in self.rescued], pa.string())


def _object_text(entry: Mapping[str, str]) -> str:
    return (
        "{"
        + ",".join(f"{orjson.dumps(path).decode()}:{entry[path]}" for path in sorted(entry))
        + "}"
    )


def _table(
    rows: pa.Table, unit: WriteUnit, profile: Profile
) -> tuple[pa.Table, ValueCounts, dict[str, int]]:
    ledger = _Ledger(rows.num_rows)
    sources: defaultdict[str, list[str]] = defaultdict(list)
    for name in rows.column_names:
        if name not in (RECEIVED, RESCUE):
            sources[profile.column(path_keys(name[1:]))].append(name)
    cells: dict[str, pa.Array] = {}
    for column in sources:
        _cells(rows, column, sources[column], unit, ledger, cells)
    _read_rescues(rows, profile, ledger)
    typed = sum(len(array) - array.null_count for array in cells.values()) - ledger.rounded
    counts = ValueCounts(ledger.read, typed, ledger.rounded, ledger.lost)
    if not counts.balanced:
        raise AssertionError(f"values of table {unit.table} do not add up: {counts}")
    cells[RESCUED] = ledger.column()
    names = [name for name in unit.types if name not in unit.new or _any_cell(cells.get(name))]
    arrays = [
        cells[name] if name in cells else pa.nulls(rows.num_rows, ARROW[unit.types[name]])
        for name in names
    ]
    return pa.table(arrays, names=names), counts, dict(ledger.by_column)


def _any_cell(array: pa.Array | None) -> bool:
    return array is not None and array.null_count < len(array)


def _cells(
    rows: pa.Table,
    column: str,
    names: list[str],
    unit: WriteUnit,
    ledger: _Ledger,
    cells: dict[str, pa.Array],
) -> None:
    """The cells of one column, out of all kinds and paths of values that go to it."""
    wanted = unit.types[column]
    for name in names:
        values = rows.column(name).combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = values.chunk(0)
        ledger.read += len(values) - values.null_count
        done = cast(name[0], values, wanted)
        cells[column] = pc.coalesce(cells[column], done.cells) if column in cells else done.cells
        if done.lost is not None:
            ledger.lost += _keep(values, name, column, done.lost, ledger)
        if done.rounded is not None:
            ledger.rounded += _keep(values, name, column, done.rounded, ledger)


def _keep(
    values: pa.Array, name: str, column: str, which: npt.NDArray[np.bool_], ledger: _Ledger
) -> int:
    """Keep the original of some values. Returns how many."""
    places = np.flatnonzero(which)
    code, path = name[0], name[1:]
    if code == "z":
        values, code = cast("z", values, ColumnType.STRING).cells, "s"
    for row, value in zip(places.tolist(), values.take(pa.array(places)).to_pylist(), strict=True):
        ledger.keep(row, path, value_text(code, value))
    ledger.by_column[column] += len(places)
    return len(places)


def _read_rescues(rows: pa.Table, profile: Profile, ledger: _Ledger) -> None:
    """What could not even become a column when it was read."""
    if RESCUE not in rows.column_names:
        return
    for row, text in enumerate(rows.column(RESCUE).to_pylist()):
        if text is None:
            continue
        found = orjson.loads(text)
        kept = ledger.rescued[row] or {}
        # a string that lost half a character has a cell, unless its cast failed as well
        ledger.rounded += sum(path not in kept for path in found["rounded"])
        ledger.read += len(found["rescued"])
        ledger.lost += len(found["rescued"])
        for path, value in (*found["rescued"].items(), *found["rounded"].items()):
            ledger.keep(row, path, value)
            ledger.by_column[profile.column(path_keys(path))] += 1
