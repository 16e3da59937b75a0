"""The ledger in the lake: reading it, and the two writes that move it on.

Knows nothing of what a sync does.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import orjson
import zstandard

from eventlake.errors import StateError
from eventlake.ledger.entries import (
    VERSION,
    Committed,
    Entry,
    committed_bytes,
    committed_from,
    corrupt,
    entry_bytes,
    entry_from,
    record,
)
from eventlake.ledger.state import State, after, state_from, state_json
from eventlake.store import Store, create, guarded, read, read_or_none, remove

# A reader starts at the newest checkpoint and reads fewer than this many entries after it.
CHECKPOINT_EVERY = 16
# A long listing is no snapshot: it may show an entry and not the one that was written before. Only
# a hole that stays is one.
LOOKS = 4


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is committed, and the one entry that may be prepared after it."""

    state: State
    prepared: Entry | None = None


def folder(source_id: str) -> str:
    """Where everything of ours about a source is."""
    return f"_eventlake/{source_id}"


def load(store: Store, source_id: str) -> Ledger:
    """The ledger of a source as it stands.

    Raises StateError when it has a hole or an unreadable record.
    """
    for _ in range(LOOKS - 1):
        ledger = _look(store, source_id)
        if isinstance(ledger, Ledger):
            return ledger
    ledger = _look(store, source_id)
    if isinstance(ledger, StateError):
        raise ledger
    return ledger


def _look(store: Store, source_id: str) -> Ledger | StateError:
    """The ledger as one listing shows it, or the hole in it."""
    state = _checkpoint(store, source_id)
    prefix = f"{folder(source_id)}/ledger/"
    start = f"{prefix}{state.number:020}.z" if state.number else None
    with guarded("list", prefix):
        names = sorted(meta["path"] for page in store.list(prefix, offset=start) for meta in page)
    numbers = sorted({number for name in names if (number := _number(name)) > state.number})
    present = set(names)
    wanted = [key for n in numbers for key in _keys(source_id, n) if key in present]
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(wanted, pool.map(lambda key: read(store, key), wanted), strict=True))
    for number in numbers:
        prepared_key, committed_key = _keys(source_id, number)
        if number != state.number + 1 or prepared_key not in found:
            return corrupt(prepared_key, ValueError(f"entry {state.number + 1} is missing"))
        entry = entry_from(prepared_key, found[prepared_key])
        if committed_key not in found:
            if number != numbers[-1]:
                return corrupt(committed_key, ValueError("the commit is missing"))
            return Ledger(state, entry)
        state = after(state, entry, committed_from(committed_key, found[committed_key]))
    return Ledger(state)


def prepare(store: Store, entry: Entry) -> bool:
    """Whether `entry` is now the one of its number: False when another sync was first."""
    return create(store, _keys(entry.source_id, entry.number)[0], entry_bytes(entry))


def commit(store: Store, state: State, entry: Entry, committed: Committed) -> State:
    """Record that an entry is in place; the state after it.

    Whoever does so first decides, all get the same state.
    """
    key = _keys(entry.source_id, entry.number)[1]
    if not create(store, key, committed_bytes(committed)):
        committed = committed_from(key, read(store, key))
    state = after(state, entry, committed)
    if state.number % CHECKPOINT_EVERY == 0:
        _write_checkpoint(store, entry.source_id, state)
    return state


def _write_checkpoint(store: Store, source_id: str, state: State) -> None:
    data = zstandard.compress(orjson.dumps({"version": VERSION, **state_json(state)}))
    prefix = f"{folder(source_id)}/checkpoints/"
    create(store, f"{prefix}{state.number:020}.json.zst", data)
    with guarded("list", prefix):
        names = sorted(meta["path"] for page in store.list(prefix) for meta in page)
    # readers may be about to read the one before
    remove(store, names[:-3])


def _checkpoint(store: Store, source_id: str) -> State:
    prefix = f"{folder(source_id)}/checkpoints/"
    with guarded("list", prefix):
        names = sorted((meta["path"] for page in store.list(prefix) for meta in page), reverse=True)
    for key in names:
        data = read_or_none(store, key)
        if data is None:  # removed since, so there is a newer one and all entries are there
            continue
        try:
            return state_from(record(key, zstandard.decompress(data)))
        except (zstandard.ZstdError, KeyError, TypeError, ValueError):
            # a checkpoint only saves time: the entries before it are all still there
            continue
    return State()


def _keys(source_id: str, number: int) -> tuple[str, str]:
    stem = f"{folder(source_id)}/ledger/{number:020}"
    return f"{stem}.prepared.json", f"{stem}.committed.json"


def _number(key: str) -> int:
    stem = key.rpartition("/")[2].partition(".")[0]
    return int(stem) if stem.isdigit() else 0
