"""What `eventlake sync` shows: progress while it runs, the plan, and the accounts at the end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import click

from eventlake.cli.output import human_bytes, print_json, progress, text_table, warn

if TYPE_CHECKING:
    from eventlake.stage.sources import Source
    from eventlake.sync.plan import SyncPlan


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

    def __enter__(self) -> Self:
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


def show_plan(source: Source, plan: SyncPlan, *, as_json: bool) -> None:
    if as_json:
        tasks = [
            {"number": t.number, "bytes": t.size, "objects": [i.key for i in t.inputs]}
            for t in plan.tasks
        ]
        print_json(
            {"source": source.slug, "source_id": source.id, "bytes": plan.size, "tasks": tasks}
        )
        return
    if not plan.tasks:
        click.echo(f"{source.slug}: nothing new to sync")
        return
    click.echo(
        f"{source.slug}: {len(plan.inputs):,} staged objects, {human_bytes(plan.size)}, "
        f"in {len(plan.tasks)} tasks"
    )
    rows = [
        [t.number, i.key, human_bytes(i.size), "owed" if i.only else "new"]
        for t in plan.tasks
        for i in t.inputs
    ]
    click.echo(text_table(["task", "object", "size", "why"], rows))


def show_summary(source: Source, summary: dict[str, Any], *, as_json: bool) -> None:
    """What a sync has done, or why it did not."""
    hint = summary.pop("hint", None)
    if as_json:
        print_json(summary)
    elif summary["status"] == "failed":
        more = f"\n  hint: {hint}" if hint else ""
        click.echo(f"{source.slug}: failed\nerror {summary['error']}{more}", err=True)
    elif summary["run_id"] is None:
        click.echo(f"{source.slug}: nothing new to sync")
    else:
        _show_accounts(source, summary)
        _show_tables(summary)


def _show_accounts(source: Source, summary: dict[str, Any]) -> None:
    seconds = sum(summary["phases"].values())
    size = human_bytes(summary["bytes_in"])
    click.echo(f"{source.slug}: {summary['status']} in {seconds:.1f} s, {size} read")
    click.echo("  events  " + _sum("read", summary["events"]))
    click.echo("  values  " + _sum("read", summary["values"]))
    reasons = summary.get("rejected_reasons") or {}
    if reasons:
        listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        click.echo(f"  rejected: {listed} (`eventlake rejects --source {source.slug}`)")


def _show_tables(summary: dict[str, Any]) -> None:
    rows = [
        [
            table["table_name"],
            table["row_count"],
            table["values"]["rescued"] + table["values"]["rounded"],
            _news(table),
            table["error"] or "",
        ]
        for table in summary["tables"]
    ]
    if rows:
        click.echo(text_table(["table", "rows", "rescued", "columns", "error"], rows))
    for table in summary["refused_tables"]:
        warn(f"no room for the table {table}: its events are in other_events (sync.max_tables)")
    for table in summary["tables"]:
        count = len(table.get("refused_columns", ()))
        if count:
            warn(
                f"{count:,} columns of {table['table_name']} have no room: "
                "kept in _rescued (sync.max_columns)"
            )


def _news(table: dict[str, Any]) -> str:
    if table["is_new"]:
        return "new table"
    return f"{len(table['new_columns'])} new" if table["new_columns"] else ""


def _sum(whole: str, counts: dict[str, int]) -> str:
    parts = " + ".join(f"{count:,} {name}" for name, count in counts.items() if name != whole)
    return f"{counts[whole]:,} {whole} = {parts}"
