"""What a sync must give: tables, schemas, counts and rejects, from staged objects and a state.

No storage, no Spark, no partial failure: only which rows, which types and which values.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from .casts import Cell, infer
from .events import ENVELOPE, Event, Leaf, Reject, Settings, Staged, read, typed_as, where
from .jsontext import deep_stack, dump
from .names import FIXED_TABLES

Columns = list[tuple[str, str]]
Rescued = dict[str, str]
Row = dict[str, Cell | Rescued]
Partition = tuple[str, str]
Tables = dict[str, dict[Partition, list[Row]]]

RESCUED = "_rescued"
ALWAYS = ("message_id", "type", "received_at", "timestamp")
OVERFLOW_TABLE = "other_events"


@dataclass(frozen=True)
class State:
    """What earlier syncs left: the stored schemas and the message ids still remembered."""

    schemas: dict[str, Columns] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()


@dataclass(frozen=True)
class EventCounts:
    """read = rows + duplicates + rejected."""

    read: int = 0
    rows: int = 0
    duplicates: int = 0
    rejected: int = 0


@dataclass(frozen=True)
class ValueCounts:
    """read = typed + rounded + rescued."""

    read: int = 0
    typed: int = 0
    rounded: int = 0
    rescued: int = 0

    def __add__(self, other: "ValueCounts") -> "ValueCounts":
        return ValueCounts(
            self.read + other.read,
            self.typed + other.typed,
            self.rounded + other.rounded,
            self.rescued + other.rescued,
        )


@dataclass(frozen=True)
class Result:
    """The outcome of one sync. A table all of whose events were duplicates has no rows."""

    tables: Tables
    schemas: dict[str, Columns]
    new_columns: dict[str, Columns]
    events: EventCounts
    values: ValueCounts
    values_by_table: dict[str, ValueCounts]
    rejects: list[Reject]
    state: State


def sync(state: State, objects: Sequence[Staged], settings: Settings | None = None) -> Result:
    """Everything one sync of these objects must do."""
    with deep_stack():
        return _sync(state, objects, settings or Settings())


def _sync(state: State, objects: Sequence[Staged], settings: Settings) -> Result:
    lines = [line for staged in objects for line in read(staged, settings)]
    rejects = [line for line in lines if isinstance(line, Reject)]
    events = [line for line in lines if isinstance(line, Event)]
    _guard_tables(events, state, settings)

    schemas, new_columns = dict(state.schemas), {}
    for table in sorted({event.table for event in events}):
        mine = [event for event in events if event.table == table]
        added = _new_columns(mine, state.schemas.get(table), settings)
        schemas[table] = [*state.schemas.get(table, []), *added]
        if added:
            new_columns[table] = added

    kept = _without_duplicates(events, state.ids)
    tables: Tables = {}
    values_by_table: dict[str, ValueCounts] = {}
    for event in sorted(kept, key=lambda event: (event.received_at, event.message_id)):
        row, counts = _row(event, schemas[event.table])
        tables.setdefault(event.table, {}).setdefault(_partition(event), []).append(row)
        values_by_table[event.table] = values_by_table.get(event.table, ValueCounts()) + counts
    for table, added in list(new_columns.items()):
        rows = [row for rows in tables.get(table, {}).values() for row in rows]
        _drop_empty(table, added, rows, schemas)
        if not rows and table not in state.schemas:
            del schemas[table]
        if not added or table not in schemas:
            del new_columns[table]

    return Result(
        tables=tables,
        schemas=schemas,
        new_columns=new_columns,
        events=EventCounts(len(lines), len(kept), len(events) - len(kept), len(rejects)),
        values=sum(values_by_table.values(), ValueCounts()),
        values_by_table=values_by_table,
        rejects=rejects,
        state=State(schemas, state.ids | {event.message_id for event in kept}),
    )


def sync_all(syncs: Iterable[Sequence[Staged]], settings: Settings | None = None) -> list[Result]:
    """One sync after the other on an empty lake."""
    results: list[Result] = []
    state = State()
    for objects in syncs:
        results.append(sync(state, objects, settings))
        state = results[-1].state
    return results


def rows_of(result: Result) -> list[Row]:
    """All rows a sync wrote."""
    return [row for parts in result.tables.values() for rows in parts.values() for row in rows]


def merged(results: Iterable[Result]) -> Tables:
    """The lake after several syncs: all rows, each with the columns its table has in the end."""
    every = list(results)
    tables: Tables = {}
    for result in every:
        for table, partitions in result.tables.items():
            columns = [name for name, _ in every[-1].schemas[table]]
            for partition, rows in partitions.items():
                full: list[Row] = [{name: row.get(name) for name in columns} for row in rows]
                tables.setdefault(table, {}).setdefault(partition, []).extend(full)
    return tables


def staged(blobs: Iterable[bytes], at: datetime | None = None, sync_no: int = 0) -> list[Staged]:
    """Objects as an inbox would list them, staged a minute apart."""
    start = at or datetime(2024, 5, 1, 12, tzinfo=UTC) + timedelta(hours=2 * sync_no)
    return [
        Staged(
            f"segment-stage/s/{sync_no:02}-{place:04}.ndjson",
            start + timedelta(minutes=place),
            blob,
        )
        for place, blob in enumerate(blobs)
    ]


def _drop_empty(table: str, added: Columns, rows: list[Row], schemas: dict[str, Columns]) -> None:
    """A new column in which no row has a cell does not appear: dropped duplicates leave such."""
    for name, column_type in list(added):
        empty = all(row[name] is None for row in rows)
        if empty and name not in ALWAYS and (name != RESCUED or not rows):
            added.remove((name, column_type))
            schemas[table].remove((name, column_type))
            for row in rows:
                del row[name]


def _guard_tables(events: list[Event], state: State, settings: Settings) -> None:
    """Sends the events of tables beyond the limit to the table for all others.

    The tables of the call types are always admitted; stored tables stay; of the new ones the
    alphabetically first are.
    """
    known = set(state.schemas) | {e.table for e in events if e.table in FIXED_TABLES}
    for table in sorted({event.table for event in events} - known):
        if len(known - {OVERFLOW_TABLE}) < settings.max_tables:
            known.add(table)
    for event in events:
        if event.table not in known:
            event.table = OVERFLOW_TABLE


def _new_columns(events: list[Event], stored: Columns | None, settings: Settings) -> Columns:
    """The columns these events add to a table, in the order they are added."""
    have = {name for name, _ in stored or []}
    seen: dict[str, list[Leaf]] = {name: [] for name in ALWAYS}
    for event in events:
        for column, leaf in event.leaves.items():
            seen.setdefault(column, []).append(leaf)
    names = sorted(set(seen) - have)
    if stored is None:
        names = [n for n in ENVELOPE if n in seen] + [n for n in names if n not in ENVELOPE]
    names = names[: max(0, settings.max_columns - len(have - {RESCUED}))]
    added = [(name, _type_of(name, seen[name])) for name in names]
    return added if RESCUED in have else [*added, (RESCUED, "string")]


def _type_of(column: str, leaves: list[Leaf]) -> str:
    return ENVELOPE[column][1] if column in ENVELOPE else infer(leaf.value for leaf in leaves)


def _without_duplicates(events: list[Event], remembered: frozenset[str]) -> list[Event]:
    """Of the events of one id the one received first, unless an earlier sync had it."""
    first: dict[str, Event] = {}
    for event in sorted(events, key=lambda e: (e.received_at, e.crc, e.key, e.line)):
        if event.message_id not in remembered:
            first.setdefault(event.message_id, event)
    return list(first.values())


def _row(event: Event, columns: Columns) -> tuple[Row, ValueCounts]:
    """The event as a row of its table, and what became of its values."""
    row: Row = {name: None for name, _ in columns}
    types = dict(columns)
    rescued: Rescued = {}
    outcomes: Counter[str] = Counter()
    homeless = [leaf for column, leaf in event.leaves.items() if column not in types]
    for leaf in event.rescued + homeless:
        outcomes["rescued"] += 1
        rescued[where(leaf)] = dump(leaf.value)
    for column, leaf in event.leaves.items():
        if column not in types:
            continue
        typed = typed_as(leaf, types[column])
        outcomes[typed.outcome] += 1
        row[column] = typed.cell
        if typed.kept:
            rescued[where(leaf)] = dump(leaf.value)
    row[RESCUED] = dict(sorted(rescued.items())) or None
    return row, ValueCounts(
        outcomes.total(), outcomes["typed"], outcomes["rounded"], outcomes["rescued"]
    )


def _partition(event: Event) -> Partition:
    received = event.received_at.astimezone(UTC)
    return received.date().isoformat(), f"{received.hour:02}"
