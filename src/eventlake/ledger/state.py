"""What a source's ledger adds up to.

A fold over entries: no order but theirs, no input or output.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from eventlake.ledger.entries import (
    Committed,
    Consumed,
    DataFile,
    Entry,
    IndexFile,
    Owed,
    owed_from,
)
from eventlake.model.schema import TableSchema, column_from, column_json


@dataclass(frozen=True, slots=True)
class State:
    """A source after entry `number`. Treat as a value: `after` returns a new one."""

    number: int = 0
    layout: tuple[tuple[str, str], ...] = ()
    consumed: dict[str, Consumed] = field(default_factory=dict)
    owed: tuple[Owed, ...] = ()
    schemas: dict[str, TableSchema] = field(default_factory=dict)
    files: dict[str, tuple[DataFile, ...]] = field(default_factory=dict)
    unmoved: tuple[DataFile, ...] = ()  # committed, but a table's folder would not take them yet
    index: tuple[IndexFile, ...] = ()
    rescued: dict[str, dict[str, int]] = field(default_factory=dict)
    last_sync: dict[str, str] = field(default_factory=dict)


def after(state: State, entry: Entry, committed: Committed) -> State:
    """The state after an entry that is committed."""
    waiting = {file.key for file in committed.unmoved}
    added: defaultdict[str, list[DataFile]] = defaultdict(list)
    for file in (*state.unmoved, *entry.files):
        if file.key not in waiting:
            added[file.table].append(file)
    schemas = dict(state.schemas)
    for change in entry.changes:
        schemas[change.table] = schemas.get(change.table, TableSchema()).apply(change)
    rescued = {table: dict(columns) for table, columns in state.rescued.items()}
    for table, column, values in entry.rescued:
        columns = rescued.setdefault(table, {})
        columns[column] = columns.get(column, 0) + values
    files = dict(state.files)
    for table, new in added.items():
        files[table] = (*files.get(table, ()), *new)
    return State(
        number=entry.number,
        layout=entry.layout or state.layout,
        consumed=state.consumed | {c.key: c for c in entry.consumed},
        owed=entry.owed,
        schemas=schemas,
        files=files,
        unmoved=committed.unmoved,
        index=(*state.index, *entry.index),
        rescued=rescued,
        last_sync=state.last_sync | dict.fromkeys(added, entry.prepared_at),
    )


def state_json(state: State) -> dict[str, Any]:
    """The stored form of a state, for checkpoints."""
    return {
        "number": state.number,
        "layout": dict(state.layout),
        "consumed": [asdict(c) for c in state.consumed.values()],
        "owed": [asdict(o) for o in state.owed],
        "schemas": {
            table: [column_json(c) for c in schema.columns]
            for table, schema in state.schemas.items()
        },
        "files": [asdict(f) for files in state.files.values() for f in files],
        "unmoved": [asdict(f) for f in state.unmoved],
        "index": [asdict(i) for i in state.index],
        "rescued": state.rescued,
        "last_sync": state.last_sync,
    }


def state_from(stored: dict[str, Any]) -> State:
    """The state that `state_json` wrote."""
    return State(
        number=stored["number"],
        layout=tuple(sorted(stored["layout"].items())),
        consumed={c["key"]: Consumed(**c) for c in stored["consumed"]},
        owed=tuple(owed_from(o) for o in stored["owed"]),
        schemas={
            table: TableSchema(tuple(column_from(c) for c in columns))
            for table, columns in stored["schemas"].items()
        },
        files=_by_table(DataFile(**f) for f in stored["files"]),
        unmoved=tuple(DataFile(**f) for f in stored["unmoved"]),
        index=tuple(IndexFile(**i) for i in stored["index"]),
        rescued=stored["rescued"],
        last_sync=stored["last_sync"],
    )


def _by_table(files: Iterable[DataFile]) -> dict[str, tuple[DataFile, ...]]:
    by_table: defaultdict[str, list[DataFile]] = defaultdict(list)
    for file in files:
        by_table[file.table].append(file)
    return {table: tuple(those) for table, those in by_table.items()}
