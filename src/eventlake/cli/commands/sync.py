"""`eventlake sync`: everything staged becomes rows."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from eventlake.cli.context import Context
from eventlake.cli.output import human_bytes, print_json, progress, text_table, warn
from eventlake.cli.sources import chosen
from eventlake.errors import SetupError

if TYPE_CHECKING:
    from eventlake.stage.sources import Source
    from eventlake.sync.plan import SyncPlan
    from eventlake.sync.source import Lake

_PART = 3


@click.command(epilog="Example: eventlake sync --source web")
@click.option("--source", "slug", metavar="SLUG", help="Only this source.")
@click.option("--dry-run", is_flag=True, help="Print what would be read, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per source.")
@click.pass_obj
def sync(context: Context, slug: str | None, dry_run: bool, as_json: bool) -> int:
    """Turn staged events into rows: typed, deduplicated, partitioned, committed whole.

    Safe to interrupt and to run twice at once: the next sync carries on. Exits 1 when a source failed, 3 when tables failed or
    more events were rejected than the setting sync.rejected_threshold allows.
    """
    sources = chosen(context.store, slug)
    if dry_run:
        for source in sources:
            _show_plan(source, _plan(context.lake_of(source), source), as_json)
        return 0
    codes = [0]
    with _Spark(context) as spark:
        for source in sources:
            lake = context.lake_of(source)
            summary = _sync_one(lake, source, spark)
            _show(source, summary, as_json)
            codes.append(_exit_code(summary, lake.settings.sync.rejected_threshold))
    return 1 if 1 in codes else max(codes)


def _plan(lake: Lake, source: Source) -> SyncPlan:
    from eventlake.compute.session import cores
    from eventlake.sync.source import plan_source, state_of

    return plan_source(lake, source, state_of(lake, source), cores(lake.settings.spark.master) or 8)


class _Spark:
    """A Spark session that starts when the first source has something to read."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pending: Any = None
        self._session: Any = None

    def __enter__(self) -> _Spark:
        return self

    def __exit__(self, kind: Any, error: Any, at: Any) -> None:
        if self._pending is not None:
            self._pending.__exit__(kind, error, at)

    def begin(self) -> None:
        """Let Java start while the caller goes on."""
        if self._pending is None:
            from eventlake.compute.session import launch

            chosen = self._context.settings.spark
            self._pending = launch(
                chosen.master,
                chosen.conf,
                driver_memory=chosen.driver_memory,
                java_home=chosen.java_home,
                python=chosen.python,
            )

    def session(self) -> Any:
        """The session, started now if it was not."""
        self.begin()
        self._session = self._pending.session()
        return self._session

    def tasks_done(self) -> int:
        """Tasks of the running Spark job that are done."""
        try:
            tracker = self._session.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            return sum(stage.numCompletedTasks for stage in stages if stage)
        except Exception:
            # only for show: a session without a tracker, or one that is just going away
            return 0


def _sync_one(lake: Lake, source: Source, spark: _Spark) -> dict[str, Any]:
    from eventlake.sync.quick import anything_to_do

    if anything_to_do(lake.store, source.id):
        # Java needs two seconds: let it start while Arrow is imported
        spark.begin()
    from eventlake.compute.session import cores
    from eventlake.sync.run import SparkJob
    from eventlake.sync.source import sync_source

    workers = cores(lake.settings.spark.master) or spark.session().sparkContext.defaultParallelism
    job = SparkJob(spark.begin, spark.session, lake.address)
    with Shown(source.slug, spark.tasks_done) as shown:
        return sync_source(lake, source, job, workers, lambda: datetime.now(UTC), shown.progress)


def _exit_code(summary: dict[str, Any], threshold: float) -> int:
    if summary["status"] == "failed":
        return SetupError.exit_code
    events = summary["events"]
    too_many = events["rejected"] > threshold * events["read"]
    return _PART if summary["status"] == "partial" or too_many else 0


