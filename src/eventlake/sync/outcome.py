"""What a sync has found out, and the ledger entry and report that follow from it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eventlake.ledger import log
from eventlake.ledger.entries import Consumed, DataFile, Entry, IndexFile, Owed, SideFile
from eventlake.ledger.state import State
from eventlake.model.counts import EventCounts, ValueCounts, total
from eventlake.model.schema import SchemaChange
from eventlake.profiles.profile import Kind
from eventlake.store import Address
from eventlake.sync.columns import Guards
from eventlake.sync.dedupe import Rows
from eventlake.sync.packets import Bundle
from eventlake.sync.plan import SyncPlan
from eventlake.sync.publish import Target, table_summary
from eventlake.sync.read import Read
from eventlake.sync.settle import Limits, Settlement
from eventlake.sync.write import Output, Written

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """All that a run depends on besides the lake's content."""

    address: Address
    target: Target
    guards: Guards
    limits: Limits
    max_event_bytes: int
    bundle_bytes: int
    unit_bytes: int
    compression: str
    dedup_days: int
    cores: int
    layout_marks: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has found out before it decides to commit."""

    reads: tuple[Read, ...]
    bundles: tuple[Bundle, ...]
    dropped: Mapping[int, Rows]
    settled: Settlement
    written: Mapping[str, tuple[Written, ...]]

    @property
    def failed(self) -> dict[str, Written]:
        """Tables of which a unit failed; nothing of them is committed."""
        return {table: bad for table, units in self.written.items() for bad in units if bad.error}

    def rows_of(self, tables: Mapping[str, object]) -> dict[int, Rows]:
        """For each bundle, by place, the rows that belong to some tables."""
        rows: dict[int, Rows] = {}
        for place, bundle in enumerate(self.bundles):
            ranges = [
                np.arange(packet.first_row, packet.first_row + packet.rows)
                for packet in bundle.packets
                if self.settled.table_of[packet.kind] in tables
            ]
            if ranges:
                rows[place] = np.concatenate(ranges)
        return rows

    def change_of(self, table: str) -> SchemaChange | None:
        """What becomes of a table's schema.

        A column that only dropped duplicates had, or only rescued values, does not appear.
        """
        decision = self.settled.tables[table]
        change = decision.change
        if change is None:
            return None
        filled = {name for unit in self.written[table] for name in unit.columns}
        added = tuple(
            c for c in change.added if c.name in filled or c.name not in decision.optional
        )
        return replace(change, added=added)

    @property
    def held_back(self) -> dict[int, Rows]:
        """The rows of tables that failed."""
        return self.rows_of(self.failed)

    @property
    def not_taken(self) -> dict[int, Rows]:
        """The rows whose message ids this sync does not take: duplicates, and what is held back."""
        held = self.held_back
        return {
            place: np.union1d(self.dropped.get(place, _NONE), held.get(place, _NONE))
            for place in {*self.dropped, *held}
        }


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a sync: what it was to do, and when it did it."""

    run_id: str
    plan: SyncPlan
    settings: RunSettings
    started_at: str
    finished_at: str
    phases: Mapping[str, float]


def entry_of(
    run: Run, state: State, outcome: Outcome, index: Sequence[tuple[IndexFile, SideFile]]
) -> Entry:
    """The entry that makes an outcome true."""
    failed = outcome.failed
    checks = {key: check for done in outcome.reads for key, check in done.checks}
    source = run.plan.source_id
    files = [
        _data_file(source, output, run.settings.target)
        for table, units in outcome.written.items()
        if table not in failed
        for unit in units
        for output in unit.outputs
    ]
    rejects = [
        SideFile(f"{log.folder(source)}/rejects/{run.run_id}-{number:06}.ndjson.zst", key, rows)
        for number, (key, rows) in enumerate(
            each for done in outcome.reads for each in done.rejects
        )
    ]
    rescued: defaultdict[tuple[str, str], int] = defaultdict(int)
    for table, units in outcome.written.items():
        if table not in failed:
            for unit in units:
                for column, values in unit.rescued_by_column:
                    rescued[table, column] += values
    return Entry(
        number=state.number + 1,
        run_id=run.run_id,
        source_id=source,
        prepared_at=run.finished_at,
        layout=run.settings.layout_marks,
        consumed=tuple(
            Consumed(i.key, i.size, i.e_tag, checks.get(i.key, 0), run.finished_at)
            for i in run.plan.inputs
        ),
        owed=_owed(run.plan, state, outcome),
        files=tuple(files),
        rejects=(*rejects, *(side for _, side in index)),
        changes=tuple(
            change
            for table in sorted(outcome.written)
            if table not in failed and (change := outcome.change_of(table))
        ),
        index=tuple(file for file, _ in index),
        rescued=tuple(
            (table, column, values) for (table, column), values in sorted(rescued.items())
        ),
        report=_report(run, outcome, files),
    )


