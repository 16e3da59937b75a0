"""JSON documents to columns.

One pass per key over a chunk of documents, one Arrow array per path and kind of value.

A value keeps its JSON kind: a path whose values are strings here and numbers there becomes two
arrays, each null where the other is not. What a column becomes is decided later (`settle`), from
all of them. Values that cannot become a cell (too deep, two for one column) go to
`Columns.rescued`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.model.names import Path, path_text
from eventlake.model.timestamps import FIRST_US, parse_iso
from eventlake.model.types import Observed
from eventlake.profiles.profile import Profile
from eventlake.sync.parse import Number, json_text, number_value, whole

# One letter per kind of array: how its values are stored until they are cast, and what it says
# about the column's type.
CODES: dict[str, tuple[pa.DataType, Observed]] = {
    "i": (pa.int64(), Observed.INTEGER),
    "n": (pa.string(), Observed.LONG),  # an integer's text
    "f": (pa.float64(), Observed.FRACTION),  # at most 15 significant digits: the float says it all
    "d": (pa.string(), Observed.FRACTION),  # the text of any other fraction
    "h": (pa.string(), Observed.HUGE),
    "b": (pa.bool_(), Observed.BOOLEAN),
    "z": (
        pa.timestamp("ms", "UTC"),
        Observed.ISO,
    ),  # exactly YYYY-MM-DDTHH:MM:SS.mmmZ, so the text is known from the time
    "t": (pa.string(), Observed.ISO),
    "s": (pa.string(), Observed.TEXT),
    "j": (pa.string(), Observed.JSON),
}
# Beyond this no decimal(38,6) holds a number.
DECIMAL_BOUND = 10.0**32
# Below so many cells (keys times rows) there is nothing to be saved by visiting only those filled.
SPARSE_CELLS = 50_000
_NONE = type(None)
_EMPTY: dict[str, Any] = {}
_get = dict.get


@dataclass(frozen=True, slots=True)
class Guards:
    """What one event may do to the columns of a table."""

    max_depth: int
    max_key_length: int


class Slot:
    """A place in the documents: its path, the column it goes to, and the places below it.

    Made once per path and task.
    """

    __slots__ = ("children", "column", "path", "profile", "text")

    def __init__(self, path: Path, profile: Profile) -> None:
        self.path = path
        self.profile = profile
        self.text = path_text(path)
        self.column = profile.column(path) if path else ""
        self.children: dict[str, Slot] = {}

    def child(self, key: str) -> Slot:
        """The place of `key` below this one."""
        slot = self.children.get(key)
        if slot is None:
            slot = self.children[key] = Slot((*self.path, key), self.profile)
        return slot


@dataclass(frozen=True, slots=True)
class Rescue:
    """A value that is no cell, or whose cell does not say it all (`rounded`)."""

    row: int
    path: str
    text: str
    rounded: bool = False


@dataclass(slots=True)
class Columns:
    """The columns of some documents: arrays by (code, slot), all of `rows` values."""

    rows: int
    arrays: dict[tuple[str, Slot], pa.Array] = field(default_factory=dict)
    rescued: list[Rescue] = field(default_factory=list)


def columns(docs: list[dict[str, Any]], root: Slot, guards: Guards) -> Columns:
    """The columns of `docs`. `root` carries what is known of paths between calls."""
    out = Columns(len(docs))
    _objects(docs, root, guards, out)
    _one_value_per_column(docs, out)
    return out


class Fields:
    """Documents that are only made where one is looked at: of fields that never share a column."""

    def __init__(self, fields: Mapping[str, list[Any]]) -> None:
        self._fields = fields

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {name: values[row] for name, values in self._fields.items()}


Documents = list[dict[str, Any]] | Fields


def columns_of(
    fields: Mapping[str, list[Any]], docs: Documents, root: Slot, guards: Guards
) -> Columns:
    """The columns of top-level fields, given as their values; `docs` tell the order of keys."""
    out = Columns(len(next(iter(fields.values()))))
    for key, values in fields.items():
        _values(values, root.child(key), guards, out)
    _one_value_per_column(docs, out)
    return out


def _values(values: list[Any], slot: Slot, guards: Guards, out: Columns) -> None:
    types = set(map(type, values))
    types.discard(_NONE)
    if not types:
        return
    if len(slot.path[-1]) > guards.max_key_length:
        _rescue(values, slot, out)
    elif len(types) == 1:
        _KIND[types.pop()](values, slot, guards, out)
    elif types == _NUMBERS:
        _numbers(values, slot, guards, out)
    else:
        for kind in types:
            _KIND[kind]([v if type(v) is kind else None for v in values], slot, guards, out)


def _rescue(values: list[Any], slot: Slot, out: Columns) -> None:
    out.rescued += [
        Rescue(i, slot.text, json_text(v))
        for i, v in enumerate(values)
        if v is not None and v != {}
    ]


def _dicts(values: list[Any], slot: Slot, guards: Guards, out: Columns) -> None:
    if len(slot.path) > guards.max_depth:
        _rescue(values, slot, out)
        return
    _objects([v or _EMPTY for v in values], slot, guards, out)


def _objects(objects: list[dict[str, Any]], slot: Slot, guards: Guards, out: Columns) -> None:
    keys = dict.fromkeys(chain.from_iterable(objects))
    cells = len(keys) * len(objects)
    # A pass over all rows for each key costs a sixth of a visit per value that is there; what a
    # visit of few values costs beyond them is not worth saving.
    if cells > SPARSE_CELLS and cells > 6 * sum(map(len, objects)):
        _sparse(objects, slot, guards, out)
        return
    for key in keys:
        _values(list(map(_get, objects, repeat(key))), slot.child(key), guards, out)


def _sparse(objects: list[dict[str, Any]], slot: Slot, guards: Guards, out: Columns) -> None:
    """`_objects` for many keys of which each object has few.

    Only the values that are there are visited.
    """
    found: dict[str, tuple[list[int], list[Any]]] = {}
    for row, obj in enumerate(objects):
        for key, value in obj.items():
            if value is None:
                continue
            entry = found.get(key)
            if entry is None:
                entry = found[key] = ([], [])
            entry[0].append(row)
            entry[1].append(value)
    for key, (rows, values) in found.items():
        part = Columns(len(values))
        _values(values, slot.child(key), guards, part)
        places = np.full(len(objects), -1, np.int64)
        places[rows] = np.arange(len(rows))
        take = pa.array(places, mask=places < 0)
        for name, array in part.arrays.items():
            out.arrays[name] = array.take(take)
        out.rescued += [Rescue(rows[r.row], r.path, r.text, r.rounded) for r in part.rescued]


def _integers(values: list[Any], slot: Slot, guards: Guards, out: Columns) -> None:
    try:
        out.arrays["i", slot] = pa.array(values, pa.int64())
    except OverflowError:
        small = [v if v is not None and -(2**63) <= v < 2**63 else None for v in values]
        out.arrays["i", slot] = pa.array(small, pa.int64())
        _exact_numbers(
            [
                None if v is None or s is not None else Number(v)
                for v, s in zip(values, small, strict=True)
            ],
            slot,
            guards,
            out,
        )


def _floats(values: list[Any], slot: Slot, _: Guards, out: Columns) -> None:
    array = pa.array(values, pa.float64())
    data = np.frombuffer(array.buffers()[1], np.float64)[: len(values)]
    if np.abs(data).max() >= DECIMAL_BOUND:
        huge = [v is not None and abs(v) >= DECIMAL_BOUND for v in values]
        array = pc.if_else(pa.array(huge), pa.scalar(None, pa.float64()), array)
        out.arrays["h", slot] = pa.array(
            [json_text(v) if h else None for v, h in zip(values, huge, strict=True)], pa.string()
        )
    out.arrays["f", slot] = array


def _numbers(values: list[Any], slot: Slot, guards: Guards, out: Columns) -> None:
    """Integers and fractions in one column, as JavaScript sends prices: 10 and 10.5."""
    both = np.array([0.0 if v is None else v for v in values], np.float64)
    if np.abs(both).max() >= 2.0**53:
        _integers([v if type(v) is int else None for v in values], slot, guards, out)
        _floats([v if type(v) is float else None for v in values], slot, guards, out)
        return
    is_integer = np.array([type(v) is int for v in values])
    is_float = np.array([type(v) is float for v in values])
    out.arrays["i", slot] = pa.array(
        np.where(is_integer, both, 0).astype(np.int64), mask=~is_integer
    )
    out.arrays["f", slot] = pa.array(both, mask=~is_float)


def _exact_numbers(values: list[Any], slot: Slot, _: Guards, out: Columns) -> None:
    codes = [v if v is None else number_code(v) for v in values]
    for code in ("n", "d", "h"):
        if code in codes:
            texts = [str(v) if c == code else None for v, c in zip(values, codes, strict=True)]
            _merge(out, code, slot, pa.array(texts, pa.string()))


def number_code(text: str) -> str:
    """The code of a number's text: `n` integer, `d` fraction, `h` beyond any column type."""
    value = number_value(text)
    if value is None:
        return "h"
    return "d" if any(c in text for c in ".eE") else "n"


