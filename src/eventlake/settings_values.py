"""One setting: what a text or a TOML value means for its type, and what is wrong with it."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from eventlake.errors import SetupError
from eventlake.settings_tree import SECTIONS, Secret, default_of, known_keys


def from_text(dotted: str, text: str) -> object:
    """What a variable's text means for the type of its setting."""
    default = default_of(field_of(dotted, "the environment"))
    if isinstance(default, bool):
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(
            text.strip().lower(), text
        )
    if isinstance(default, int | float | dict):
        try:
            return tomllib.loads(f"x = {text}")["x"]
        except tomllib.TOMLDecodeError:
            return text
    return text


def checked(dotted: str, raw: object, origin: str) -> Any:
    """The value in the type of its setting.

    Raises SetupError INVALID_SETTING.
    """
    item = field_of(dotted, origin)
    value = _typed(dotted, raw, default_of(item), origin)
    check = item.metadata["check"]
    wrong = check(value) if check else None
    if wrong:
        raise invalid(dotted, wrong, origin)
    return value


def _typed(dotted: str, raw: object, default: object, origin: str) -> Any:
    match default:
        case bool():
            fits = isinstance(raw, bool)
        case int():
            fits = isinstance(raw, int) and not isinstance(raw, bool)
        case float():
            fits = isinstance(raw, int | float) and not isinstance(raw, bool)
            raw = float(raw) if fits and isinstance(raw, int) else raw
        case Secret():
            fits = isinstance(raw, str | Secret)
            raw = Secret(raw) if isinstance(raw, str) else raw
        case dict():
            fits = isinstance(raw, dict)
            raw = _flat_table(raw) if isinstance(raw, dict) else raw
        case _:
            fits = isinstance(raw, str)
    if not fits:
        wanted = _TYPE_NAMES.get(type(default), "a text in quotes")
        raise invalid(dotted, f"must be {wanted}", origin)
    return raw


_TYPE_NAMES: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    dict: "a table",
}


def _flat_table(table: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """A free table as text: nested keys joined by dots, because TOML reads `spark.x = 1` so."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat_table(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value if isinstance(value, str) else json.dumps(value, default=str)
    return flat


def field_of(dotted: str, origin: str) -> Field[Any]:
    section, _, key = dotted.partition(".")
    for item in fields(SECTIONS[section]) if section in SECTIONS else ():
        if item.name == key:
            return item
    raise unknown(dotted, tuple(name for name, _ in known_keys()), origin, "setting")


def invalid(dotted: str, wrong: str, origin: str) -> SetupError:
    return SetupError(
        "INVALID_SETTING",
        f"setting `{dotted}` from {origin}: {wrong}",
        f"correct `{dotted}`; `eventlake init` writes a file that explains every setting",
        dotted,
    )


def unknown(name: str, known: tuple[str, ...], origin: str, what: str) -> SetupError:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return SetupError(
        "INVALID_SETTING",
        f"unknown {what} `{name}` in {origin}",
        f"did you mean `{near[0]}`?" if near else "",
        name,
    )
