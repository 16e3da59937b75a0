"""The flow of a sync, and the only place with Spark actions.

Plan, read, dedupe, settle, write, index, publish.
"""

from __future__ import annotations

import gc
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from eventlake.errors import Error
from eventlake.ledger import log
from eventlake.ledger.entries import Entry, IndexFile, SideFile
from eventlake.ledger.state import State
from eventlake.model.counts import EventCounts, ValueCounts
from eventlake.model.layout import HOUR_US
from eventlake.store import Address, Store, guarded, open_store
from eventlake.sync import dedupe, publish
from eventlake.sync.index import Hashes, index_bytes
from eventlake.sync.outcome import Outcome, Run, RunSettings, counts_json, entry_of
from eventlake.sync.packets import BUCKETS, Bundle
from eventlake.sync.plan import SyncPlan, WriteTask, write_tasks, write_units
from eventlake.sync.publish import Target
from eventlake.sync.read import ReadSettings, read
from eventlake.sync.settle import settle
from eventlake.sync.write import WriteSettings, WriteUnit, Written, write_unit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Up to so many ids dedupe runs here rather than as a Spark job: a second's work and 150 MB.
INLINE_IDS = 4_000_000
# What one dedupe task of a larger sync sorts at once.
TASK_IDS = 8_000_000
_DAY_US = 24 * HOUR_US

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class Progress:
    """How far a run is: `tell` is called with each phase and its number of tasks.

    `events` is known once they are read.
    """

    tell: Callable[[str, int], None] = lambda _phase, _tasks: None
    events: int = 0
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str, of: int = 0) -> Iterator[None]:
        """Time a phase."""
        self.tell(name, of)
        started = monotonic()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + monotonic() - started, 3)


def sync(
    job: Job,
    settings: RunSettings,
    plan_of: Callable[[State], SyncPlan],
    source_id: str,
    clock: Callable[[], datetime],
    progress: Progress,
) -> dict[str, Any]:
    """Sync one source: everything staged and not yet done becomes rows. Returns the summary.

    A sync that was interrupted is first rolled forward. Where another sync of the source commits
    first, this one throws its own work away and looks again at what is left.
    """
    target = settings.target
    summary = None
    while True:
        with progress.phase("plan"):
            state, rolled = recover(target, source_id, clock)
            summary = rolled or summary
            plan = plan_of(state)
        if not plan.tasks and not state.unmoved:
            publish.sweep(target.store, source_id, state)
            return summary or _nothing_new(source_id, clock)
        job.begin()
        run_id = run_number(clock())
        folder = publish.run_folder(source_id, state.number + 1, run_id)
        try:
            entry = _work(job, plan, state, settings, Attempt(run_id, folder, clock, progress))
        except Error:
            with suppress(Error):
                publish.clear(target.store, folder)
                if log.load(target.store, source_id).state.number > state.number:
                    # another sync has committed and swept this one's folder away
                    continue
            raise
        # an error here leaves the folder: the answer may be lost and the entry be prepared
        if not log.prepare(target.store, entry):
            with suppress(Error):
                publish.clear(target.store, folder)
            continue
        with progress.phase("publish", len(entry.files)):
            _, summary = publish.publish(target, state, entry, lambda: utc_text(clock()))
        return _timed(summary, progress)


