"""What type a new column gets, and what a value becomes in a column of a given type."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

from .jsontext import SURROGATE, Json, Number, dump, number_in

Cell = None | bool | int | str | Decimal | datetime

BIGINT, BOOLEAN, DECIMAL, STRING, TIMESTAMP = (
    "bigint",
    "boolean",
    "decimal(38,6)",
    "string",
    "timestamp",
)

CLOCK_AND_ZONE = (
    r"(?:[Tt ](?P<hour>{two}):(?P<minute>{two})"
    r"(?::(?P<second>{two})(?:[.,](?P<fraction>[0-9]+))?)?"
    r"(?P<zone>[Zz]|(?P<sign>[+-])(?P<zh>[0-9]{{2}})(?::?(?P<zm>[0-9]{{2}}))?)?)?"
)
ISO_PATTERN = r"(?P<year>[0-9]{{4}})-(?P<month>{two})-(?P<date>{two})" + CLOCK_AND_ZONE
STRICT = re.compile(ISO_PATTERN.format(two="[0-9]{2}"))
LENIENT = re.compile(ISO_PATTERN.format(two="[0-9]{1,2}"))


@dataclass(frozen=True)
class Instant:
    """A moment in UTC, to the microsecond, and whether nothing was rounded away."""

    at: datetime
    exact: bool


def instant(text: str, *, lenient: bool) -> Instant | None:
    """The moment an ISO-8601 string names; leniently, its numbers need no padding.

    >>> print(instant("2024-05-01T10:00:00.1234567+02:00", lenient=False).at)
    2024-05-01 08:00:00.123457+00:00
    >>> instant("2015-2-02T3:04:05Z", lenient=False), instant("2024-02-30", lenient=True)
    (None, None)
    """
    match = (LENIENT if lenient else STRICT).fullmatch(text)
    if match is None:
        return None
    zone_hours, zone_minutes = int(match["zh"] or 0), int(match["zm"] or 0)
    if zone_hours > 23 or zone_minutes > 59:
        return None
    offset = timedelta(hours=zone_hours, minutes=zone_minutes) * (-1 if match["sign"] == "-" else 1)
    micros = (match["fraction"] or "").ljust(6, "0")
    rounds_up = micros[6:7] >= "5"
    try:
        local = datetime(
            int(match["year"]),
            int(match["month"]),
            int(match["date"]),
            int(match["hour"] or 0),
            int(match["minute"] or 0),
            int(match["second"] or 0),
            int(micros[:6]),
            tzinfo=timezone(offset),
        )
        at = local.astimezone(UTC) + timedelta(microseconds=int(rounds_up))
    except (ValueError, OverflowError):
        return None
    return Instant(at, exact=not micros[6:].strip("0"))


def infer(values: Iterable[Json]) -> str:
    """The narrowest type for all the values of a new column."""
    found = list(values)
    if all(isinstance(value, bool) for value in found):
        return BOOLEAN
    if all(isinstance(value, str) and instant(value, lenient=False) for value in found):
        return TIMESTAMP
    numbers = [value for value in found if isinstance(value, Number)]
    if len(numbers) < len(found) or not all(number.fits_decimal for number in numbers):
        return STRING
    if all(n.is_integer_literal and n.as_int64() is not None for n in numbers):
        return BIGINT
    return DECIMAL


@dataclass(frozen=True)
class Typed:
    """The cell a value became; `kept` says that the original must be kept beside it."""

    cell: Cell
    kept: bool

    @property
    def outcome(self) -> str:
        if self.cell is None:
            return "rescued"
        return "rounded" if self.kept else "typed"


RESCUED = Typed(None, kept=True)


def cast(value: Json, column_type: str) -> Typed:
    """What a non-null value becomes in a column.

    >>> cast("12.0", BIGINT), cast("007", BIGINT)
    (Typed(cell=12, kept=False), Typed(cell=None, kept=True))
    """
    return CASTS[column_type](value)


def _to_string(value: Json) -> Typed:
    if not isinstance(value, str):
        return Typed(dump(value), kept=False)
    clean = SURROGATE.sub("\ufffd", value)
    return Typed(clean, kept=clean != value)


def _number_of(value: Json) -> Number | None:
    if isinstance(value, str):
        return number_in(value)
    return value if isinstance(value, Number) else None


def _to_bigint(value: Json) -> Typed:
    number = _number_of(value)
    whole = None if number is None else number.as_int64()
    return RESCUED if whole is None else Typed(whole, kept=False)


def _to_decimal(value: Json) -> Typed:
    number = _number_of(value)
    rounded = None if number is None else number.as_decimal()
    return RESCUED if rounded is None else Typed(rounded[0], kept=not rounded[1])


def _to_boolean(value: Json) -> Typed:
    if isinstance(value, bool):
        return Typed(value, kept=False)
    if isinstance(value, str) and value in ("true", "false"):
        return Typed(value == "true", kept=False)
    return RESCUED


def _to_timestamp(value: Json) -> Typed:
    moment = instant(value, lenient=True) if isinstance(value, str) else None
    return RESCUED if moment is None else Typed(moment.at, kept=not moment.exact)


CASTS: dict[str, Callable[[Json], Typed]] = {
    STRING: _to_string,
    BIGINT: _to_bigint,
    DECIMAL: _to_decimal,
    BOOLEAN: _to_boolean,
    TIMESTAMP: _to_timestamp,
}
