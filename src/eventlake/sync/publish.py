"""Publish: what a sync has prepared becomes visible. Files into place, catalog, report, commit.

Every step can be repeated, by the same sync or by the next one that finds the entry prepared and
not committed: this is where a crash is rolled forward. A table whose folder takes no files is
left for the next sync; the others commit.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from eventlake.catalog.protocol import Catalog
from eventlake.errors import Error, StateError
from eventlake.ledger import log
from eventlake.ledger.entries import Committed, DataFile, Entry
from eventlake.ledger.state import State
from eventlake.model.layout import PartitionLayout
from eventlake.model.schema import TableSchema
from eventlake.profiles.profile import Profile
from eventlake.report.reports import write_report
from eventlake.store import Store, keys, move, remove, remove_folder

# Moves are requests that wait for the store, not work for this machine.
_THREADS = 16


@dataclass(frozen=True, slots=True)
class Target:
    """Where a source's tables go."""

    store: Store
    catalog: Catalog
    database: str
    bucket: str
    profile: Profile
    layout: PartitionLayout


def publish(
    target: Target, state: State, entry: Entry, now: Callable[[], str]
) -> tuple[State, dict[str, Any]]:
    """Bring a prepared entry into place. Returns the state after it and the summary of the sync."""
    store = target.store
    for side in entry.rejects:
        move(store, side.staged, side.key)
    unmoved, errors = _move_tables(store, (*state.unmoved, *entry.files))
    register(target, entry)
    committed = Committed(entry.number, now(), tuple(unmoved))
    # before the commit, because nobody would write it after a crash that follows the commit
    summary = _report(target, state, entry, committed, errors)
    after = log.commit(store, state, entry, committed)
    if after.unmoved != committed.unmoved:
        # another sync has published the same entry and was first: what it says holds
        summary = _report(target, state, entry, replace(committed, unmoved=after.unmoved), errors)
    sweep(store, entry.source_id, after)
    return after, summary


def run_folder(source_id: str, number: int, run_id: str) -> str:
    """A new folder for what nobody else may see yet of a run that wants to become entry `number`.

    The number tells when the folder is of no use any more, the token keeps runs apart that began
    in the same microsecond.
    """
    return f"{log.folder(source_id)}/runs/{number:020}-{run_id}-{secrets.token_hex(4)}"


def sweep(store: Store, source_id: str, state: State) -> None:
    """Remove the folders of runs that are over.

    Those of entries already committed, whoever has made them or crashed in them.

    A sync that is still at work on such an entry has lost. Files that are still to be moved
    stay. What cannot be removed now is removed by a later sync.
    """
    runs = f"{log.folder(source_id)}/runs/"
    kept = {file.staged for file in state.unmoved}
    with suppress(Error):
        over: defaultdict[str, list[str]] = defaultdict(list)
        for key in (meta["path"] for meta in keys(store, runs)):
            folder = key.removeprefix(runs).partition("/")[0]
            number = folder.partition("-")[0]
            if number.isdigit() and int(number) <= state.number:
                over[runs + folder].append(key)
        for folder, found in over.items():
            clear(store, folder, found, kept)


def clear(
    store: Store, folder: str, found: Collection[str] | None = None, kept: Collection[str] = ()
) -> None:
    """Remove a run's folder, less the objects in `kept`.

    `found` is what is in it, if that is known.
    """
    if found is None:
        found = [meta["path"] for meta in keys(store, folder)]
    remove(store, [key for key in found if key not in kept])
    if not any(key in kept for key in found):
        remove_folder(store, folder)


def _move_tables(
    store: Store, files: Sequence[DataFile]
) -> tuple[list[DataFile], dict[str, Error]]:
    """Move files into place, table by table.

    Those of a table that fails stay where they are, with the reason.
    """
    tables: defaultdict[str, list[DataFile]] = defaultdict(list)
    for file in files:
        tables[file.table].append(file)

    def move_table(table: str) -> Error | None:
        try:
            for file in tables[table]:
                move(store, file.staged, file.key)
        except Error as error:
            return error
        return None

    with ThreadPoolExecutor(_THREADS) as pool:
        outcomes = dict(zip(tables, pool.map(move_table, tables), strict=True))
    errors = {table: error for table, error in outcomes.items() if error}
    return [file for file in files if file.table in errors], errors


def register(target: Target, entry: Entry) -> None:
    """Tell the catalog of new tables, columns and partitions."""
    partitions: defaultdict[str, set[str]] = defaultdict(set)
    for file in entry.files:
        partitions[file.table].add(target.layout.path(file.hour))
    for change in entry.changes:
        if change.is_new:
            location = target.profile.location(entry.source_id, change.table)
            target.catalog.create(
                target.database, change.table, TableSchema().apply(change), location
            )
        else:
            target.catalog.apply(target.database, change)
    for table, folders in sorted(partitions.items()):
        target.catalog.add_partitions(target.database, table, sorted(folders))


def _report(
    target: Target, state: State, entry: Entry, committed: Committed, errors: Mapping[str, Error]
) -> dict[str, Any]:
    """Write the report of an entry that is committed like this, and return its summary."""
    moved = [file for file in state.unmoved if file not in committed.unmoved]
    unknown = StateError(
        "NOT_MOVED", "another sync could not move the files", "the next sync tries again", ""
    )
    failed = {file.table: errors.get(file.table, unknown) for file in committed.unmoved}
    summary = _summary(entry, committed, failed, moved)
    write_report(target.store, summary, target.database, target.bucket)
    return summary


def _summary(
    entry: Entry, committed: Committed, errors: Mapping[str, Error], moved: Sequence[DataFile]
) -> dict[str, Any]:
    """The report of the entry, less tables that could not be moved, plus those that now could."""
    summary = dict(entry.report)
    rows_back: defaultdict[str, int] = defaultdict(int)
    for file in moved:
        rows_back[file.table] += file.rows
    tables = []
    events = dict(summary["events"])
    for table in summary["tables"]:
        name = table["table_name"]
        if name in errors:
            lost = table["row_count"]
            events = {**events, "read": events["read"] - lost, "rows": events["rows"] - lost}
            told = {"row_count": 0, "error": str(errors[name]), "error_code": errors[name].code}
        else:
            told = {"row_count": table["row_count"] + rows_back.pop(name, 0)}
        tables.append({**table, **told})
    tables += [table_summary(name, rows) for name, rows in rows_back.items() if name not in errors]
    named = {table["table_name"] for table in tables}
    tables += [
        {**table_summary(name), "error": str(error), "error_code": error.code}
        for name, error in errors.items()
        if name not in named
    ]
    rows = sum(file.rows for file in moved)
    events = {**events, "read": events["read"] + rows, "rows": events["rows"] + rows}
    failed = any(table["error"] for table in tables)
    status = "partial" if failed else summary["status"]
    return {
        **summary,
        "status": status,
        "events": events,
        "tables": tables,
        "finished_at": committed.at,
    }


def table_summary(name: str, rows: int = 0) -> dict[str, Any]:
    """What a report says of a table of which there is nothing more to say."""
    return {
        "table_name": name,
        "row_count": rows,
        "is_new": False,
        "partitions": [],
        "new_columns": [],
        "values": {"read": 0, "typed": 0, "rounded": 0, "rescued": 0},
        "error": None,
        "error_code": None,
    }