def recover(
    target: Target, source_id: str, clock: Callable[[], datetime]
) -> tuple[State, dict[str, Any] | None]:
    """The state of a source, after rolling forward what an interrupted sync had prepared."""
    ledger = log.load(target.store, source_id)
    if ledger.prepared is None:
        return ledger.state, None
    return publish.publish(target, ledger.state, ledger.prepared, lambda: utc_text(clock()))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One go at a sync: its id, its folder, its clock and who is told of it."""

    run_id: str
    folder: str
    clock: Callable[[], datetime]
    progress: Progress


def _work(job: Job, plan: SyncPlan, state: State, settings: RunSettings, attempt: Attempt) -> Entry:
    """All the work of a sync up to the point where it would be prepared.

    Nothing of it is visible yet.
    """
    started_at = utc_text(attempt.clock())
    target = settings.target
    with attempt.progress.phase("read", len(plan.tasks)):
        reads = job.each(
            partial(read, settings=_read_settings(settings, attempt.folder)), plan.tasks
        )
    attempt.progress.events = sum(done.events for done in reads)
    bundles = tuple(bundle for done in reads for bundle in done.bundles)
    with attempt.progress.phase("dedupe"):
        dropped = _duplicates(
            job, target.store, bundles, _remembered(state, settings.dedup_days, attempt.run_id)
        )
    with attempt.progress.phase("settle"):
        packets = (packet for bundle in bundles for packet in bundle.packets)
        settled = settle(packets, state.schemas, target.profile, settings.limits, started_at)
        units = write_units(bundles, dropped, settled, target.layout, settings.unit_bytes)
        tasks = write_tasks(units, settings.cores)
    with attempt.progress.phase("write", len(tasks)):
        write = partial(_write, settings=_write_settings(settings, attempt.folder, attempt.run_id))
        written: defaultdict[str, tuple[Written, ...]] = defaultdict(tuple)
        for each in (one for done in job.each(write, tasks) for one in done):
            written[each.table] += (each,)
    outcome = Outcome(tuple(reads), bundles, dropped, settled, dict(written))
    with attempt.progress.phase("index"):
        index = _write_index(
            job, target.store, outcome, attempt.folder, plan.source_id, attempt.run_id
        )
    run = Run(
        attempt.run_id,
        plan,
        settings,
        started_at,
        utc_text(attempt.clock()),
        attempt.progress.phases,
    )
    return entry_of(run, state, outcome, index)


def _nothing_new(source_id: str, clock: Callable[[], datetime]) -> dict[str, Any]:
    now = utc_text(clock())
    return {
        "run_id": None,
        "source_id": source_id,
        "status": "finished",
        "events": counts_json(EventCounts()),
        "values": counts_json(ValueCounts()),
        "tables": [],
        "started_at": now,
        "finished_at": now,
        "phases": {},
        "bytes_in": 0,
        "bytes_out": 0,
        "events_per_s": 0,
        "rejected_reasons": {},
        "refused_tables": [],
        "error_code": None,
        "error": None,
    }


def failed_summary(
    source_id: str, error: Error, started: datetime, finished: datetime, progress: Progress
) -> dict[str, Any]:
    """The summary of a sync that has committed nothing."""
    nothing = _nothing_new(source_id, lambda: finished)
    return {
        **nothing,
        "run_id": run_number(started),
        "status": "failed",
        "started_at": utc_text(started),
        "phases": dict(progress.phases),
        "error_code": error.code,
        "error": str(error),
    }


def run_number(at: datetime) -> str:
    """The id of a run that begins at some time: nanoseconds since 1970, as Segment numbers them."""
    return str(int(at.timestamp() * 1_000_000) * 1000)


def _timed(summary: dict[str, Any], progress: Progress) -> dict[str, Any]:
    seconds = sum(progress.phases.values())
    rate = round(summary["events"]["read"] / seconds) if seconds else 0
    return {**summary, "phases": dict(progress.phases), "events_per_s": rate}


class Job(Protocol):
    """Where the tasks of a sync run."""

    def begin(self) -> None:
        """There will be tasks: make ready."""
        ...

    def each(self, work: Callable[[Store, T], R], tasks: Sequence[T]) -> list[R]:
        """Run `work` on every task and return the results in their order.

        Raises the first error of ours.
        """
        ...


class SparkJob:
    """Tasks on Spark: a task's number travels to a worker, what comes of it travels back."""

    def __init__(
        self, begin: Callable[[], None], spark: Callable[[], SparkSession], address: Address
    ) -> None:
        self.begin = begin
        self._spark = spark
        self._address = address

    def each(self, work: Callable[[Store, T], R], tasks: Sequence[T]) -> list[R]:
        """One Spark task per task."""
        if not tasks:
            return []
        count = len(tasks)
        numbers = self._spark().range(0, count, 1, count)
        run = partial(_on_worker, work, tuple(tasks), self._address)
        done = numbers.mapInArrow(run, "number long, result binary").collect()
        results: dict[int, Any] = {
            row["number"]: pickle.loads(row["result"])  # noqa: S301  # our own workers wrote it
            for row in done
        }
        for number in range(count):
            if isinstance(results[number], Error):
                raise results[number]
        return [results[number] for number in range(count)]