def _booleans(values: list[Any], slot: Slot, _: Guards, out: Columns) -> None:
    out.arrays["b", slot] = pa.array(values, pa.bool_())


def _lists(values: list[Any], slot: Slot, _: Guards, out: Columns) -> None:
    try:
        texts = [
            v if v is None else orjson.dumps(v, option=orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
            for v in values
        ]
    except orjson.JSONEncodeError:
        texts = [v if v is None else json_text(v) for v in values]
    out.arrays["j", slot] = pa.array(texts, pa.string())


def _strings(values: list[Any], slot: Slot, _: Guards, out: Columns) -> None:
    try:
        array = pa.array(values, pa.string())
    except UnicodeEncodeError:
        clean = [v if v is None else whole(v) for v in values]
        pairs = enumerate(zip(values, clean, strict=True))
        out.rescued += [
            Rescue(i, slot.text, json_text(v), rounded=True) for i, (v, c) in pairs if v != c
        ]
        array = pa.array(clean, pa.string())
    for code, part in strings_by_code(array):
        out.arrays[code, slot] = part


def strings_by_code(array: pa.StringArray) -> Iterator[tuple[str, pa.Array]]:
    """A string array by code: times whose text follows from them, other ISO times, text."""
    offsets = np.frombuffer(array.buffers()[1], np.int32)[
        array.offset : array.offset + len(array) + 1
    ]
    lengths = np.diff(offsets)
    starts = offsets[:-1][lengths >= 10]
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    if not len(starts) or not ((data[starts + 4] == 45) & (data[starts] < 58)).any():
        yield "s", array
        return
    valid = len(array) - array.null_count
    if len(starts) == valid and (lengths[lengths > 0] == 24).all():
        matrix = data[offsets[0] : offsets[-1]].reshape(-1, 24)
        times = (
            _times(array)
            if (matrix[:, 10] == 84).all() and (matrix[:, (19, 23)] == (46, 90)).all()
            else None
        )
        if times is not None:
            yield "z", times
            return
    yield from _mixed(array, lengths, data)


def _times(array: pa.StringArray) -> pa.Array | None:
    try:
        times = pc.cast(array, pa.timestamp("ms", "UTC"))
    except pa.ArrowInvalid:
        return None
    # Arrow takes the year 0000, no calendar of ours does
    lowest = pc.min(times.cast(pa.int64())).as_py()
    return times if lowest * 1000 >= FIRST_US else None


def _mixed(
    array: pa.StringArray, lengths: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]
) -> Iterator[tuple[str, pa.Array]]:
    """`strings_by_code` for columns of several forms.

    The common one at once, what else could be a time one by one.
    """
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array)]
    present = np.asarray(array.is_valid())
    shaped = np.flatnonzero(present & (lengths == 24))
    form = data[offsets[shaped][:, None] + np.array((4, 10, 19, 23))]
    usual = np.zeros(len(array), bool)
    usual[shaped[(form == (45, 84, 46, 90)).all(axis=1)]] = True
    times = (
        _times(pc.if_else(pa.array(usual), array, pa.scalar(None, pa.string())))
        if usual.any()
        else None
    )
    if times is None:
        usual[:] = False
    else:
        yield "z", times
    odd = present & ~usual & (lengths >= 10)
    odd[odd] = data[offsets[odd] + 4] == 45
    iso = np.zeros(len(array), bool)
    for row in np.flatnonzero(odd).tolist():
        code = _string_code(array[row].as_py())
        if code == "z":  # one bad date kept the column's usual form from being read at once
            usual[row] = True
        iso[row] = code == "t"
    if times is None and usual.any():
        yield (
            "z",
            pc.cast(
                pc.if_else(pa.array(usual), array, pa.scalar(None, pa.string())),
                pa.timestamp("ms", "UTC"),
            ),
        )
    if iso.any():
        yield "t", pc.if_else(pa.array(iso), array, pa.scalar(None, pa.string()))
    text = present & ~usual & ~iso
    if text.any():
        yield "s", pc.if_else(pa.array(text), array, pa.scalar(None, pa.string()))


