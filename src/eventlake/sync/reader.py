"""Lines become packets: validated, routed by kind, filled where they lack something, flattened by column.

`Reader` is the memory of one task: chunks of lines go in, bundles of packets come out whenever enough has gathered. What all
calls have in common (envelope, context) is turned into columns once per chunk for all kinds, properties and traits once per kind.
Knows nothing of tables' schemas, duplicates or Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
from isal import isal_zlib

from eventlake.model.layout import HOUR_US
from eventlake.profiles.profile import Kind, Profile
from eventlake.sync.columns import CODES, Columns, Guards, Rescue, Slot, columns
from eventlake.sync.fills import FILLED, Origin, adopt, fill_timestamps, message_hashes, received_times
from eventlake.sync.packets import (
    RECEIVED,
    RESCUE,
    Bundle,
    Packet,
    bucket_bounds,
    encode,
    sorted_ids,
)
from eventlake.sync.parse import Document, Number, documents, whole

# Events whose own columns are gathered before they are extracted: the cost of a column is spread over so many rows.
GATHER = 512
# Columns of these two objects differ by kind; all else is alike in all kinds.
_OWN = ("properties", "traits")
_CALLS = frozenset({"identify", "track", "page", "screen", "group", "alias"})
_UNKNOWN_TYPE, _MISSING_EVENT, _NOT_WANTED = -1, -2, -3
_REASONS = {_UNKNOWN_TYPE: "unknown_type", _MISSING_EVENT: "missing_event"}
_get = dict.get


@dataclass(frozen=True, slots=True)
class Reject:
    """A line that is no event, why, and where it stood."""

    reason: str
    key: str
    line: int
    payload: bytes
    length: int
    detail: str = ""


@dataclass(slots=True)
class _Gathered:
    """Events of one kind whose own columns are not extracted yet, and the columns of those before them."""

    docs: list[Document] = field(default_factory=list)
    rows: list[npt.NDArray[np.int64]] = field(default_factory=list)
    pieces: list[Columns] = field(default_factory=list)


class _Kinds(dict[tuple[Any, Any], int]):
    """(type, event) as they came -> the number of their kind, or of the reason why there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[Kind, int] = {}
        self.list: list[Kind] = []

    def __missing__(self, key: tuple[Any, Any]) -> int:
        kind = route(*key)
        if isinstance(kind, int):
            number = kind
        else:
            number = self.numbers.setdefault(kind, len(self.list))
            if number == len(self.list):
                self.list.append(kind)
        self[key] = number
        return number


def route(call: Any, event: Any) -> Kind | int:
    """The kind of an event, or the number of the reason why it has none."""
    name = call.strip().lower() if isinstance(call, str) else ""
    if name not in _CALLS or type(call) is Number:
        return _UNKNOWN_TYPE
    if name != "track":
        return Kind(name)
    if type(event) is not str or not event.strip():
        return _MISSING_EVENT
    return Kind(name, whole(event))