def _on_worker(
    work: Callable[[Store, T], R],
    tasks: tuple[T, ...],
    address: Address,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    store = open_store(address)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            # chunks of documents are made and dropped whole; looking for cycles among them costs a
            # fifth more
            gc.disable()
            try:
                result: R | Error = work(store, tasks[number])
            except Error as error:
                result = error
            finally:
                gc.enable()
            yield pa.record_batch(
                [pa.array([number]), pa.array([pickle.dumps(result)], pa.binary())],
                ["number", "result"],
            )


def _write(store: Store, task: WriteTask, settings: WriteSettings) -> list[Written]:
    return [_write_safely(store, unit, settings) for unit in task.units]


def _write_safely(store: Store, unit: WriteUnit, settings: WriteSettings) -> Written:
    """One table that fails, for whatever reason, must not stop the others."""
    try:
        return write_unit(store, unit, settings)
    except Error as error:
        return Written(unit.table, error_code=error.code, error=str(error))
    except Exception as error:
        return Written(unit.table, error_code="INTERNAL", error=f"{type(error).__name__}: {error}")


def _read_settings(settings: RunSettings, folder: str) -> ReadSettings:
    return ReadSettings(
        folder,
        settings.target.profile,
        settings.guards,
        settings.max_event_bytes,
        settings.bundle_bytes,
    )


def _write_settings(settings: RunSettings, folder: str, run_id: str) -> WriteSettings:
    target = settings.target
    return WriteSettings(run_id, folder, target.layout, target.profile, settings.compression)


def _remembered(state: State, days: int, run_id: str) -> tuple[IndexFile, ...]:
    """The index files of the syncs whose ids still count."""
    oldest = 0 if days < 0 else int(run_id) // 1000 - days * _DAY_US
    return tuple(file for file in state.index if days and file.at >= oldest)


def _duplicates(
    job: Job, store: Store, bundles: Sequence[Bundle], index: Sequence[IndexFile]
) -> dict[int, dedupe.Rows]:
    rows = sum(bundle.rows for bundle in bundles)
    if rows <= INLINE_IDS:
        return dedupe.duplicates(store, bundles, index)
    ranges = _bucket_ranges(rows)
    found: defaultdict[int, list[dedupe.Rows]] = defaultdict(list)
    for part in job.each(
        partial(_range_duplicates, bundles=tuple(bundles), index=tuple(index)), ranges
    ):
        for place, lost in part.items():
            found[place].append(lost)
    return {place: np.concatenate(parts) for place, parts in found.items()}


def _range_duplicates(
    store: Store, buckets: tuple[int, int], bundles: Sequence[Bundle], index: Sequence[IndexFile]
) -> dict[int, dedupe.Rows]:
    return dedupe.duplicates(store, bundles, index, *buckets)


def _bucket_ranges(rows: int) -> list[tuple[int, int]]:
    count = min(BUCKETS, -(-rows // TASK_IDS) * 2)
    edges = [BUCKETS * n // count for n in range(count + 1)]
    return list(pairwise(edges))


def _write_index(
    job: Job, store: Store, outcome: Outcome, folder: str, source_id: str, run_id: str
) -> tuple[tuple[IndexFile, SideFile], ...]:
    """Write the index of the rows that this sync takes.

    Not of duplicates, not of tables that failed.
    """
    left_out = outcome.not_taken
    rows = sum(bundle.rows for bundle in outcome.bundles)
    at = int(run_id) // 1000
    if rows <= INLINE_IDS:
        ranges = [(0, BUCKETS)]
        parts = [_range_index(store, ranges[0], outcome.bundles, left_out, folder)]
    else:
        ranges = _bucket_ranges(rows)
        work = partial(_range_index, bundles=outcome.bundles, left_out=left_out, folder=folder)
        parts = job.each(work, ranges)
    return tuple(
        (
            IndexFile(key := f"{log.folder(source_id)}/index/{run_id}-{number:03}.ids", count, at),
            SideFile(key, staged, count),
        )
        for number, (staged, count) in enumerate(parts)
        if count
    )


def _range_index(
    store: Store,
    buckets: tuple[int, int],
    bundles: Sequence[Bundle],
    left_out: Mapping[int, dedupe.Rows],
    folder: str,
) -> tuple[str, int]:
    hashes: Hashes = dedupe.taken_hashes(store, bundles, left_out, *buckets)
    key = f"{folder}/index/{buckets[0]:03}"
    if len(hashes):
        with guarded("write", key):
            store.put(key, index_bytes(hashes))
    return key, len(hashes)


def utc_text(at: datetime) -> str:
    """A time as all our records write it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
