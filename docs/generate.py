"""Writes the reference pages from the code: `python docs/generate.py`, or `--check` to compare.

Settings, commands and error codes come from where they are defined. Fields of the report have
their meaning here; a field without one, or a meaning without a field, is an error.
"""  # noqa: INP001  # a script

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import click
from obstore.store import MemoryStore

from eventlake.cli.main import cli
from eventlake.errors import ERRORS, Error, UsageError
from eventlake.report.reports import segment_lines
from eventlake.report.table import reports_table
from eventlake.settings import ENV_PREFIX, is_source_key
from eventlake.settings_tree import SECTIONS, Secret, default_of
from eventlake.sync.publish import table_summary
from eventlake.sync.run import Progress, failed_summary

FOLDER = Path(__file__).parent / "reference"
WIDTH = 92

# Variables that are no settings: they steer one process.
VARIABLES = {
    "EVENTLAKE_CONFIG": "the settings file, as `--config`",
    "EVENTLAKE_DEBUG": "`1`: show where an error came from, as `--debug`",
    "EVENTLAKE_CACHE_DIR": "folder of the class archive; default `~/.cache/eventlake`",
    "EVENTLAKE_NO_CDS": "`1`: start Java without a class archive, and make none",
}
REASONS = {
    "not_json": "The line is no JSON. `NaN` and `Infinity` are no JSON.",
    "not_utf8": "The line holds bytes that are no UTF-8.",
    "not_object": "The line is JSON, but no object.",
    "unknown_type": "`type` is missing or none of identify, track, page, screen, group, alias.",
    "missing_event": "A track call without an `event` that is a non-empty string.",
    "too_large": "The line is larger than the setting `sync.max_event_kb`.",
    "too_deep": "The line is nested deeper than the parser goes, about 1,000 levels.",
    "damaged": "The archive is damaged from here on. Counts as one line read and rejected.",
}
SUMMARY = {
    "run_id": "When the sync began, in nanoseconds since 1970. `null`: nothing was new.",
    "source_id": "The source.",
    "status": "`finished`, `partial` (some tables failed) or `failed`.",
    "events": "The account of events: `read = rows + duplicates + rejected + suppressed`.",
    "values": "The account of values: `read = typed + rounded + rescued`.",
    "tables": "One object per table, see below.",
    "started_at": "UTC, milliseconds.",
    "finished_at": "UTC, milliseconds.",
    "phases": "Seconds per phase: plan, read, dedupe, settle, write, index, publish.",
    "bytes_in": "Size of the staged objects read, as stored.",
    "bytes_out": "Size of the Parquet files written.",
    "events_per_s": "Events read by seconds of all phases.",
    "rejected_reasons": "Rejected lines by reason.",
    "refused_tables": "Tables beyond `sync.max_tables`; their events are in `other_events`.",
    "error_code": "Of a failed sync, see [errors](errors.md).",
    "error": "Of a failed sync: what was attempted on what.",
}
TABLE = {
    "table_name": "The table.",
    "row_count": "Rows written.",
    "is_new": "Whether this sync made the table.",
    "partitions": "The partitions that got rows, as `{day, hr}` or the keys of the layout.",
    "new_columns": "Columns added, as `{name, type}`.",
    "values": "The account of the table's values.",
    "refused_columns": "Columns beyond `sync.max_columns`; not of a table that failed.",
    "error": "Why the table failed. Its events are taken by the next sync.",
    "error_code": "See [errors](errors.md).",
}
STORED = {
    "type": "`source` for the sync, `event` for one table.",
    "workspace_id": "Empty; kept for queries written for Segment.",
    "run_id": "The id of the sync.",
    "start_time": "UTC, `YYYY-MM-DD HH:MM:SS.ffffff`.",
    "finish_time": "The same form.",
    "duration_mins": "Whole minutes.",
    "status": "`finished` or `failed`. A partly failed sync is finished, with failed tables.",
    "error": "What was attempted on what.",
    "error_code": "See [errors](errors.md).",
    "table_name": "The table; empty for the sync.",
    "database": "The source's database.",
    "partitions": "As in the summary.",
    "new_columns": "As in the summary.",
    "row_count": "Rows written.",
    "is_new": "As in the summary.",
    "replay": "Whether the sync replayed old events.",
    "replay_from": "Of a replay.",
    "replay_to": "Of a replay.",
    "emr_cluster_id": "Of a sync on EMR.",
    "s3_bucket": "The bucket of the lake; empty for a folder.",
    "source_id": "The source.",
    "day": "The day of the sync, UTC.",
    "events": "The account of events. In `report.json` only.",
    "values": "The account of values. In `report.json` only.",
    "phases": "Seconds per phase. In `report.json` only.",
}


