"""Event files → staged objects, exactly once per content.

Does not look at events: a line that is no event is staged like any other and rejected, kept and
counted by the sync. Does not know what was synced already; the ledger and the dedup do.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from threading import Event
from typing import IO, Literal

from obstore.exceptions import AlreadyExistsError

from eventlake.errors import InputError
from eventlake.stage.cut import Cut, cuts
from eventlake.stage.decode import Damage, chunks
from eventlake.stage.inputs import STDIN, Entry, Input, Skipped, inputs, unreadable
from eventlake.stage.keys import damage_key, staged_key
from eventlake.stage.sniff import HEAD_BYTES, refusal
from eventlake.store import Store, create, exists, guarded

_READ_BYTES = 1 << 20
# Files staged at once: hides the store's latency for archives of many small files.
_WORKERS = 4
# obstore can put create-only from one buffer only; larger objects go up in parts.
_ONE_PUT_BYTES = 32 << 20
_PART_BYTES = 16 << 20

Status = Literal["staged", "already staged", "empty", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of one input."""

    file: str
    status: Status
    objects: tuple[str, ...] = ()
    new_objects: int = 0
    lines: int = 0
    bytes: int = 0
    damage: Damage | None = None
    error: InputError | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Where staged objects go and how they are made."""

    store: Store
    source_id: str
    object_bytes: int
    compression: str
    stop: Event = field(default_factory=Event)


def send(arguments: Iterable[str], target: Target) -> Iterator[Sent]:
    """Stages everything the PATH arguments stand for; one outcome per input, in their order.

    Files that cannot be used are outcomes; errors of the store end it. Calling again after a crash
    goes on where it stopped, because objects are named by their content.
    """
    found = chain.from_iterable(inputs(argument) for argument in arguments)
    yield from _in_order(lambda entry: _outcome(entry, target), found, target.stop)


def _outcome(entry: Entry, target: Target) -> Sent:
    match entry:
        case Skipped():
            return Sent(entry.name, "skipped", why=entry.why)
        case InputError():
            return Sent(entry.on or "", "failed", error=entry)
    try:
        if entry.path == STDIN:
            return stage(sys.stdin.buffer, "standard input", target)
        with Path(entry.path).open("rb", buffering=0) as file:
            return stage(file, entry.name, target)
    except OSError as error:
        return Sent(entry.name, "failed", error=unreadable(entry.path, error))


def stage(file: IO[bytes], name: str, target: Target) -> Sent:
    """Stages one stream.

    Raises OSError when reading fails, SetupError and TransientError when the store does.
    """
    pieces = chunks(_blocks(file, target.stop))
    head, taken, ended = _head(pieces)
    wrong = refusal(head, name, whole=ended)
    if wrong:
        return Sent(name, "failed", error=wrong)
    digests: list[str] = []
    new = lines = size = 0
    damage: Damage | None = None
    for cut in cuts(chain(taken, pieces), target.object_bytes, target.compression):
        if isinstance(cut, Damage):
            damage = cut
            _record(damage, digests, name, target)
            continue
        with cut.file:
            new += _put(cut, target)
        digests.append(cut.digest)
        lines += cut.lines
        size += cut.raw_size
    keys = tuple(staged_key(target.source_id, digest) for digest in digests)
    status: Status = "staged" if new else "already staged" if keys else "empty"
    return Sent(name, status, keys, new, lines, size, damage)


def _blocks(file: IO[bytes], stop: Event) -> Iterator[bytes]:
    while block := file.read(_READ_BYTES):
        if stop.is_set():
            # Ending the stream here would look like its end, or like damage.
            raise CancelledError
        yield block


def _head(pieces: Iterator[bytes | Damage]) -> tuple[bytes, list[bytes | Damage], bool]:
    """The first bytes of a stream, the pieces they were in, and whether that is all of it."""
    taken: list[bytes | Damage] = []
    head = b""
    for piece in pieces:
        taken.append(piece)
        if isinstance(piece, Damage):
            # More may have followed, so the last line counts as cut.
            return head, taken, False
        head += piece
        if len(head) >= HEAD_BYTES:
            return head[:HEAD_BYTES], taken, False
    return head, taken, True


def _put(cut: Cut, target: Target) -> bool:
    """Whether the object is new in the stage."""
    key = staged_key(target.source_id, cut.digest)
    if cut.size > _ONE_PUT_BYTES:
        if exists(target.store, key):
            return False
        # Not create-only, but whoever else writes this key writes the same bytes.
        parts = iter(lambda: cut.file.read(_PART_BYTES), b"")
        with guarded("stage", key):
            target.store.put(key, parts, chunk_size=_PART_BYTES, max_concurrency=2)
        return True
    with guarded("stage", key):
        try:
            target.store.put(key, cut.file.read(), mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
    return True


def _record(damage: Damage, digests: list[str], name: str, target: Target) -> None:
    """Leaves word of the damage for the sync, which rejects it as one entry; once per content."""
    record = {
        "object": staged_key(target.source_id, digests[-1]) if digests else None,
        "file": name,
        "offset": damage.offset,
        "line": damage.line,
        "reason": damage.reason,
        "fragment": damage.fragment.decode("utf-8", "backslashreplace"),
    }
    key = damage_key(target.source_id, digests, damage.offset, damage.reason)
    create(target.store, key, json.dumps(record, ensure_ascii=False).encode())


def _in_order(
    work: Callable[[Entry], Sent], entries: Iterable[Entry], stop: Event
) -> Iterator[Sent]:
    """`work` on a few entries at once, results in order, never more than a window in memory."""
    waiting: deque[Future[Sent]] = deque()
    pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="send")
    try:
        for entry in entries:
            if isinstance(entry, Input) and entry.streams:
                # A pipe can block for ever; here, Ctrl-C still ends it.
                while waiting:
                    yield waiting.popleft().result()
                yield work(entry)
                continue
            waiting.append(pool.submit(work, entry))
            if len(waiting) > 2 * _WORKERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