def _string_code(text: str) -> str:
    if text[4:5] != "-" or parse_iso(text) is None:
        return "s"
    canonical = len(text) == 24 and text[10] == "T" and text[19] == "." and text[23] == "Z"
    return "z" if canonical else "t"


def _merge(out: Columns, code: str, slot: Slot, array: pa.Array) -> None:
    before = out.arrays.get((code, slot))
    out.arrays[code, slot] = array if before is None else pc.coalesce(before, array)


_NUMBERS = {int, float}
_KIND = {
    str: _strings,
    int: _integers,
    float: _floats,
    bool: _booleans,
    list: _lists,
    dict: _dicts,
    Number: _exact_numbers,
}


def _one_value_per_column(docs: Documents, out: Columns) -> None:
    """Where two paths of one document go to one column, keep one value and rescue the others."""
    owners: dict[str, Slot] = {}
    contested: dict[str, set[Slot]] = {}
    for _, slot in out.arrays:
        first = owners.setdefault(slot.column, slot)
        if first is not slot:
            contested.setdefault(slot.column, {first}).add(slot)
    for column, slots in contested.items():
        _settle_contest(docs, out, column, slots)


def _settle_contest(docs: Documents, out: Columns, column: str, slots: set[Slot]) -> None:
    present: dict[Slot, npt.NDArray[np.bool_]] = {slot: np.zeros(out.rows, bool) for slot in slots}
    for (_, slot), array in out.arrays.items():
        if slot in slots:
            present[slot] |= np.asarray(array.is_valid())
    losing: dict[Slot, list[int]] = {slot: [] for slot in slots}
    losers: list[Rescue] = []
    for row in np.flatnonzero(sum(p.astype(np.int64) for p in present.values()) > 1).tolist():
        here = sorted(
            (slot for slot in slots if present[slot][row]),
            key=lambda slot: _place(docs[row], slot.path),
        )
        winner = next((slot for slot in here if _spelled_like(slot, column)), here[0])
        for slot in here:
            if slot is not winner:
                losing[slot].append(row)
                losers.append(Rescue(row, slot.text, json_text(_lookup(docs[row], slot.path))))
    gone = {(loser.row, loser.path) for loser in losers}
    out.rescued = [
        rescue for rescue in out.rescued if (rescue.row, rescue.path) not in gone
    ] + losers
    for (code, slot), array in list(out.arrays.items()):
        if losing.get(slot):
            lost = np.zeros(out.rows, bool)
            lost[losing[slot]] = True
            out.arrays[code, slot] = pc.if_else(pa.array(lost), pa.scalar(None, array.type), array)


# The SDKs' own spelling of an envelope field counts as the column's.
_CANONICAL = frozenset(
    {
        "messageId",
        "userId",
        "anonymousId",
        "groupId",
        "previousId",
        "receivedAt",
        "sentAt",
        "originalTimestamp",
    }
)


def _spelled_like(slot: Slot, column: str) -> bool:
    return "_".join(slot.path) == column or (len(slot.path) == 1 and slot.path[0] in _CANONICAL)


def _place(doc: dict[str, Any], path: Path) -> list[int]:
    """Where a path stands in its document; sorts in document order."""
    places: list[int] = []
    node: Any = doc
    for key in path:
        places.append(list(node).index(key))
        node = node[key]
    return places


def _lookup(doc: dict[str, Any], path: Path) -> Any:
    node: Any = doc
    for key in path:
        node = node[key]
    return node