class Reader:
    """What one task has read and not yet written."""

    def __init__(
        self, profile: Profile, guards: Guards, write: Callable[[str, bytes], str]
    ) -> None:
        """`write(suffix, data)` stores an object of the run and returns its key."""
        self.bundles: list[Bundle] = []
        self.rejects: list[Reject] = []
        self.events = 0
        self.raw_bytes = 0
        self._write = write
        self._guards = guards
        self._root = Slot((), profile)
        self._kinds = _Kinds()
        self._clear()

    def _clear(self) -> None:
        self.raw_bytes = 0
        self._rows = 0
        self._shared: list[Columns] = []
        self._own: defaultdict[int, _Gathered] = defaultdict(_Gathered)
        self._kind: list[npt.NDArray[np.int64]] = []
        self._received: list[npt.NDArray[np.int64]] = []
        self._check: list[npt.NDArray[np.uint32]] = []
        self._hashes: list[bytes] = []
        self._rescued: list[Rescue] = []

    def add(self, chunk: list[bytes], first_line: int, origin: Origin) -> None:
        """Take in a chunk of lines; `first_line` is the number of the first one, from 1."""
        self.raw_bytes += sum(map(len, chunk))
        docs, kept, refused = documents(chunk)
        kinds = self._route(docs)
        if origin.only is not None:
            kinds = [
                k if k >= 0 and self._kinds.list[k] in origin.only else _NOT_WANTED for k in kinds
            ]
            refused = []
        if min(kinds, default=0) < 0:
            refused += [(i, _REASONS[k]) for i, k in zip(kept, kinds, strict=True) if k in _REASONS]
            good = [k >= 0 for k in kinds]
            docs, kept, kinds = _where(docs, good), _where(kept, good), _where(kinds, good)
        self.rejects += [
            Reject(why, origin.key, first_line + i, chunk[i], len(chunk[i]))
            for i, why in sorted(refused)
        ]
        self.events += len(docs) + len(refused)
        if docs:
            checks = np.array(list(map(isal_zlib.crc32, map(chunk.__getitem__, kept))), np.uint32)
            self._take_in(docs, np.array(kinds), checks, [first_line + i for i in kept], origin)

    def refuse(self, reject: Reject) -> None:
        """Take in a line that could not even be read."""
        self.rejects.append(reject)
        self.events += 1

    def _route(self, docs: list[Document]) -> list[int]:
        types, events = map(_get, docs, repeat("type")), map(_get, docs, repeat("event"))
        try:
            return list(map(self._kinds.__getitem__, zip(types, events, strict=True)))
        except TypeError:  # an object or a list where a name should be cannot be looked up
            return [
                self._kinds[_hashable(doc.get("type")), _hashable(doc.get("event"))] for doc in docs
            ]

    def _take_in(
        self,
        docs: list[Document],
        kinds: npt.NDArray[np.int64],
        checks: npt.NDArray[np.uint32],
        lines: list[int],
        origin: Origin,
    ) -> None:
        base, rescued = self._rows, []
        top = dict.fromkeys(chain.from_iterable(docs))
        slots = {key: self._root.child(key) for key in top}
        for column, canonical in FILLED.items():
            aliases = [
                key for key, slot in slots.items() if slot.column == column and key != canonical
            ]
            if aliases:
                rescued += adopt(docs, column, canonical, aliases)
        received, fills = received_times(docs, origin)
        rescued += fills
        self._hashes += message_hashes(docs, lines, origin)
        fill_timestamps(docs, received)
        odd = [
            key for key, slot in slots.items() if key not in _OWN and slot.column.startswith(_OWN)
        ]
        shared = dict.fromkeys(
            key for key in (*top, *FILLED.values()) if key not in _OWN and key not in odd
        )
        part = columns(docs, self._root, self._guards, shared)
        properties, traits = (
            map(_get, docs, repeat("properties")),
            map(_get, docs, repeat("traits")),
        )
        own: list[Document] = [
            {"properties": p, "traits": t} for p, t in zip(properties, traits, strict=True)
        ]
        if odd:
            wanted = {*_OWN, *odd}
            own = [{key: value for key, value in doc.items() if key in wanted} for doc in docs]
        self._gather(own, kinds)
        self._shared.append(part)
        self._kind.append(kinds)
        self._received.append(received)
        self._check.append(checks)
        self._rescued += [
            Rescue(base + r.row, r.path, r.text, r.rounded) for r in chain(rescued, part.rescued)
        ]
        self._rows += len(docs)

    def _gather(self, own: list[Document], kinds: npt.NDArray[np.int64]) -> None:
        order = np.argsort(kinds, kind="stable")
        present, starts = np.unique(kinds[order], return_index=True)
        for number, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
            gathered = self._own[number]
            gathered.docs += map(own.__getitem__, rows.tolist())
            gathered.rows.append(rows + self._rows)
            if len(gathered.docs) >= GATHER:
                self._extract(gathered)

    def _extract(self, gathered: _Gathered) -> None:
        if not gathered.docs:
            return
        piece = columns(gathered.docs, self._root, self._guards)
        if piece.rescued:
            rows = np.concatenate(gathered.rows)[-len(gathered.docs) :]
            self._rescued += [
                Rescue(int(rows[r.row]), r.path, r.text, r.rounded) for r in piece.rescued
            ]
        gathered.pieces.append(piece)
        gathered.docs = []

    def flush(self) -> None:
        """Write what has gathered as a bundle."""
        if not self._rows:
            return
        for gathered in self._own.values():
            self._extract(gathered)
        kinds, received = np.concatenate(self._kind), np.concatenate(self._received)
        hours = received // HOUR_US
        order = np.lexsort((hours, kinds))
        shared = {key: array.take(pa.array(order)) for key, array in _joined(self._shared).items()}
        position = np.empty(self._rows, np.int64)
        position[order] = np.arange(self._rows)
        rescues = self._rescues(position)
        kinds, hours, received = kinds[order], hours[order], received[order]
        present, starts = np.unique(kinds, return_index=True)
        ends = [*starts[1:].tolist(), self._rows]
        blobs: list[pa.Buffer] = []
        packets: list[Packet] = []
        offset = 0
        for number, start, end in zip(present.tolist(), starts.tolist(), ends, strict=True):
            fields = {key: array.slice(start, end - start) for key, array in shared.items()}
            fields |= _own_columns(self._own[number], order[start:end])
            batch, counts = _packet(fields, received[start:end], rescues, start)
            data = encode(batch)
            values, rows = np.unique(hours[start:end], return_counts=True)
            packets.append(
                Packet(
                    self._kinds.list[number],
                    offset,
                    data.size,
                    start,
                    end - start,
                    tuple(zip(values.tolist(), rows.tolist(), strict=True)),
                    counts,
                )
            )
            blobs.append(data)
            offset += data.size
        hashes = list(map(self._hashes.__getitem__, order.tolist()))
        ids = sorted_ids(hashes, received, np.concatenate(self._check)[order])
        number_of = len(self.bundles)
        self.bundles.append(
            Bundle(
                self._write(f"{number_of}.packets", b"".join(blobs)),
                self._write(f"{number_of}.ids", ids.tobytes()),
                self._rows,
                bucket_bounds(ids),
                tuple(packets),
            )
        )
        self._clear()

    def _rescues(self, position: npt.NDArray[np.int64]) -> dict[int, str]:
        """Row in the bundle -> the JSON of what `Rescue`s it has."""
        found: dict[int, dict[str, dict[str, str]]] = {}
        for rescue in self._rescued:
            row = found.setdefault(int(position[rescue.row]), {"rescued": {}, "rounded": {}})
            row["rounded" if rescue.rounded else "rescued"][rescue.path] = rescue.text
        return {row: orjson.dumps(values).decode() for row, values in found.items()}


