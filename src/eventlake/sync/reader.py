"""Lines become packets.

Validated, routed by kind, filled where they lack something, flattened by column.

`Reader` is the memory of one task: chunks of lines go in, bundles of packets come out whenever
enough has gathered. What all calls have in common (envelope, context) is turned into columns
once per chunk for all kinds, properties and traits once per kind. Knows nothing of tables'
schemas, duplicates or Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from isal import isal_zlib

from eventlake.model.layout import HOUR_US
from eventlake.profiles.profile import Kind, Profile
from eventlake.sync.columns import Columns, Fields, Guards, Rescue, Slot, columns, columns_of
from eventlake.sync.fills import (
    FILLED,
    Origin,
    adopt,
    fill_timestamps,
    message_hashes,
    received_times,
)
from eventlake.sync.gather import MOST_CELLS, Chunk, Gathered, by_kind, packet_of, runs
from eventlake.sync.packets import (
    Bundle,
    Packet,
    bucket_bounds,
    encode,
    sorted_ids,
)
from eventlake.sync.parse import Document, Number, documents, whole
from eventlake.sync.shapes import OWN, BrokenError, Shapes, without

# Events whose own columns are gathered before they are extracted: the cost of a column is spread
# over so many rows.
GATHER = 512
# Lines that are read the general way before the fast one is tried.
LEARN = 256
# So few documents are read together however many keys they have.
_FEW = 64
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
class _Batch:
    """The events of a chunk, ordered by kind."""

    order: list[int]
    moved: bool  # whether that is another order than that of the lines
    kinds: npt.NDArray[np.int64]
    lines: list[int]
    checks: npt.NDArray[np.uint32]
    rejects: list[Reject]
    received: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


class _Kinds(dict[tuple[Any, Any], int]):
    """(type, event) as they came -> the number of their kind, or of why they have none."""

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
        self._shapes = Shapes(self._root)
        self._clear()

    def _clear(self) -> None:
        self.raw_bytes = 0
        self._rows = 0
        self._chunks: list[Chunk] = []
        self._names: set[tuple[str, Slot]] = set()
        self._cells = 0
        self._own: defaultdict[int, Gathered] = defaultdict(Gathered)
        self._hashes: list[bytes] = []
        self._rescued: list[Rescue] = []

    def add(self, chunk: list[bytes], first_line: int, origin: Origin) -> None:
        """Take in a chunk of lines; `first_line` is the number of the first one, from 1."""
        self.raw_bytes += sum(map(len, chunk))
        if not self._shapes.learned and len(chunk) > LEARN:
            self._add_odd(chunk, range(LEARN), first_line, origin)
            self._add_alike(chunk[LEARN:], first_line + LEARN, origin)
        else:
            self._add_alike(chunk, first_line, origin)

    def refuse(self, reject: Reject) -> None:
        """Take in a line that could not even be read."""
        self.rejects.append(reject)
        self.events += 1

    def _add_alike(self, chunk: list[bytes], first_line: int, origin: Origin) -> None:
        """The fast way, for lines that look like those before; the others take the general one."""
        rows, kept, odd = self._shapes.rows(chunk)
        while rows:
            try:
                self._add_rows(rows, kept, chunk, first_line, origin)
                break
            except BrokenError as broken:
                odd = sorted([*odd, *(kept[row] for row in broken.rows)])
                rows, kept = without(rows, broken.rows), without(kept, broken.rows)
        # last, because they teach the next chunk another shape
        if odd:
            self._add_odd(chunk, odd, first_line, origin)

    def _add_rows(
        self, rows: list[Any], kept: list[int], chunk: list[bytes], first_line: int, origin: Origin
    ) -> None:
        """Take in rows that were decoded the fast way.

        Raises `BrokenError` before anything of them is taken.
        """
        envelope = self._shapes.envelope(rows)
        batch = self._sorted(envelope["type"], envelope["event"], kept, chunk, first_line, origin)
        if batch.moved:
            ordered = list(map(rows.__getitem__, batch.order))
            envelope = {
                name: list(map(values.__getitem__, batch.order))
                for name, values in envelope.items()
            }
        else:
            ordered = rows
        try:
            own, context = self._shapes.own(ordered), self._shapes.context(ordered)
        except BrokenError as broken:
            raise BrokenError({batch.order[row] for row in broken.rows}) from None
        self._admit(batch)
        if not ordered:
            return
        if not isinstance(context, Columns):
            envelope["context"] = context
        part = self._shared(envelope, None, batch, origin)
        if isinstance(context, Columns):
            part.arrays |= context.arrays
        self._take_in(part, own, batch)

    def _add_odd(
        self, chunk: list[bytes], which: Sequence[int], first_line: int, origin: Origin
    ) -> None:
        """The general way, for any line."""
        docs, places, refused = documents([chunk[i] for i in which])
        if len(docs) > _FEW and _too_wide(docs):
            half = len(which) // 2
            self._add_odd(chunk, which[:half], first_line, origin)
            self._add_odd(chunk, which[half:], first_line, origin)
            return
        kept = [which[place] for place in places]
        if origin.only is None:
            self.events += len(refused)
            for place, reason in sorted(refused):
                self.rejects.append(self._reject(reason, chunk, which[place], first_line, origin))
        types, events = ([_hashable(doc.get(name)) for doc in docs] for name in ("type", "event"))
        batch = self._sorted(types, events, kept, chunk, first_line, origin)
        self._admit(batch)
        if batch.order:
            self._add_documents(list(map(docs.__getitem__, batch.order)), batch, origin)

    def _add_documents(self, docs: list[Document], batch: _Batch, origin: Origin) -> None:
        """Take in whole documents, in the order of the batch."""
        top = dict.fromkeys(chain.from_iterable(docs))
        slots = {key: self._root.child(key) for key in top}
        self._shapes.learn(docs, top)
        for column, canonical in FILLED.items():
            aliases = [
                key for key, slot in slots.items() if slot.column == column and key != canonical
            ]
            if aliases:
                self._rescue(adopt(docs, column, canonical, aliases))
        odd = [key for key, slot in slots.items() if key not in OWN and slot.column.startswith(OWN)]
        shared = dict.fromkeys(
            key for key in (*top, *FILLED.values()) if key not in OWN and key not in odd
        )
        envelope = {key: list(map(_get, docs, repeat(key))) for key in shared}
        own = _own_documents(
            map(_get, docs, repeat("properties")), map(_get, docs, repeat("traits"))
        )
        if odd:
            wanted = {*OWN, *odd}
            own = [{key: value for key, value in doc.items() if key in wanted} for doc in docs]
        self._take_in(self._shared(envelope, docs, batch, origin), own, batch)

    @staticmethod
    def _reject(
        reason: str, chunk: list[bytes], index: int, first_line: int, origin: Origin
    ) -> Reject:
        return Reject(reason, origin.key, first_line + index, chunk[index], len(chunk[index]))

    def _sorted(
        self,
        types: list[Any],
        events: list[Any],
        kept: list[int],
        chunk: list[bytes],
        first_line: int,
        origin: Origin,
    ) -> _Batch:
        """The rows that are events, ordered by kind, and those that are none."""
        try:
            numbers = list(map(self._kinds.__getitem__, zip(types, events, strict=True)))
        except TypeError:  # an object or a list where a name should be cannot be looked up
            pairs = zip(map(_hashable, types), map(_hashable, events), strict=True)
            numbers = list(map(self._kinds.__getitem__, pairs))
        if origin.only is not None:
            numbers = [
                n if n >= 0 and self._kinds.list[n] in origin.only else _NOT_WANTED for n in numbers
            ]
        kinds = np.array(numbers)
        order = np.argsort(kinds, kind="stable")
        refused = int(np.searchsorted(kinds[order], 0))
        rejects = [
            self._reject(_REASONS[numbers[row]], chunk, kept[row], first_line, origin)
            for row in sorted(order[:refused].tolist())
            if numbers[row] in _REASONS
        ]
        order = order[refused:]
        moved = len(order) < len(kinds) or bool((np.diff(order) != 1).any())
        places = order.tolist()
        lines = list(map(kept.__getitem__, places))
        checks = np.array(list(map(isal_zlib.crc32, map(chunk.__getitem__, lines))), np.uint32)
        return _Batch(
            places, moved, kinds[order], [first_line + line for line in lines], checks, rejects
        )

    def _admit(self, batch: _Batch) -> None:
        self.rejects += batch.rejects
        self.events += len(batch.rejects) + len(batch.order)

    def _shared(
        self,
        envelope: dict[str, list[Any]],
        docs: list[Document] | None,
        batch: _Batch,
        origin: Origin,
    ) -> Columns:
        """The columns that all kinds have in common, with what was missing filled in."""
        batch.received, rescued = received_times(envelope["receivedAt"], origin)
        self._rescue(rescued)
        hashes, rescued = message_hashes(envelope["messageId"], batch.lines, origin)
        self._rescue(rescued)
        self._hashes += hashes
        fill_timestamps(envelope, batch.received)
        if docs is not None:
            for row, doc in enumerate(docs):
                for key in FILLED.values():
                    doc[key] = envelope[key][row]
        rows = docs if docs is not None else Fields(envelope)
        part = columns_of(envelope, rows, self._root, self._guards)
        self._rescue(part.rescued)
        return part

    def _rescue(self, rescued: Iterable[Rescue]) -> None:
        self._rescued += [Rescue(self._rows + r.row, r.path, r.text, r.rounded) for r in rescued]

    def _take_in(self, shared: Columns, own: list[Document], batch: _Batch) -> None:
        """Keep a batch.

        Shared columns as they are, own columns once enough of a kind has gathered.
        """
        present, starts = np.unique(batch.kinds, return_index=True)
        fragments = {}
        for number, start, end in zip(
            present.tolist(), starts.tolist(), [*starts[1:].tolist(), len(own)], strict=True
        ):
            fragments[number] = (start, end)
            gathered = self._own[number]
            gathered.docs += own[start:end]
            gathered.first_rows.append((self._rows + start, end - start))
            if len(gathered.docs) >= GATHER:
                self._extract(gathered)
        self._chunks.append(Chunk(shared, fragments, batch.received, batch.checks, self._rows))
        self._rows += len(own)
        self._names |= shared.arrays.keys()
        if max(len(self._names) * self._rows, self._cells) > MOST_CELLS:
            self.flush()

    def _extract(self, gathered: Gathered) -> None:
        if not gathered.docs:
            return
        piece = columns(gathered.docs, self._root, self._guards)
        if piece.rescued:
            rows = gathered.rows()[-len(gathered.docs) :]
            self._rescued += [
                Rescue(int(rows[r.row]), r.path, r.text, r.rounded) for r in piece.rescued
            ]
        gathered.pieces.append(piece)
        gathered.docs = []
        self._cells += piece.rows * len(piece.arrays)

    def flush(self) -> None:
        """Write what has gathered as a bundle."""
        if not self._rows:
            return
        for gathered in self._own.values():
            self._extract(gathered)
        received = np.concatenate([chunk.received for chunk in self._chunks])
        checks = np.concatenate([chunk.checks for chunk in self._chunks])
        shared = by_kind(self._chunks, list(self._own))
        rescues: defaultdict[int, list[Rescue]] = defaultdict(list)
        for rescue in self._rescued:
            rescues[rescue.row].append(rescue)
        blobs: list[pa.Buffer] = []
        packets: list[Packet] = []
        order: list[npt.NDArray[np.int64]] = []
        offset = first_row = 0
        for number, gathered in self._own.items():
            kind, all_rows = self._kinds.list[number], gathered.rows()
            for start, end, own in runs(gathered.pieces):
                rows = all_rows[start:end]
                fields = {
                    key: array.slice(start, end - start) for key, array in shared[number].items()
                }
                fields |= own
                hours = received[rows] // HOUR_US
                if (np.diff(hours) < 0).any():
                    by_hour = np.argsort(hours, kind="stable")
                    rows, hours = rows[by_hour], hours[by_hour]
                    fields = {key: array.take(pa.array(by_hour)) for key, array in fields.items()}
                batch, counts = packet_of(fields, received[rows], rows, rescues)
                data = encode(batch)
                values, of_hour = np.unique(hours, return_counts=True)
                by_hours = tuple(zip(values.tolist(), of_hour.tolist(), strict=True))
                packets.append(
                    Packet(kind, offset, data.size, first_row, len(rows), by_hours, counts)
                )
                blobs.append(data)
                order.append(rows)
                offset += data.size
                first_row += len(rows)
        rows = np.concatenate(order)
        ids = sorted_ids(map(self._hashes.__getitem__, rows.tolist()), received[rows], checks[rows])
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


def _too_wide(docs: list[Document]) -> bool:
    """Whether documents have so many top-level keys together that a list per key costs too much."""
    return len(set().union(*docs)) * len(docs) > MOST_CELLS // 16


def _hashable(value: Any) -> Any:
    """What stands for a type or event in the look-up of kinds: no number equals the text of one."""
    return None if isinstance(value, dict | list | Number) else value


def _own_documents(properties: Iterable[Any], traits: Iterable[Any]) -> list[Document]:
    return [{"properties": p, "traits": t} for p, t in zip(properties, traits, strict=True)]
