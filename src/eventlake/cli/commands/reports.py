"""`eventlake reports` and `eventlake rejects`.

What syncs have done, and the lines they could not take.
"""

from __future__ import annotations

import click

from eventlake.cli.context import Context
from eventlake.cli.output import print_json, print_table
from eventlake.cli.sources import chosen


@click.command(epilog="Example: eventlake reports --last 5")
@click.option("--source", "slug", metavar="SLUG", help="Only this source.")
@click.option(
    "--last", type=click.IntRange(min=1), default=20, show_default=True, help="The newest N."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per sync.")
@click.pass_obj
def reports(context: Context, slug: str | None, last: int, *, as_json: bool) -> None:
    """List syncs: when, how long, how many rows, what failed."""
    from eventlake.report.table import stored_reports

    slugs = {source.id: source.slug for source in chosen(context.store, slug)}
    only = next(iter(slugs)) if slug else None
    found = stored_reports(context.store, only, last)
    if as_json:
        for lines in found:
            print_json({**lines[0], "tables": lines[1:]})
        return
    print_table(
        ["started", "source", "status", "rows", "tables", "rejected", "duplicates", "error"],
        [
            [
                source["start_time"][:19],
                slugs.get(source["source_id"], source["source_id"]),
                source["status"],
                source.get("row_count", 0),
                len(tables),
                source.get("events", {}).get("rejected", 0),
                source.get("events", {}).get("duplicates", 0),
                source.get("error") or next((t["error"] for t in tables if t.get("error")), ""),
            ]
            for source, *tables in found
        ],
        empty="no syncs yet",
    )


@click.command(epilog="Example: eventlake rejects --source web --json > rejected.ndjson")
@click.option("--source", "slug", metavar="SLUG", help="Only this source.")
@click.option("--reason", help="Only lines rejected for this reason.")
@click.option("--last", type=click.IntRange(min=1), help="The newest N.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, payload included."
)
@click.pass_obj
def rejects(
    context: Context, slug: str | None, reason: str | None, last: int | None, *, as_json: bool
) -> None:
    """List lines that are no events: why, and where they stood."""
    from eventlake.report.rejects import stored_rejects

    found = [
        {"source": source.slug, **line}
        for source in chosen(context.store, slug)
        for line in stored_rejects(context.store, source.id)
        if reason in (None, line["reason"])
    ]
    found = found[-last:] if last else found
    if as_json:
        for line in found:
            print_json(line)
        return
    print_table(
        ["source", "reason", "object", "line", "detail"],
        [
            [line["source"], line["reason"], line["object"], line["line"], _detail(line)]
            for line in found
        ],
        empty="no rejected lines",
    )


def _detail(line: dict[str, object]) -> str:
    text = str(line.get("detail") or line.get("payload") or "")
    return text if len(text) <= 60 else f"{text[:59]}…"
