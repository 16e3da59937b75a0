"""A click group whose commands are imported only when they are called."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from eventlake.cli.context import Context


class LazyGroup(click.Group):
    """Commands by name: (`module:attribute`, short help). The group's help imports none of them."""

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's
        """The names, in the order a new user needs them."""
        return list(self._lazy)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  # click's
        cmd_name: str,
    ) -> click.Command | None:
        """The command, imported now, with the global options added."""
        if cmd_name not in self._lazy:
            return None
        module, _, attribute = self._lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        _with_global_options(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name for a command that does not exist."""
        if args and not args[0].startswith("-") and args[0] not in self._lazy:
            near = difflib.get_close_matches(args[0], list(self._lazy), n=1)
            also = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{also}")
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  # click's
        formatter: click.HelpFormatter,
    ) -> None:
        """The list in `--help`, from the registry alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._lazy.items()])


def global_options() -> list[click.Option]:
    """`--config`, `--lake` and `--debug`, which may stand before or after a command."""
    return [
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path),
            expose_value=False,
            envvar="EVENTLAKE_CONFIG",
            callback=_set_config,
            help="Settings file; otherwise eventlake.toml here or above.",
        ),
        click.Option(
            ["--lake"],
            metavar="URL",
            expose_value=False,
            callback=_set_lake,
            help="Folder or URL of the lake, instead of the setting lake.url.",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            envvar="EVENTLAKE_DEBUG",
            callback=_set_debug,
            help="Show where an error came from.",
        ),
    ]


def _with_global_options(command: click.Command) -> None:
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _with_global_options(inner)
        return
    present = {name for param in command.params for name in param.opts}
    command.params += [o for o in global_options() if not present.intersection(o.opts)]


def _set_config(ctx: click.Context, _param: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.ensure_object(Context).config = value


def _set_lake(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Context).overrides["lake.url"] = value


def _set_debug(ctx: click.Context, _param: click.Parameter, value: object) -> None:
    if value:
        ctx.ensure_object(Context).debug = True
