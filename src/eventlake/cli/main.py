"""The `eventlake` command: the list of commands, and one place where errors become exit codes.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 done in part (a command returns 3 itself).
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import IO, Any

import click

from eventlake import __version__
from eventlake.cli.context import Context
from eventlake.cli.lazy import LazyGroup, global_options
from eventlake.cli.output import described
from eventlake.errors import Error, StateError, UsageError

# Every command: where it is, and one line for `eventlake --help`. Nothing here is imported before
# it is called. Add a command by adding a line.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("eventlake.cli.commands.init:init", "Write eventlake.toml, every setting explained."),
    "source": ("eventlake.cli.commands.source:source", "Connect and manage sources of events."),
    "send": ("eventlake.cli.commands.send:send", "Stage event files for the next sync."),
    "sync": ("eventlake.cli.commands.sync:sync", "Turn staged events into rows."),
    "tables": ("eventlake.cli.commands.tables:tables", "List tables, their rows and sizes."),
    "schema": ("eventlake.cli.commands.tables:schema", "Look at the columns of tables."),
    "query": ("eventlake.cli.commands.query:query", "Run SQL over the lake."),
    "reports": ("eventlake.cli.commands.reports:reports", "List syncs and what they did."),
    "rejects": ("eventlake.cli.commands.reports:rejects", "List lines that are no events."),
    "demo": ("eventlake.cli.commands.demo:demo", "Make a lake from nothing in a minute."),
}

_EXIT_INTERRUPTED, _EXIT_TERMINATED, _EXIT_BROKEN_PIPE = 130, 143, 141


class _Terminated(BaseException):
    """SIGTERM came: unwind, so that `finally` blocks clean up."""


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: eventlake init && eventlake source add web",
)
@click.version_option(__version__, message="%(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Customer events in; typed, deduplicated, partitioned Parquet tables out."""
    ctx.ensure_object(Context)


cli.params = [*global_options(), *cli.params]


def main(args: Sequence[str] | None = None) -> None:
    """Runs one command and exits."""
    context = Context()
    _tolerant(sys.stdout)
    _tolerant(sys.stderr)
    signal.signal(signal.SIGTERM, _terminate)
    given = list(sys.argv[1:] if args is None else args)
    try:
        result = cli.main(given, prog_name="eventlake", standalone_mode=False, obj=context)
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
    except BaseException as error:
        code = _ended(error, context)
    sys.exit(code)


def _ended(error: BaseException, context: Context) -> int:
    """Says what went wrong, as far as there is anyone to read it; returns the exit code."""
    code = UsageError.exit_code
    match error:
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.format_message(), err=True)
        case click.ClickException():
            click.echo(described(_usage(error)), err=True)
        case click.Abort() | KeyboardInterrupt():
            code = _EXIT_INTERRUPTED
        case _Terminated():
            code = _EXIT_TERMINATED
        case BrokenPipeError() | SystemExit():
            # `eventlake … | head` is done; click turns that into an exit of its own. Without the
            # next line Python complains once more while closing.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = _EXIT_BROKEN_PIPE
        case Error():
            code = _report(error, context)
        case Exception():
            code = _report(_internal(error, context), context)
        case _:
            raise error
    return code


def _usage(error: click.ClickException) -> UsageError:
    ctx = getattr(error, "ctx", None)
    command = ctx.command_path if ctx else "eventlake"
    return UsageError("WRONG_USAGE", error.format_message(), f"try `{command} --help`")


def _internal(error: Exception, context: Context) -> StateError:
    hint = "please report it with this output" if context.debug else "run again with --debug"
    internal = StateError("INTERNAL", f"{type(error).__name__}: {error}", hint)
    internal.__cause__ = error
    return internal


def _report(error: Error, context: Context) -> int:
    if context.debug:
        traceback.print_exception(error, file=sys.stderr)
    click.echo(described(error), err=True)
    return error.exit_code


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise _Terminated


def _tolerant(stream: IO[Any]) -> None:
    """Never fail on a character the terminal cannot show."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")