def settings_page() -> str:
    lines = [
        "# Settings",
        "",
        "`eventlake init` writes an `eventlake.toml` with every setting and its default. A setting",
        "is taken from the first of: flag, environment, file, default. The file is the one that",
        "`--config` or `EVENTLAKE_CONFIG` names, else the nearest `eventlake.toml` in the current",
        "folder or above. An unknown key is an error that names the nearest known one.",
        "",
        "A setting marked *source* may differ per source:",
        "`eventlake source add SLUG --set KEY=VALUE`.",
    ]
    for section, kind in SECTIONS.items():
        lines += ["", f"## [{section}]", "", str(kind.__doc__), ""]
        lines += ["| Setting | Type | Default | Meaning |", "|---|---|---|---|"]
        for item in fields(kind):
            dotted = f"{section}.{item.name}"
            default = default_of(item)
            mark = " *source*" if is_source_key(dotted) else ""
            lines.append(
                f"| `{dotted}`{mark} | {_type_name(default)} | {_default(default)} "
                f"| {_cell(item.metadata['help'])} |"
            )
    lines += [
        "",
        "## Environment",
        "",
        f"The variable of a setting is `{ENV_PREFIX}<SECTION>_<KEY>`: `sync.dedup_days` is",
        f"`{ENV_PREFIX}SYNC_DEDUP_DAYS`. Tables are written as TOML:",
        f'`{ENV_PREFIX}SPARK_CONF=\'{{"spark.executor.memory" = "4g"}}\'`. Beside them:',
        "",
        "| Variable | Meaning |",
        "|---|---|",
        *(f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items()),
    ]
    return _page(lines)


def cli_page() -> str:
    lines = [
        "# Commands",
        "",
        "Results go to stdout, progress and warnings to stderr, progress only on a terminal.",
        "`--json` prints one document, or one per line.",
        "",
        "| Exit code | Meaning |",
        "|---|---|",
        "| 0 | Done. |",
        "| 1 | Failed: `error CODE: what (on what)` and a hint, see [errors](errors.md). |",
        f"| {UsageError.exit_code} | Wrong use of the command line. |",
        "| 3 | Done in part: tables failed, or more than `sync.rejected_threshold` was rejected. |",
        "| 130, 143 | Interrupted by Ctrl-C or SIGTERM. The next run carries on. |",
    ]
    root = click.Context(cli, info_name="eventlake", **cli.context_settings)
    for path, command, context in _commands(cli, root):
        context.terminal_width = context.max_content_width = WIDTH
        lines += ["", f"## {path}", "", "```text", command.get_help(context).rstrip(), "```"]
    return _page(lines)


def _commands(
    command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, click.Context(inner, context, info_name=name))


