"""The records of the ledger, as values and as JSON.

Entry n is *prepared* (`<n>.prepared.json`: everything the sync will have done) before anything
becomes visible, and *committed* (`<n>.committed.json`) when all of it is in place. Creating
`<n>.prepared.json` is the one moment that decides between two syncs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from eventlake.errors import StateError
from eventlake.model.schema import SchemaChange, column_from, column_json
from eventlake.profiles.profile import Kind

VERSION = 1


@dataclass(frozen=True, slots=True)
class Consumed:
    """A staged object that a sync has read to its end. `check` is the CRC of its stored bytes."""

    key: str
    size: int
    e_tag: str
    check: int
    at: str


@dataclass(frozen=True, slots=True)
class Owed:
    """Events of a consumed object that are still to be written, because their table failed."""

    key: str
    staged_us: int
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table. `staged` is where the sync wrote it, `key` where it belongs."""

    table: str
    hour: int
    key: str
    staged: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class SideFile:
    """A file that is moved into place with the data but belongs to no table: rejected lines."""

    key: str
    staged: str
    rows: int


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A file of the index of message ids.

    `at` is when its sync was prepared, in microseconds since 1970.
    """

    key: str
    rows: int
    at: int


@dataclass(frozen=True, slots=True)
class Entry:
    """All that one sync does to a source, decided before any of it is visible."""

    number: int
    run_id: str
    source_id: str
    prepared_at: str
    layout: tuple[
        tuple[str, str], ...
    ]  # profile, partition layout, prefix: what the lake may not change silently
    consumed: tuple[Consumed, ...]
    owed: tuple[Owed, ...]  # all that is owed after this entry
    files: tuple[DataFile, ...]
    rejects: tuple[SideFile, ...]
    changes: tuple[SchemaChange, ...]
    index: tuple[IndexFile, ...]  # added
    rescued: tuple[tuple[str, str, int], ...]  # table, column, values
    report: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Committed:
    """That entry `number` is in place, but for the files of tables that could not be moved yet."""

    number: int
    at: str
    unmoved: tuple[DataFile, ...] = ()


def entry_bytes(entry: Entry) -> bytes:
    """The stored form of an entry."""
    stored = {
        "version": VERSION,
        **{name: getattr(entry, name) for name in ("number", "run_id", "source_id", "prepared_at")},
        "layout": dict(entry.layout),
        "consumed": [asdict(c) for c in entry.consumed],
        "owed": [asdict(o) for o in entry.owed],
        "files": [asdict(f) for f in entry.files],
        "rejects": [asdict(f) for f in entry.rejects],
        "changes": [change_json(c) for c in entry.changes],
        "index": [asdict(i) for i in entry.index],
        "rescued": entry.rescued,
        "report": entry.report,
    }
    return orjson.dumps(stored)


def entry_from(key: str, data: bytes) -> Entry:
    """The entry that `entry_bytes` wrote. Raises StateError CORRUPT_RECORD."""
    stored = record(key, data)
    try:
        return Entry(
            number=int(stored["number"]),
            run_id=str(stored["run_id"]),
            source_id=str(stored["source_id"]),
            prepared_at=str(stored["prepared_at"]),
            layout=tuple(sorted(stored["layout"].items())),
            consumed=tuple(Consumed(**c) for c in stored["consumed"]),
            owed=tuple(owed_from(o) for o in stored["owed"]),
            files=tuple(DataFile(**f) for f in stored["files"]),
            rejects=tuple(SideFile(**f) for f in stored["rejects"]),
            changes=tuple(change_from(c) for c in stored["changes"]),
            index=tuple(IndexFile(**i) for i in stored["index"]),
            rescued=tuple((str(t), str(c), int(n)) for t, c, n in stored["rescued"]),
            report=stored["report"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise corrupt(key, error) from error


def committed_bytes(committed: Committed) -> bytes:
    """The stored form of a commit."""
    return orjson.dumps({"version": VERSION, **asdict(committed)})


def committed_from(key: str, data: bytes) -> Committed:
    """The commit that `committed_bytes` wrote. Raises StateError CORRUPT_RECORD."""
    stored = record(key, data)
    try:
        unmoved = tuple(DataFile(**f) for f in stored["unmoved"])
        return Committed(int(stored["number"]), str(stored["at"]), unmoved)
    except (KeyError, TypeError, ValueError) as error:
        raise corrupt(key, error) from error


def owed_from(stored: Mapping[str, Any]) -> Owed:
    """An `Owed` out of its JSON."""
    return Owed(stored["key"], stored["staged_us"], tuple(Kind(**kind) for kind in stored["kinds"]))


def change_json(change: SchemaChange) -> dict[str, Any]:
    """The stored form of a schema change."""
    return {
        "table": change.table,
        "added": [column_json(column) for column in change.added],
        "paths": dict(change.paths),
        "is_new": change.is_new,
    }


def change_from(stored: Mapping[str, Any]) -> SchemaChange:
    """The schema change that `change_json` wrote."""
    return SchemaChange(
        stored["table"],
        tuple(column_from(column) for column in stored["added"]),
        {name: tuple(paths) for name, paths in stored["paths"].items()},
        bool(stored["is_new"]),
    )


def record(key: str, data: bytes) -> dict[str, Any]:
    """One of our JSON records.

    Raises StateError CORRUPT_RECORD, also for one of a later version.
    """
    try:
        stored = orjson.loads(data)
        version = stored["version"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise corrupt(key, error) from error
    if version != VERSION:
        raise StateError(
            "CORRUPT_RECORD",
            f"the record has version {version}, this eventlake knows version {VERSION}",
            "use the newest eventlake that has written to this lake",
            key,
        )
    return dict(stored)


def corrupt(key: str, error: Exception) -> StateError:
    """The error for a record that cannot be understood."""
    return StateError(
        "CORRUPT_RECORD",
        f"cannot read one of our own records: {type(error).__name__}: {error}",
        "restore the object from a version of the bucket or a backup; no data was touched",
        key,
    )
