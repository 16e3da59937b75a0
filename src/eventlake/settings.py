"""Settings: one frozen tree, read once from defaults, file, environment and flags.

Does not open stores or check permissions (`doctor` and the commands do); holds no global.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from eventlake.errors import SetupError
from eventlake.settings_tree import (
    LAYOUTS,
    PROFILES,
    SECTIONS,
    Lake,
    Secret,
    Settings,
    Spark,
    Stage,
    StoreSettings,
    Sync,
    default_of,
    known_keys,
)
from eventlake.settings_values import checked, from_text, invalid, unknown

__all__ = [
    "FILE_NAME",
    "LAYOUTS",
    "PROFILES",
    "Lake",
    "Secret",
    "Settings",
    "Spark",
    "Stage",
    "StoreSettings",
    "Sync",
    "check_source_settings",
    "find_file",
    "for_source",
    "is_source_key",
    "known_keys",
    "load",
    "render_reference",
]

FILE_NAME = "eventlake.toml"
ENV_PREFIX = "EVENTLAKE_"
# Variables with our prefix that are not settings: they steer this process or the test suite.
NOT_SETTINGS = frozenset(
    ENV_PREFIX + name
    for name in ("CONFIG", "DEBUG", "CACHE_DIR", "NO_CDS", "WARM", "TORTURE", "REQUIRE_SERVICES")
)

# What a source may set apart from everything about its sync.
_SOURCE_KEYS = frozenset({"lake.profile", "lake.layout", "lake.track_prefix"})


def find_file(start: Path) -> Path | None:
    """The nearest `eventlake.toml` in `start` or a folder above it."""
    for folder in (start, *start.parents):
        candidate = folder / FILE_NAME
        if candidate.is_file():
            return candidate
    return None


def load(
    path: Path | None,
    env: Mapping[str, str],
    overrides: Mapping[str, object],
    cwd: Path | None = None,
) -> Settings:
    """The settings that hold: default < file < environment < flag, by presence.

    `overrides` has dotted keys (`lake.url`). A relative lake path in a file starts at the
    file's folder, elsewhere at the current one.
    Raises SetupError INVALID_SETTING, SETTINGS_NOT_FOUND, INSUFFICIENT_PERMISSIONS.
    """
    here = cwd or Path.cwd()
    file = path if path is not None else find_file(here)
    values: dict[str, Any] = {}
    for origin, base, layer in (
        (str(file), file.absolute().parent if file else here, _from_file(file)),
        ("the environment", here, _from_env(env)),
        ("the command line", here, overrides),
    ):
        for dotted, raw in layer.items():
            value = checked(dotted, raw, origin)
            values[dotted] = _absolute(value, base) if dotted == "lake.url" else value
    values.setdefault("lake.url", _absolute(Lake().url, here))
    return Settings(**{name: kind(**_keys_of(name, values)) for name, kind in SECTIONS.items()})


def render_reference(overrides: Mapping[str, object] | None = None) -> str:
    """`eventlake.toml` with every key explained; what is not overridden is commented out."""
    given = overrides or {}
    lines = [
        "# Settings of this lake. A line that begins with `#` shows the default.",
        "# Precedence: default < this file < environment (EVENTLAKE_<SECTION>_<KEY>) < flag.",
    ]
    for name, kind in SECTIONS.items():
        lines += ["", f"# {kind.__doc__}", f"[{name}]"]
        for item in fields(kind):
            dotted = f"{name}.{item.name}"
            value = checked(dotted, given[dotted], "init") if dotted in given else default_of(item)
            mark = "" if dotted in given or dotted == "lake.url" else "# "
            lines += [f"# {item.metadata['help']}", f"{mark}{item.name} = {_toml(value)}"]
    return "\n".join(lines) + "\n"


def is_source_key(dotted: str) -> bool:
    """Whether a single source may differ from the lake in this setting."""
    return dotted.startswith("sync.") or dotted in _SOURCE_KEYS


def check_source_settings(given: Mapping[str, object]) -> dict[str, object]:
    """A source's own settings in their types; texts are read as in the environment.

    Raises SetupError INVALID_SETTING.
    """
    for dotted in given:
        if not is_source_key(dotted):
            known = tuple(name for name, _ in known_keys() if is_source_key(name))
            raise unknown(dotted, known, "the settings of a source", "setting")
    return {
        dotted: checked(
            dotted, from_text(dotted, raw) if isinstance(raw, str) else raw, "the source"
        )
        for dotted, raw in given.items()
    }


def for_source(settings: Settings, own: Mapping[str, object]) -> Settings:
    """The settings that hold for a source with these of its own."""
    values = check_source_settings(own)
    sections = {
        name: replace(getattr(settings, name), **_keys_of(name, values))
        for name in {key.partition(".")[0] for key in values}
    }
    return replace(settings, **sections)


def _keys_of(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    start = section + "."
    return {key.removeprefix(start): v for key, v in values.items() if key.startswith(start)}


def _from_file(file: Path | None) -> dict[str, object]:
    if file is None:
        return {}
    document = _parse(file)
    flat: dict[str, object] = {}
    for section, content in document.items():
        if section not in SECTIONS:
            raise unknown(section, tuple(SECTIONS), str(file), "section")
        if not isinstance(content, dict):
            raise invalid(section, f"must be a table: write [{section}]", str(file))
        flat |= {f"{section}.{key}": value for key, value in content.items()}
    return flat


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise SetupError(
            "SETTINGS_NOT_FOUND",
            "there is no such settings file",
            "name an existing file, or write one with `eventlake init`",
            str(file),
        ) from error
    except OSError as error:
        raise SetupError(
            "INSUFFICIENT_PERMISSIONS",
            f"the settings file cannot be read: {error.strerror}",
            "make it a file that this user may read",
            str(file),
        ) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(
            "INVALID_SETTING", f"the settings file is not TOML: {error}", _TOML_HINT, str(file)
        ) from error


_TOML_HINT = 'text values need quotes: url = "s3://bucket"'


def _from_env(env: Mapping[str, str]) -> dict[str, object]:
    names = {ENV_PREFIX + dotted.replace(".", "_").upper(): dotted for dotted, _ in known_keys()}
    found: dict[str, object] = {}
    for variable, text in env.items():
        if not variable.startswith(ENV_PREFIX) or variable in NOT_SETTINGS:
            continue
        if variable not in names:
            raise unknown(variable, tuple(names), "the environment", "variable")
        dotted = names[variable]
        found[dotted] = from_text(dotted, text)
    return found


def _absolute(url: str, base: Path) -> str:
    """A plain path as an absolute one; URLs stay as they are.

    >>> _absolute("s3://bucket/x", Path("/a"))
    's3://bucket/x'
    >>> _absolute("./lake", Path("/a"))
    '/a/lake'
    """
    if url.startswith("file:") and not url.startswith("file:/"):
        url = url.removeprefix("file:")
    if re.match(r"[a-z0-9]+:", url):
        return url
    # Not resolve(): a link in the path stays what the user wrote.
    return os.path.abspath(base / Path(url).expanduser())  # noqa: PTH100


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items()) + "}"
    text = value.reveal() if isinstance(value, Secret) else value
    return json.dumps(text, ensure_ascii=False)
