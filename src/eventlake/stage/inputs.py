"""PATH arguments → the inputs behind them: files, folders (recursive, sorted), standard input.

Opens nothing but folders, except to look at the first bytes of files with telling names missing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from eventlake.errors import InputError

STDIN = "-"
# Names that say what is inside; others in a folder are taken only when they begin like events.
_SUFFIXES = (".json", ".ndjson", ".jsonl", ".gz", ".zst", ".zstd")
_EVENT_STARTS = (b"{", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
# Segment's raw archive: segment-logs/<source>/<day>/<name>.gz, with other objects to be ignored.
_RAW_ARCHIVE = "segment-logs"


@dataclass(frozen=True, slots=True)
class Input:
    """A file to stage; `name` can be printed whatever bytes the path holds."""

    path: str
    streams: bool = False

    @property
    def name(self) -> str:
        return printable(self.path)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a folder that is no event file."""

    name: str
    why: str


Entry: TypeAlias = Input | Skipped | InputError


def inputs(argument: str) -> Iterator[Entry]:
    """What a PATH argument stands for. What cannot be used is a value, so the rest goes on."""
    if argument == STDIN:
        yield Input(STDIN, streams=True)
        return
    try:
        mode = Path(argument).stat().st_mode
    except OSError as error:
        yield unreadable(argument, error)
        return
    if not stat.S_ISDIR(mode):
        # Pipes too: `send <(command)` names one.
        yield Input(argument, streams=not stat.S_ISREG(mode))
        return
    found = False
    for entry in _walk(Path(argument), set()):
        found = found or not isinstance(entry, Skipped)
        yield entry
    if not found:
        hint = "event files end in " + ", ".join(_SUFFIXES)
        yield InputError(
            "INPUT_EMPTY", "the folder holds no event files", hint, printable(argument)
        )


def printable(path: str) -> str:
    """The path as text that any terminal and JSON can show."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def unreadable(path: str, error: OSError) -> InputError:
    """The error for a file or folder the system does not give us."""
    if isinstance(error, FileNotFoundError):
        linked = Path(path).is_symlink()
        hint = "the link points to nothing" if linked else "check the path"
        return InputError("INPUT_NOT_FOUND", "there is no such file", hint, printable(path))
    hint = "make it readable for this user" if isinstance(error, PermissionError) else ""
    message = f"the input cannot be read: {error.strerror or error}"
    return InputError("INPUT_UNREADABLE", message, hint, printable(path))


def _walk(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Entry]:
    """Depth first, by name. A folder met again, by whatever link, is not entered again."""
    try:
        status = folder.stat()
        entries = sorted(folder.iterdir(), key=os.fsencode)
    except OSError as error:
        yield unreadable(str(folder), error)
        return
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        yield Skipped(printable(str(folder)), "a link to a folder that was read already")
        return
    seen.add(identity)
    for path in entries:
        yield from _entry(path, seen)


def _entry(path: Path, seen: set[tuple[int, int]]) -> Iterator[Entry]:
    if path.name.startswith((".", "_")):
        yield Skipped(printable(str(path)), "hidden")
        return
    try:
        mode = path.stat().st_mode
    except OSError as error:
        yield unreadable(str(path), error)
        return
    if stat.S_ISDIR(mode):
        yield from _walk(path, seen)
        return
    why = _why_not(path) if stat.S_ISREG(mode) else "no regular file"
    yield Skipped(printable(str(path)), why) if why else Input(str(path))


def _why_not(path: Path) -> str | None:
    name = path.name.lower()
    if _RAW_ARCHIVE in path.absolute().parts:
        return None if name.endswith(".gz") else "not a .gz of a raw archive"
    if name.endswith(_SUFFIXES):
        return None
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:
        # Let staging report it.
        return None
    begins = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(_EVENT_STARTS)
    return None if begins else "not an event file by name or content"