def errors_page() -> str:
    lines = [
        "# Error codes and reasons",
        "",
        "An error is what a person or a scheduler must act on. It has a stable code, what was",
        "attempted on what, and a hint. `--debug` shows where it came from.",
        "",
        "| Class | Exit | Meaning |",
        "|---|---|---|",
        *(
            f"| {kind.__name__} | {kind.exit_code} | {_first_line(kind)} |"
            for kind in (*Error.__subclasses__(),)
        ),
        "",
        "## Codes",
        "",
        "| Code | Class | Meaning |",
        "|---|---|---|",
        *(
            f"| `{code}` | {kind.__name__} | {_cell(meaning)} |"
            for code, (kind, meaning) in sorted(ERRORS.items())
        ),
        "",
        "## Reasons of rejected lines",
        "",
        "Bad data is no error: a line that is no event is rejected, kept and counted.",
        "`eventlake rejects` lists them.",
        "",
        "| Reason | Meaning |",
        "|---|---|",
        *(f"| `{reason}` | {meaning} |" for reason, meaning in REASONS.items()),
    ]
    return _page(lines)


def report_page() -> str:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    summary = failed_summary("id", Error("CODE", "what"), now, now, Progress())
    table = table_summary("table")
    sample = {**summary, "status": "finished", "tables": [table]}
    stored = {key for line in segment_lines(sample, "db", "bucket") for key in line}
    columns = {field.name: str(field.type) for field in reports_table(MemoryStore()).schema}
    lines = [
        "# Reports",
        "",
        "A sync tells what it did in two forms: the summary that `eventlake sync --json` prints,",
        "and the report that is stored in the lake.",
        "",
        "## Summary",
        "",
        "One JSON object per source.",
        "",
        "| Field | Meaning |",
        "|---|---|",
        *_described(summary, SUMMARY),
        "",
        "Each of `tables`:",
        "",
        "| Field | Meaning |",
        "|---|---|",
        *_described({**table, "refused_columns": []}, TABLE),
        "",
        "## Stored report",
        "",
        "`segment-data/reports/day=<day>/source=<source-id>/run_id=<run-id>/report.json` holds one",
        "JSON object per line: first the sync (`type` is `source`), then each table (`event`).",
        "Fields without a value are left out. `eventlake query` reads all reports as the table",
        "`__segment_datalake.sync_reports`, with the columns that have a type here.",
        "",
        "| Field | Type | Meaning |",
        "|---|---|---|",
    ]
    unknown = (stored | set(columns)) ^ set(STORED)
    if unknown:
        raise SystemExit(f"docs/generate.py: describe, or forget, {sorted(unknown)}")
    lines += [
        f"| `{name}` | {_code(columns.get(name, ''))} | {meaning} |"
        for name, meaning in STORED.items()
    ]
    return _page(lines)


def _described(found: Mapping[str, object], meanings: Mapping[str, str]) -> list[str]:
    unknown = set(found) ^ set(meanings)
    if unknown:
        raise SystemExit(f"docs/generate.py: describe, or forget, {sorted(unknown)}")
    return [f"| `{name}` | {meaning} |" for name, meaning in meanings.items()]


def _type_name(default: object) -> str:
    if isinstance(default, Secret):
        return "secret"
    names = {bool: "true or false", int: "integer", float: "number", str: "text", dict: "table"}
    return names[type(default)]


def _default(default: object) -> str:
    if default in ("", {}) or isinstance(default, Secret):
        return ""
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    return _code(shown)


def _code(text: str) -> str:
    return f"`{_cell(text)}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _first_line(kind: type[Error]) -> str:
    return (kind.__doc__ or "").partition("\n")[0]


def _page(lines: list[str]) -> str:
    return "\n".join([*lines, "", "*Made from the code by `make docs`.*", ""])


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "cli.md": cli_page,
    "errors.md": errors_page,
    "report.md": report_page,
}


def stale() -> list[str]:
    """The pages that do not say what the code says."""
    return [name for name, page in PAGES.items() if _written(name) != page()]


def _written(name: str) -> str:
    path = FOLDER / name
    return path.read_text("utf-8") if path.exists() else ""


def main(arguments: list[str]) -> int:
    """Writes the pages, or tells which are stale."""
    if arguments == ["--check"]:
        for name in (found := stale()):
            sys.stderr.write(f"docs/reference/{name} is stale: run `make docs`\n")
        return 1 if found else 0
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
