"""`eventlake demo`: a lake from nothing, by the commands a user would type."""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import click

from eventlake.cli import shop
from eventlake.cli.context import Context
from eventlake.errors import StateError, UsageError
from eventlake.settings import FILE_NAME, NOT_SETTINGS, render_reference
from eventlake.store_errors import guarded

_FOLDER = "demo-lake"
# Where Spark and Java are is the machine's business; all else must not reach into the demo.
_KEPT_SETTINGS = "EVENTLAKE_SPARK_"

_RESCUED = (
    "SELECT message_id, properties_name AS name, properties_price AS price, _rescued\n"
    "    FROM product_viewed WHERE _rescued IS NOT NULL"
)
_TWICE = (
    "SELECT count(*) AS rows_with_this_id FROM order_completed\n"
    "    WHERE message_id = '7be1f0c2-twice'"
)
_LATE = (
    "SELECT message_id, timestamp, received_at, day, hr FROM order_completed\n"
    "    WHERE received_at - timestamp > INTERVAL '1 hour'"
)
_REVENUE = (
    "SELECT day, context_library_name AS client, count(*) AS orders,\n"
    "           sum(properties_total)::DECIMAL(9,2) AS revenue\n"
    "    FROM order_completed GROUP BY ALL ORDER BY ALL"
)
_NEXT = (
    "SELECT properties_product_id AS product, count(*) AS views FROM product_viewed "
    "GROUP BY ALL ORDER BY views DESC, product"
)


@click.command(epilog="Example: eventlake demo --folder /tmp/shop-lake")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="A new or empty folder.  [default: demo-lake, demo-lake-2 where that is in use, …]",
)
@click.pass_obj
def demo(context: Context, folder: Path | None) -> int:
    """Make a lake from nothing and show what is in it.

    Writes two days of a small shop's events, syncs them as you would, and asks the tables. Touches
    nothing outside its folder, and no other lake.
    """
    folder = _made(folder)
    tour = _Tour(folder, _own_context(context, folder))
    for step in _steps(tour):
        code = step or 0
        if code:
            return code
    tour.say_next()
    return 0


def _steps(tour: _Tour) -> Iterator[int | None]:
    """The story. Each step gives an exit code; the first that is not 0 ends it."""
    click.echo(
        f"A lake from nothing, in {tour.folder}. Each line that begins with $ is a command as you\n"
        f"would type it, short for: {tour.typed('…')}"
    )
    days = _write_events(tour.folder)
    _heading("1. Events come in: a shop's Monday, from its web page and its phone app")
    _show_spellings(days["monday"])
    yield tour.run("source", "add", "shop", "--id", "shop")
    yield tour.run("send", "--source", "shop", str(tour.folder / "events" / "monday"))
    _heading("2. Tables come out: one per kind of event, columns typed by their values")
    yield tour.run("sync")
    _heading("3. Tuesday brings what every stream brings, and is synced into the same tables")
    yield tour.run("send", "--source", "shop", str(tour.folder / "events" / "tuesday"))
    yield tour.run("sync")
    _heading('4. Rescued: a price "n/a" is no decimal; the cell is null, the value is kept')
    yield tour.run("query", _RESCUED)
    _heading("5. Dropped: the phone sent one order on Monday and again on Tuesday")
    yield tour.run("query", _TWICE)
    _heading("6. Rejected: a line that was cut short, with the reason and where it stands")
    yield tour.run("rejects", "--source", "shop")
    _heading("7. Late: an order of Monday night that came on Tuesday lies where it was received")
    yield tour.run("query", _LATE)
    _heading("8. The account of both syncs: nothing is missing, nothing is there twice")
    _show_account(tour.context)
    _heading("9. Ask: the phone's orderId and the web's order_id are one column of one table")
    yield tour.run("query", _REVENUE)


