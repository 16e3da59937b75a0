"""`eventlake send`: stage event files for the next sync."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from eventlake.cli.context import Context
from eventlake.cli.output import described, human_bytes, print_json, progress, warn
from eventlake.errors import InputError
from eventlake.stage import sources
from eventlake.stage.send import Sent, Target
from eventlake.stage.send import send as stage_all


@click.command(epilog="Example: eventlake send --source web events/ more.ndjson.gz")
@click.option("--source", "slug", required=True, metavar="SLUG", help="Whose events these are.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per input.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.pass_obj
def send(context: Context, slug: str, paths: tuple[str, ...], *, as_json: bool) -> None:
    """Stage NDJSON files, folders of them, a Segment raw archive, or `-` for standard input.

    Plain, .gz and .zst are told apart by content. The same content is staged once, however often
    it is sent, so a send that was cut off is repeated as it was. `eventlake sync` does the rest.
    """
    source = sources.find(context.store, slug)
    if not source.enabled:
        hint = f"`eventlake source enable {source.slug}`"
        raise InputError("SOURCE_DISABLED", "the source takes no events", hint, source.slug)
    stage = context.settings.stage
    target = Target(context.store, source.id, stage.object_mb << 20, stage.compression)
    outcomes: list[Sent] = []
    try:
        for sent in stage_all(paths, target):
            progress("")
            _show(sent, as_json=as_json)
            outcomes.append(sent)
            progress(f"{len(outcomes)} inputs, {human_bytes(sum(each.bytes for each in outcomes))}")
    finally:
        progress("")
    _finish(outcomes, as_json=as_json)


def _show(sent: Sent, *, as_json: bool) -> None:
    if as_json:
        print_json(_record(sent))
    elif sent.status == "skipped":
        click.echo(f"skipped  {sent.file}: {sent.why}", err=True)
    elif sent.status == "empty":
        click.echo(f"empty  {sent.file}")
    elif sent.status != "failed":
        new = f", {sent.new_objects} new" if 0 < sent.new_objects < len(sent.objects) else ""
        click.echo(
            f"{sent.status}  {sent.file}: {sent.lines:,} lines, {human_bytes(sent.bytes)}, "
            f"{len(sent.objects)} objects{new}"
        )
    if sent.damage:
        warn(
            f"{sent.file} is damaged at byte {sent.damage.offset}: {sent.damage.reason}; "
            f"what comes before line {sent.damage.line} is staged, the sync reports the rest"
        )


def _finish(outcomes: Sequence[Sent], *, as_json: bool) -> None:
    """The sum of all, and the error when some inputs failed or none held a line."""
    failed = [sent.error for sent in outcomes if sent.error]
    counts = Counter(sent.status for sent in outcomes)
    if len(failed) == len(outcomes) == 1:
        raise failed[0]
    for error in failed:
        click.echo(described(error), err=True)
    if failed:
        message = f"{len(failed)} of {len(outcomes)} inputs could not be staged; the others were"
        raise InputError("INPUT_INCOMPLETE", message, "correct those and send them again")
    if not counts["staged"] and not counts["already staged"]:
        damaged = any(sent.damage for sent in outcomes)
        what = "nothing could be read before the damage" if damaged else "there is nothing to stage"
        raise InputError("INPUT_EMPTY", what, "check what wrote the files")
    if len(outcomes) > 1 and not as_json:
        lines = sum(sent.lines for sent in outcomes if sent.status == "staged")
        click.echo(f"{lines:,} lines staged from {counts['staged']} of {len(outcomes)} inputs")


def _record(sent: Sent) -> dict[str, object]:
    damage, error = sent.damage, sent.error
    return {
        "file": sent.file,
        "status": sent.status,
        "objects": sent.objects,
        "new_objects": sent.new_objects,
        "lines": sent.lines,
        "bytes": sent.bytes,
        "damage": damage
        and {"offset": damage.offset, "line": damage.line, "reason": damage.reason},
        "error": error and {"code": error.code, "message": error.message, "hint": error.hint},
        "why": sent.why or None,
    }