def _data_file(source_id: str, output: Output, target: Target) -> DataFile:
    location = target.profile.location(source_id, output.table)
    key = f"{location}/{target.layout.path(output.partition)}/{output.name}"
    return DataFile(output.table, output.partition, key, output.key, output.rows, output.size)


def _owed(plan: SyncPlan, state: State, outcome: Outcome) -> tuple[Owed, ...]:
    """What the next sync must read again.

    The kinds of tables that failed, in the objects they may be in.
    """
    failed = outcome.failed
    read_now = {each.key for each in plan.inputs}
    owed = [each for each in state.owed if each.key not in read_now]
    for done in outcome.reads:
        kinds: set[Kind] = {
            packet.kind
            for bundle in done.bundles
            for packet in bundle.packets
            if outcome.settled.table_of[packet.kind] in failed
        }
        if kinds:
            ordered = tuple(sorted(kinds, key=lambda kind: (kind.type, kind.event)))
            owed += [Owed(each.key, each.staged_us, ordered) for each in done.task.inputs]
    return tuple(owed)


def _report(run: Run, outcome: Outcome, files: Sequence[DataFile]) -> dict[str, Any]:
    """The summary of the run: what `sync --json` prints and the stored report is made from."""
    failed = outcome.failed
    held = outcome.held_back
    held_duplicates = sum(
        len(np.intersect1d(outcome.dropped.get(place, _NONE), rows)) for place, rows in held.items()
    )
    events = EventCounts(
        read=sum(done.events for done in outcome.reads) - sum(map(len, held.values())),
        rows=sum(file.rows for file in files),
        duplicates=sum(map(len, outcome.dropped.values())) - held_duplicates,
        rejected=sum(done.rejected for done in outcome.reads),
    )
    if not events.balanced:
        raise AssertionError(f"events do not add up: {events}")
    reasons: defaultdict[str, int] = defaultdict(int)
    for done in outcome.reads:
        for reason, count in done.reasons:
            reasons[reason] += count
    good = [
        unit for table, units in outcome.written.items() if table not in failed for unit in units
    ]
    values = total(unit.values for unit in good)
    tables = [
        _table_report(table, run.settings, outcome, files) for table in sorted(outcome.written)
    ]
    return {
        "run_id": run.run_id,
        "source_id": run.plan.source_id,
        "status": "partial" if failed else "finished",
        "events": counts_json(events),
        "values": counts_json(values),
        "tables": tables,
        "started_at": run.started_at,
        "finished_at": None,
        "phases": dict(run.phases),
        "bytes_in": run.plan.size,
        "bytes_out": sum(file.size for file in files),
        "events_per_s": 0,
        "rejected_reasons": dict(sorted(reasons.items())),
        "refused_tables": list(outcome.settled.refused_tables),
        "error_code": None,
        "error": None,
    }


def _table_report(
    table: str, settings: RunSettings, outcome: Outcome, files: Sequence[DataFile]
) -> dict[str, Any]:
    report = table_summary(table)
    bad = outcome.failed.get(table)
    if bad:
        return {**report, "error": bad.error, "error_code": bad.error_code}
    decision = outcome.settled.tables[table]
    mine = [file for file in files if file.table == table]
    change = outcome.change_of(table)
    return {
        **report,
        "row_count": sum(file.rows for file in mine),
        "is_new": bool(change and change.is_new),
        "partitions": [
            settings.target.layout.values(hour) for hour in sorted({file.hour for file in mine})
        ],
        "new_columns": [
            {"name": c.name, "type": c.type.value} for c in (change.added if change else ())
        ],
        "values": counts_json(total(unit.values for unit in outcome.written[table])),
        "refused_columns": list(decision.refused_columns),
    }


def counts_json(counts: EventCounts | ValueCounts) -> dict[str, int]:
    """Counts as the report has them."""
    return {name: getattr(counts, name) for name in counts.__slots__}
