"""The golden cases: load one, run the oracle on it, and render its outcome as JSON.

`python -m oracle.golden CASE...` from the tests folder prints what `expected.json` should hold.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

from .casts import Cell
from .events import Settings, Staged
from .jsontext import Json, Number, dump, parse
from .oracle import Columns, Rescued, Result, Row, Tables, merged, sync_all

GOLDEN = Path(__file__).parent.parent / "golden"
KEY_PREFIX = "segment-stage/golden/"
FIRST_STAGED_AT = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)

Rows: TypeAlias = "list[Row]"


@dataclass(frozen=True)
class Case:
    """A golden case: the objects of each sync, the settings, and the expected outcome."""

    name: str
    syncs: list[list[Staged]]
    settings: Settings
    expected: Json


def names() -> list[str]:
    """The cases there are."""
    return sorted(path.name for path in GOLDEN.iterdir() if any(path.glob("events*.ndjson")))


def load(name: str) -> Case:
    """A case from its folder.

    Each `events*.ndjson`, in order of name, is one object and one sync, staged two hours apart.
    """
    folder = GOLDEN / name
    syncs = [
        [
            Staged(
                KEY_PREFIX + path.name,
                FIRST_STAGED_AT + timedelta(hours=2 * place),
                path.read_bytes(),
            )
        ]
        for place, path in enumerate(sorted(folder.glob("events*.ndjson")))
    ]
    settings_file, expected_file = folder / "settings.json", folder / "expected.json"
    settings = json.loads(settings_file.read_text()) if settings_file.exists() else {}
    expected = parse(expected_file.read_text("utf-8")) if expected_file.exists() else None
    return Case(name, syncs, Settings(**settings), expected)


def outcome(case: Case) -> Json:
    """What the oracle makes of a case, in the form of `expected.json`."""
    results = sync_all(case.syncs, case.settings)
    return {
        "syncs": [counts(result) for result in results],
        "tables": render_tables(results[-1].schemas, merged(results)),
    }


def render(result: Result) -> Json:
    """One result in the form of `expected.json`."""
    tables = render_tables(result.schemas, result.tables)
    return {"syncs": [counts(result)], "tables": tables}


def counts(result: Result) -> Json:
    """The counts of a sync, and the lines it refused."""
    events, values = result.events, result.values
    return {
        "events": {
            "read": _number(events.read),
            "rows": _number(events.rows),
            "duplicates": _number(events.duplicates),
            "rejected": _number(events.rejected),
        },
        "values": {
            "read": _number(values.read),
            "typed": _number(values.typed),
            "rounded": _number(values.rounded),
            "rescued": _number(values.rescued),
        },
        "rejects": [
            {"reason": r.reason, "key": r.key, "line": _number(r.line)}
            for r in sorted(result.rejects, key=lambda r: (r.key, r.line))
        ],
    }


def render_tables(schemas: dict[str, Columns], tables: Tables) -> Json:
    """Per table its columns, partitions and rows; nulls are left out, rows go by received time."""
    rendered: dict[str, Json] = {}
    for table in sorted(schemas):
        partitions = tables.get(table, {})
        rows = [row for _, group in sorted(partitions.items()) for row in _sorted(group)]
        rendered[table] = {
            "schema": [[name, column_type] for name, column_type in schemas[table]],
            "partitions": [f"day={day}/hr={hour}" for day, hour in sorted(partitions)],
            "rows": [render_row(row) for row in rows],
        }
    return rendered


def _sorted(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: (str(row["received_at"]), str(row["message_id"])))


def render_row(row: Row) -> Json:
    """A row as JSON: decimals and timestamps as strings, `_rescued` as the object it is."""
    return {name: _cell(cell) for name, cell in row.items() if cell is not None}


def _cell(cell: Cell | Rescued) -> Json:
    match cell:
        case dict():
            return {path: parse(text) for path, text in cell.items()}
        case bool() | str() | None:
            return cell
        case int():
            return _number(cell)
        case Decimal():
            return format(cell, "f")
        case datetime():
            naive = cell.astimezone(UTC).replace(tzinfo=None)
            return naive.isoformat(timespec="microseconds") + "Z"


def _number(value: int) -> Number:
    return Number(str(value))


def pretty(value: Json, indent: str = "") -> str:
    """Indented JSON, with what is short kept on one line."""
    flat = dump(value)
    if len(indent) + len(flat) <= 96 or not isinstance(value, dict | list):
        return _spaced(value)
    deeper = indent + "  "
    if isinstance(value, list):
        items = [deeper + pretty(item, deeper) for item in value]
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    members = [f"{deeper}{dump(key)}: {pretty(item, deeper)}" for key, item in value.items()]
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def _spaced(value: Json) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_spaced, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dump(k)}: {_spaced(v)}" for k, v in value.items()) + "}"
    return value.literal if isinstance(value, Number) else dump(value)


def main(arguments: Sequence[str]) -> None:
    for name in arguments:
        sys.stdout.write(pretty(outcome(load(name))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
