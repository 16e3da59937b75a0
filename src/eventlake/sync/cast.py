"""Casts.

An array of JSON values of one kind to cells of a column's type, and which values did not fit.

A cast is exact or it is a loss: `lost` values have no cell, `rounded` ones a cell that is not
quite the value. What is to be kept of them is told by `value_text`. To add a column type, add
its row to `_CASTS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.catalog.arrow import ARROW
from eventlake.model.timestamps import parse_iso
from eventlake.model.types import ColumnType
from eventlake.sync.parse import number_value, plain

Mask = npt.NDArray[np.bool_]

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z", re.ASCII)
_SIX_PLACES = Decimal("0.000001")
_CONTEXT = Context(prec=100, rounding=ROUND_HALF_UP)
_DECIMAL_BOUND = Decimal(10) ** 32
# Up to here a float times a million is a whole number that a float holds.
_EXACT_FLOAT = 2.0**53


@dataclass(frozen=True, slots=True)
class Cast:
    """Cells of the wanted type; where a value was lost or rounded, if anywhere."""

    cells: pa.Array
    lost: Mask | None = None
    rounded: Mask | None = None


def cast(code: str, values: pa.Array, wanted: ColumnType) -> Cast:
    """The cells of `values`, an array of one of `columns.CODES`, in a column of type `wanted`."""
    rule = _CASTS[wanted].get(code)
    if rule is None:
        return Cast(pa.nulls(len(values), ARROW[wanted]), _present(values))
    return rule(values)


def value_text(code: str, value: object) -> str:
    """The JSON text of one value of an array of kind `code`, as it came."""
    if code in "st":
        return orjson.dumps(value).decode()
    if code == "b":
        return "true" if value else "false"
    if code == "f":
        return plain(float(str(value)))
    return str(value)


def _present(values: pa.Array) -> Mask:
    return np.asarray(values.is_valid())


def _as_is(values: pa.Array) -> Cast:
    return Cast(values)


Rule = Callable[[pa.Array], Cast]
# A cell and whether it is exact, or None for a value without one.
Converted = tuple[object, bool] | None


def _each(wanted: pa.DataType, convert: Callable[[Any], Converted]) -> Rule:
    """A cast value by value.

    Only the values that are there cost anything: mostly these are the odd ones of a column.
    """

    def rule(values: pa.Array) -> Cast:
        places = np.flatnonzero(_present(values))
        converted = [convert(value) for value in values.take(pa.array(places)).to_pylist()]
        lost, rounded = np.zeros(len(values), bool), np.zeros(len(values), bool)
        lost[places] = [cell is None for cell in converted]
        rounded[places] = [cell is not None and not cell[1] for cell in converted]
        cells = pa.array([cell and cell[0] for cell in converted], wanted)
        if len(places) < len(values):
            index = np.full(len(values), -1, np.int64)
            index[places] = np.arange(len(places))
            cells = cells.take(pa.array(index, mask=index < 0))
        return Cast(cells, lost if lost.any() else None, rounded if rounded.any() else None)

    return rule


def _as(wanted: pa.DataType) -> Rule:
    return lambda values: Cast(values.cast(wanted))


def _number_in(text: str) -> Decimal | None:
    """The value of a string that is a JSON number."""
    return number_value(text) if _JSON_NUMBER.match(text) else None


def _decimal_of(value: Decimal | None) -> Converted:
    if value is None:
        return None
    cell = value.quantize(_SIX_PLACES, context=_CONTEXT)
    return (cell, cell == value) if cell.copy_abs() < _DECIMAL_BOUND else None


def _integer_of(value: Decimal | None) -> Converted:
    if value is None or value != value.to_integral_value() or not -(2**63) <= value < 2**63:
        return None
    return int(value), True


def _float_decimals(values: pa.Array) -> Cast:
    """Fractions of at most 15 digits.

    Those with at most six decimals, nearly all, take the fast way and are exact.
    """
    floats = np.nan_to_num(np.asarray(values.fill_null(0.0)))
    scaled = np.rint(floats * 1e6)
    exact = (np.abs(scaled) < _EXACT_FLOAT) & (scaled / 1e6 == floats)
    whole = np.where(exact, scaled, 0).astype(np.int64)
    words = np.empty((len(whole), 2), np.int64)
    words[:, 0], words[:, 1] = whole, whole >> 63
    present = _present(values)
    valid = None if values.null_count == 0 else pa.array(present).buffers()[1]
    cells = pa.Array.from_buffers(pa.decimal128(38, 6), len(whole), [valid, pa.py_buffer(words)])
    if (exact | ~present).all():
        return Cast(cells)
    slow = pc.if_else(pa.array(exact), pa.scalar(None, pa.float64()), values)
    others = _each(ARROW[ColumnType.DECIMAL], lambda value: _decimal_of(number_value(repr(value))))(
        slow
    )
    merged = pc.if_else(pa.array(exact), cells, others.cells)
    return Cast(merged, others.lost, others.rounded)


def _float_integers(values: pa.Array) -> Cast:
    return _each(pa.int64(), lambda value: _integer_of(Decimal(value)))(values)


def _time_texts(values: pa.Array) -> Cast:
    times = np.asarray(values.cast(pa.int64()).fill_null(0)).astype("datetime64[ms]")
    texts = np.char.add(np.datetime_as_string(times, unit="ms"), "Z")
    return Cast(
        pc.if_else(
            values.is_valid(), pa.array(texts.tolist(), pa.string()), pa.scalar(None, pa.string())
        )
    )


def _times(values: pa.Array) -> Cast:
    return _each(pa.int64(), lambda value: parse_iso(value, lenient=True))(values)


def _timestamps(values: pa.Array) -> Cast:
    """ISO strings; Arrow parses the usual forms of one column at once."""
    done = _times(values)
    return Cast(done.cells.cast(ARROW[ColumnType.TIMESTAMP]), done.lost, done.rounded)


def _flag(text: str) -> Converted:
    return (text == "true", True) if text in ("true", "false") else None


_DECIMAL = ARROW[ColumnType.DECIMAL]
# What is not here is no cell of that type.
_CASTS: dict[ColumnType, dict[str, Rule]] = {
    ColumnType.STRING: {
        **dict.fromkeys("stjndh", _as_is),
        "i": _as(pa.string()),
        "b": _as(pa.string()),
        "f": _each(pa.string(), lambda value: (plain(value), True)),
        "z": _time_texts,
    },
    ColumnType.BIGINT: {
        "i": _as_is,
        "f": _float_integers,
        "d": _each(pa.int64(), lambda text: _integer_of(number_value(text))),
        "s": _each(pa.int64(), lambda text: _integer_of(_number_in(text))),
    },
    ColumnType.DECIMAL: {
        "i": _as(_DECIMAL),
        "f": _float_decimals,
        **dict.fromkeys("nd", _each(_DECIMAL, lambda text: _decimal_of(number_value(text)))),
        "s": _each(_DECIMAL, lambda text: _decimal_of(_number_in(text))),
    },
    ColumnType.BOOLEAN: {"b": _as_is, "s": _each(pa.bool_(), _flag)},
    ColumnType.TIMESTAMP: {
        "z": _as(ARROW[ColumnType.TIMESTAMP]),
        "t": _timestamps,
        "s": _timestamps,
    },
}