class Shown:
    """The progress line: phase, tasks, events, rate and time left; only on a terminal."""

    def __init__(self, slug: str, tasks_done: Callable[[], int]) -> None:
        from eventlake.sync.run import Progress

        self.progress = Progress(self._phase)
        self._slug = slug
        self._tasks_done = tasks_done
        self._name, self._tasks, self._since = "", 0, time.monotonic()
        self._started = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Shown:
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        progress("")

    def _phase(self, name: str, tasks: int) -> None:
        self._name, self._tasks, self._since = name, tasks, time.monotonic()

    def _draw(self) -> None:
        while not self._over.wait(0.25):
            progress(self._line())

    def _line(self) -> str:
        parts = [f"{self._slug}: {self._name}"]
        done = self._tasks_done() if self._tasks else 0
        in_phase = time.monotonic() - self._since
        if self._tasks:
            parts.append(f"{done}/{self._tasks} tasks")
        if self.progress.events:
            rate = self.progress.events / max(0.001, time.monotonic() - self._started)
            parts += [f"{self.progress.events:,} events", f"{rate:,.0f}/s"]
        if done:
            parts.append(f"{in_phase / done * (self._tasks - done):.0f} s left")
        return ", ".join(parts)


def _show_plan(source: Source, plan: SyncPlan, as_json: bool) -> None:
    if as_json:
        tasks = [{"number": t.number, "bytes": t.size, "objects": [i.key for i in t.inputs]} for t in plan.tasks]
        print_json({"source": source.slug, "source_id": source.id, "bytes": plan.size, "tasks": tasks})
        return
    if not plan.tasks:
        click.echo(f"{source.slug}: nothing new to sync")
        return
    click.echo(
        f"{source.slug}: {len(plan.inputs):,} staged objects, {human_bytes(plan.size)}, in {len(plan.tasks)} tasks"
    )
    rows = [[t.number, i.key, human_bytes(i.size), "owed" if i.only else "new"] for t in plan.tasks for i in t.inputs]
    click.echo(text_table(["task", "object", "size", "why"], rows))


def _show(source: Source, summary: dict[str, Any], as_json: bool) -> None:
    hint = summary.pop("hint", None)
    if as_json:
        print_json(summary)
        return
    if summary["status"] == "failed":
        click.echo(f"{source.slug}: failed\nerror {summary['error']}" + (f"\n  hint: {hint}" if hint else ""), err=True)
        return
    events, values = summary["events"], summary["values"]
    if summary["run_id"] is None:
        click.echo(f"{source.slug}: nothing new to sync")
        return
    seconds = sum(summary["phases"].values())
    click.echo(f"{source.slug}: {summary['status']} in {seconds:.1f} s, {human_bytes(summary['bytes_in'])} read")
    click.echo("  events  " + _sum("read", events))
    click.echo("  values  " + _sum("read", values))
    reasons = summary.get("rejected_reasons") or {}
    if reasons:
        listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        click.echo(f"  rejected: {listed} (`eventlake rejects --source {source.slug}`)")
    rows = [
        [
            table["table_name"],
            table["row_count"],
            table["values"]["rescued"] + table["values"]["rounded"],
            "new table" if table["is_new"] else f"{len(table['new_columns'])} new" if table["new_columns"] else "",
            table["error"] or "",
        ]
        for table in summary["tables"]
    ]
    if rows:
        click.echo(text_table(["table", "rows", "rescued", "columns", "error"], rows))
    for table in summary["refused_tables"]:
        warn(f"no room for the table {table}: its events are in other_events (sync.max_tables)")
    for table in summary["tables"]:
        if table.get("refused_columns"):
            count = len(table["refused_columns"])
            warn(f"{count:,} columns of {table['table_name']} have no room: kept in _rescued (sync.max_columns)")


def _sum(whole: str, counts: dict[str, int]) -> str:
    parts = " + ".join(f"{count:,} {name}" for name, count in counts.items() if name != whole)
    return f"{counts[whole]:,} {whole} = {parts}"
