"""`eventlake source …`: connect and manage sources."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from eventlake.cli.context import Context
from eventlake.cli.output import print_fields, print_json, print_table
from eventlake.stage import sources
from eventlake.stage.sources import Source

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(epilog="Example: eventlake source add web --name 'Web shop'")
def source() -> None:
    """Connect and manage sources of events."""


@source.command(epilog="Example: eventlake source add web --set lake.track_prefix=track_")
@click.argument("slug")
@click.option("--id", "source_id", help="Keep the id of a source that exists elsewhere.")
@click.option("--name", help="A name for people.  [default: the slug]")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of this source alone."
)
@_JSON
@click.pass_obj
def add(
    context: Context,
    slug: str,
    source_id: str | None,
    name: str | None,
    settings: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    """Connect a source. Its write key is shown once and cannot be shown again."""
    own = dict(_pair(text) for text in settings)
    added, write_key = sources.add(
        context.store, slug, datetime.now(UTC), source_id=source_id, name=name, settings=own
    )
    _print_with_key(added, write_key, as_json=as_json)


@source.command("list", epilog="Example: eventlake source list --json")
@_JSON
@click.pass_obj
def list_(context: Context, *, as_json: bool) -> None:
    """List all sources of the lake."""
    found = sources.all_sources(context.store)
    if as_json:
        print_json([_record(each) for each in found])
        return
    print_table(
        ["slug", "id", "name", "enabled", "created"],
        [[each.slug, each.id, each.name, each.enabled, each.created_at] for each in found],
        empty="no sources yet; `eventlake source add SLUG` connects one",
    )


@source.command(epilog="Example: eventlake source show web")
@click.argument("slug")
@_JSON
@click.pass_obj
def show(context: Context, slug: str, *, as_json: bool) -> None:
    """Show one source, by slug or id."""
    _print(sources.find(context.store, slug), as_json=as_json)


@source.command(epilog="Example: eventlake source enable web")
@click.argument("slug")
@_JSON
@click.pass_obj
def enable(context: Context, slug: str, *, as_json: bool) -> None:
    """Let a source take and sync events again."""
    _print(sources.set_enabled(context.store, slug, enabled=True), as_json=as_json)


@source.command(epilog="Example: eventlake source disable web")
@click.argument("slug")
@_JSON
@click.pass_obj
def disable(context: Context, slug: str, *, as_json: bool) -> None:
    """Stop a source from taking and syncing events. Its tables stay."""
    _print(sources.set_enabled(context.store, slug, enabled=False), as_json=as_json)


@source.command("rotate-key", epilog="Example: eventlake source rotate-key web")
@click.argument("slug")
@_JSON
@click.pass_obj
def rotate_key(context: Context, slug: str, *, as_json: bool) -> None:
    """Replace the write key of a source. The old one stops working at once."""
    changed, write_key = sources.rotate_key(context.store, slug)
    _print_with_key(changed, write_key, as_json=as_json)


@source.command("copy-settings", epilog="Example: eventlake source copy-settings web ios")
@click.argument("origin", metavar="FROM")
@click.argument("target", metavar="TO")
@_JSON
@click.pass_obj
def copy_settings(context: Context, origin: str, target: str, *, as_json: bool) -> None:
    """Give a source the settings of another, on or off included."""
    _print(sources.copy_settings(context.store, origin, target), as_json=as_json)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--set")
    return key.strip(), value


def _record(each: Source) -> dict[str, object]:
    return {
        "id": each.id,
        "slug": each.slug,
        "name": each.name,
        "enabled": each.enabled,
        "created_at": each.created_at,
        "settings": each.settings,
    }


def _print(each: Source, *, as_json: bool) -> None:
    record = _record(each)
    if as_json:
        print_json(record)
        return
    own = {f"setting {key}": value for key, value in each.settings.items()}
    print_fields({key: v for key, v in record.items() if key != "settings"} | own)


def _print_with_key(each: Source, write_key: str, *, as_json: bool) -> None:
    if as_json:
        print_json(_record(each) | {"write_key": write_key})
        return
    _print(each, as_json=False)
    print_fields({"write_key": write_key})
    click.echo("Keep the write key now: it is stored as a hash only and cannot be shown again.")
