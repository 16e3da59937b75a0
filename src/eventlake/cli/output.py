"""How results are shown: plain text tables for people, JSON for programs.

Results go to stdout; progress and warnings to stderr, progress only on a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import click

from eventlake.errors import Error


def print_json(value: object) -> None:
    """One JSON document on one line."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    click.echo(json.dumps(value, ensure_ascii=not utf8, default=_plain))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Columns under headers, numbers to the right; `empty` instead when there are no rows."""
    filled = list(rows)
    click.echo(text_table(headers, filled) if filled else empty)


def print_fields(fields: Mapping[str, object]) -> None:
    """One `name  value` line per field."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        click.echo(f"{name.ljust(width)}  {_cell(value)}".rstrip())


def text_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The table as text.

    >>> print(text_table(["table", "rows"], [["page", 12], ["identify", 3]]))
    table     rows
    page        12
    identify     3
    """
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    numeric = [bool(column) and all(map(_is_number, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in [list(headers), *cells]
    ]
    return "\n".join(lines)


def described(error: Error) -> str:
    """An error as people read it: code, what was attempted on what, and what to do next."""
    on = f" ({error.on})" if error.on else ""
    hint = f"\n  hint: {error.hint}" if error.hint else ""
    return f"error {error.code}: {error.message}{on}{hint}"


def warn(message: str) -> None:
    """A warning on stderr."""
    click.echo(f"warning: {message}", err=True)


def progress(message: str) -> None:
    """Replaces the progress line, on a terminal only; an empty message clears it."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K" + message)
        sys.stderr.flush()


def human_bytes(size: float) -> str:
    """A size for people.

    >>> human_bytes(1536), human_bytes(12)
    ('1.5 KB', '12 B')
    """
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case _:
            # A control character in a name must not rewrite the terminal.
            return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