@dataclass(frozen=True, slots=True)
class _Tour:
    """The demo's folder, and the commands run on it."""

    folder: Path
    context: Context

    def typed(self, command: str) -> str:
        """The line that runs a command on this lake from where the user stands."""
        options = ["--config", str(self.folder / FILE_NAME)]
        if "EVENTLAKE_LAKE_URL" in os.environ:
            options += ["--lake", str(self.folder / "lake")]
        return f"{shlex.join(_invocation())} {command} {shlex.join(options)}"

    def run(self, *args: str) -> int | None:
        """Shows a command and runs it, as `eventlake` itself would."""
        from eventlake.cli.main import cli

        click.secho(f"$ eventlake {_as_typed(args)}", bold=True)
        sys.stdout.flush()
        # Named here too: EVENTLAKE_CONFIG may name the settings of a lake that is not for play.
        full = [*args, "--config", str(self.context.config)]
        code = cli.main(full, prog_name="eventlake", standalone_mode=False, obj=self.context)
        return code if isinstance(code, int) else None

    def say_next(self) -> None:
        """Three commands that work as printed, from here."""
        _heading("Try next, from this folder:")
        for args in (
            ("schema", "show", "product_viewed"),
            ("query", _NEXT),
            ("rejects", "--source", "shop", "--json"),
        ):
            click.echo(self.typed(_as_typed(args)))
        click.echo("\nFor your own events begin with `init` in a new folder.")


def _heading(text: str) -> None:
    click.echo()
    click.secho(text, bold=True, fg="cyan")


def _as_typed(args: tuple[str, ...]) -> str:
    return " ".join(f'"{a.replace(chr(34), chr(92) + chr(34))}"' if " " in a else a for a in args)


def _invocation() -> list[str]:
    """How this process was started, in the shortest form that works again from this folder."""
    script = Path(sys.argv[0])
    if script.stem in ("__main__", "-c", "-m") or not script.exists():
        return [sys.executable, "-m", "eventlake"]
    # `uv run` puts the environment on the PATH of its child only.
    on_path = shutil.which(script.name) if "UV_RUN_RECURSION_DEPTH" not in os.environ else None
    if on_path and Path(on_path).samefile(script):
        return [script.name]
    here = os.path.relpath(script)
    return [str(script.absolute()) if here.startswith(os.pardir) else here]


def _made(asked: Path | None) -> Path:
    """The folder of this demo, made now. Raises UsageError when the one asked for is in use."""
    numbered = (Path(f"{_FOLDER}-{number}") for number in count(2))
    candidates = chain([Path(_FOLDER)], numbered) if asked is None else [asked]
    for folder in candidates:
        with guarded("make the folder", str(folder)):
            if not folder.exists():
                folder.mkdir(parents=True)
                return folder
            if folder.is_dir() and not any(folder.iterdir()):
                return folder
    raise UsageError(
        "WRONG_USAGE",
        "the folder of a demo must be new or empty; nothing in it was touched",
        "name another one, or leave out --folder",
        str(asked),
    )


def _own_context(context: Context, folder: Path) -> Context:
    """The demo's settings: those of its own file, whatever the environment says of other lakes."""
    config = folder / FILE_NAME
    with guarded("write", str(config)):
        config.write_text(render_reference({"lake.url": "./lake"}), "utf-8")
    env = {
        name: value
        for name, value in context.env.items()
        if not name.startswith("EVENTLAKE_")
        or name in NOT_SETTINGS
        or name.startswith(_KEPT_SETTINGS)
    }
    return Context(config=config, debug=context.debug, env=env)


def _write_events(folder: Path) -> Mapping[str, Mapping[str, list[bytes]]]:
    days = shop.days()
    for day, files in days.items():
        for name, lines in files.items():
            path = folder / "events" / day / name
            data = b"\n".join([*lines, b""])
            with guarded("write", str(path)):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    return days


def _show_spellings(files: Mapping[str, list[bytes]]) -> None:
    for name, lines in files.items():
        line = next(line for line in lines if b"Product Viewed" in line).decode()
        shown = line[line.index('"properties"') :].partition("}")[0] + "}"
        click.echo(f"{name}: {len(lines):,} lines such as {{… {shown} …}}")


def _show_account(context: Context) -> None:
    """Adds up the reports of all syncs and compares them with what lies in the tables."""
    from eventlake.catalog.tables import table_rows
    from eventlake.ledger import log
    from eventlake.report.table import stored_reports

    source = "shop"
    reports = [lines[0] for lines in stored_reports(context.store, source)]
    for what in ("events", "values"):
        names = list(reports[0][what])
        sums = {name: sum(report[what][name] for report in reports) for name in names}
        parts = " + ".join(f"{value:,} {name}" for name, value in sums.items() if name != "read")
        click.echo(f"{what}  {sums['read']:,} read = {parts}")
        if sums["read"] != sum(sums.values()) - sums["read"]:
            raise StateError("INTERNAL", f"the {what} of the demo do not add up", on=str(sums))
    state = log.load(context.store, source).state
    rows = sum(table["rows"] for table in table_rows(source, source, state))
    click.echo(f"rows in the {len(state.schemas)} tables: {rows:,}")
