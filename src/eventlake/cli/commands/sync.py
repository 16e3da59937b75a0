"""`eventlake sync`: everything staged becomes rows."""

from __future__ import annotations

from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from eventlake.cli.context import Context
from eventlake.cli.sources import chosen
from eventlake.cli.sync_output import Shown, show_plan, show_summary
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
def sync(context: Context, slug: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Turn staged events into rows: typed, deduplicated, partitioned, committed whole.

    Safe to interrupt and to run twice at once: the next sync carries on. Exits 1 when a source
    failed, 3 when tables failed or more events were rejected than the setting
    sync.rejected_threshold allows.
    """
    sources = chosen(context.store, slug)
    if dry_run:
        for source in sources:
            show_plan(source, _plan(context.lake_of(source), source), as_json=as_json)
        return 0
    codes = [0]
    with _Spark(context) as spark:
        for source in sources:
            lake = context.lake_of(source)
            summary = _sync_one(lake, source, spark)
            show_summary(source, summary, as_json=as_json)
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
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
