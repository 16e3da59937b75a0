"""Read: the staged objects of one task become bundles of packets in the run's folder.

Lines that are no events become rejects.

What happens to a line is in `reader`; this is the part that touches the store.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
import zstandard
from isal import isal_zlib

from eventlake.model.layout import EPOCH
from eventlake.profiles.profile import Kind, Profile
from eventlake.stage.decode import Damage, Lines, TooLarge, chunks, lines
from eventlake.stage.inbox import damage_of
from eventlake.stage.keys import is_damage_record
from eventlake.store import Store, guarded
from eventlake.store import read as read_object
from eventlake.sync.columns import Guards
from eventlake.sync.fills import Origin
from eventlake.sync.packets import Bundle
from eventlake.sync.reader import Reader, Reject


@dataclass(frozen=True, slots=True)
class Input:
    """A staged object to be read.

    `only`: the kinds still owed of it, when an earlier sync has read the rest.
    """

    key: str
    size: int
    e_tag: str
    staged_us: int
    only: frozenset[Kind] | None = None


@dataclass(frozen=True, slots=True)
class ReadTask:
    """What one Spark task reads."""

    number: int
    inputs: tuple[Input, ...]

    @property
    def size(self) -> int:
        """Bytes as staged."""
        return sum(each.size for each in self.inputs)


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How lines are read, the same for all tasks of a run."""

    folder: str
    profile: Profile
    guards: Guards
    max_event_bytes: int
    bundle_bytes: int


@dataclass(frozen=True, slots=True)
class Read:
    """What a read task has done."""

    task: ReadTask
    events: int
    rejected: int
    bundles: tuple[Bundle, ...]
    rejects: tuple[tuple[str, int], ...]  # objects of rejected lines, and how many each holds
    reasons: tuple[tuple[str, int], ...]
    checks: tuple[tuple[str, int], ...]  # CRC of each staged object


def read(store: Store, task: ReadTask, settings: ReadSettings) -> Read:
    """Read a task's staged objects into bundles of packets in the run's folder."""
    # the name carries an attempt, so that a task that Spark runs twice never mixes its objects
    stem = f"{settings.folder}/read/{task.number:06}-{secrets.token_hex(4)}"

    def write(suffix: str, data: bytes) -> str:
        key = f"{stem}-{suffix}"
        with guarded("write", key):
            store.put(key, data)
        return key

    reader = Reader(settings.profile, settings.guards, write)
    rejected = _Rejected(write)
    checks = [
        (each.key, _read_input(store, each, settings, reader, rejected)) for each in task.inputs
    ]
    reader.flush()
    rejected.take(reader)
    return Read(
        task,
        reader.events,
        sum(rejected.reasons.values()),
        tuple(reader.bundles),
        tuple(rejected.written),
        tuple(sorted(rejected.reasons.items())),
        tuple(checks),
    )


class _Rejected:
    """The rejected lines of a task, written whenever a bundle is."""

    def __init__(self, write: Callable[[str, bytes], str]) -> None:
        self.written: list[tuple[str, int]] = []
        self.reasons: Counter[str] = Counter()
        self._write = write

    def take(self, reader: Reader) -> None:
        """Write what the reader has rejected since."""
        if reader.rejects:
            self.reasons.update(reject.reason for reject in reader.rejects)
            key = self._write(f"{len(self.written)}.rejects", reject_bytes(reader.rejects))
            self.written.append((key, len(reader.rejects)))
            reader.rejects = []


def _read_input(
    store: Store, each: Input, settings: ReadSettings, reader: Reader, rejected: _Rejected
) -> int:
    """Read one object; the CRC of its bytes."""
    if is_damage_record(each.key):
        content = read_object(store, each.key)
        reader.refuse(_recorded_damage(each, content))
        return int(isal_zlib.crc32(content))
    origin = Origin(each.key, each.staged_us, each.only)
    check = Checked(_blocks(store, each.key))
    for piece in lines(chunks(check), settings.max_event_bytes):
        if isinstance(piece, Lines):
            reader.add(piece.lines, piece.first, origin)
        elif each.only is None:
            reader.refuse(_reject(piece, each.key))
        if reader.raw_bytes >= settings.bundle_bytes:
            reader.flush()
            rejected.take(reader)
    return check.value


def _recorded_damage(each: Input, content: bytes) -> Reject:
    """An archive that was found damaged when it was staged: what came before is staged."""
    staged_at = EPOCH + timedelta(microseconds=each.staged_us)
    found = damage_of(each.key, content, staged_at)
    detail = f"{found.file}: {found.reason}, at byte {found.offset}"
    payload = found.fragment.encode()
    return Reject("damaged", found.object or each.key, found.line, payload, 0, detail)


class Checked:
    """Blocks of bytes with the CRC of those that have passed."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self.value = 0
        self._blocks = blocks

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            self.value = isal_zlib.crc32(block, self.value)
            yield block


def _blocks(store: Store, key: str) -> Iterator[bytes]:
    with guarded("read", key):
        for block in store.get(key).stream(min_chunk_size=1 << 20):
            yield bytes(block)


def _reject(piece: TooLarge | Damage, key: str) -> Reject:
    if isinstance(piece, TooLarge):
        return Reject("too_large", key, piece.number, piece.prefix, piece.size)
    return Reject(
        "damaged", key, piece.line, piece.fragment, 0, f"{piece.reason}, at byte {piece.offset}"
    )


def reject_bytes(rejects: list[Reject]) -> bytes:
    """The stored form of rejected lines: zst NDJSON."""
    return zstandard.compress(b"".join(map(_reject_line, rejects)))


def _reject_line(reject: Reject) -> bytes:
    stored: dict[str, Any] = {
        "reason": reject.reason,
        "object": reject.key,
        "line": reject.line,
        "bytes": reject.length,
    }
    if reject.detail:
        stored["detail"] = reject.detail
    try:
        stored["payload"] = reject.payload.decode()
    except UnicodeDecodeError:
        stored["payload_base64"] = b64encode(reject.payload).decode()
    return orjson.dumps(stored) + b"\n"