def _where(items: list[Any], mask: list[bool]) -> list[Any]:
    return [item for item, keep in zip(items, mask, strict=True) if keep]


def _hashable(value: Any) -> Any:
    return None if isinstance(value, dict | list) else value


def _joined(parts: list[Columns]) -> dict[tuple[str, Slot], pa.Array]:
    """The columns of several chunks, one below the other."""
    if len(parts) == 1:
        return parts[0].arrays
    joined = {}
    for key in dict.fromkeys(chain.from_iterable(part.arrays for part in parts)):
        dtype = CODES[key[0]][0]
        joined[key] = pa.concat_arrays(
            [
                part.arrays[key] if key in part.arrays else pa.nulls(part.rows, dtype)
                for part in parts
            ]
        )
    return joined


def _own_columns(
    gathered: _Gathered, rows: npt.NDArray[np.int64]
) -> dict[tuple[str, Slot], pa.Array]:
    """The columns of one kind only, in the order of `rows`."""
    joined = _joined(gathered.pieces)
    places = np.searchsorted(np.concatenate(gathered.rows), rows)
    if (np.diff(places) == 1).all():
        return joined
    return {key: array.take(pa.array(places)) for key, array in joined.items()}


def _packet(
    fields: dict[tuple[str, Slot], pa.Array],
    received: npt.NDArray[np.int64],
    rescues: dict[int, str],
    start: int,
) -> tuple[pa.RecordBatch, tuple[tuple[str, int], ...]]:
    names, arrays, counts = [RECEIVED], [pa.array(received)], []
    for (code, slot), array in fields.items():
        values = len(array) - array.null_count
        if values:
            name = code + slot.text
            names.append(name)
            arrays.append(array)
            counts.append((name, values))
    if rescues:
        here = [rescues.get(row) for row in range(start, start + len(received))]
        if any(here):
            names.append(RESCUE)
            arrays.append(pa.array(here, pa.string()))
    return pa.record_batch(arrays, names), tuple(counts)
