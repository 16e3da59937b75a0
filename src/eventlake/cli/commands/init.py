"""`eventlake init`: the settings file, with every setting explained."""

from __future__ import annotations

from pathlib import Path

import click

from eventlake.cli.context import Context
from eventlake.errors import SetupError
from eventlake.settings import FILE_NAME, PROFILES, render_reference
from eventlake.store_errors import guarded


@click.command(epilog="Example: eventlake init --lake s3://my-bucket/lake")
@click.option("--lake", metavar="URL", help="Folder or URL of the lake.  [default: ./lake]")
@click.option("--profile", type=click.Choice(PROFILES), help="How events become tables.")
@click.pass_obj
def init(context: Context, lake: str | None, profile: str | None) -> None:
    """Write eventlake.toml, with every setting explained, in the current folder.

    Creates nothing else and never overwrites a file.
    """
    lake = lake if lake is not None else context.overrides.get("lake.url")  # type: ignore[assignment]  # set by --lake only
    given = {"lake.url": lake, "lake.profile": profile}
    text = render_reference({key: value for key, value in given.items() if value is not None})
    path = context.config or Path(FILE_NAME)
    with guarded("write", str(path)):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError as error:
            raise SetupError(
                "SETTINGS_EXIST",
                "there is a settings file already; it was not touched",
                "edit it, or name another file with --config",
                str(path),
            ) from error
    click.echo(f"wrote {path}")
    click.echo("next: `eventlake source add SLUG` connects a source of events")
