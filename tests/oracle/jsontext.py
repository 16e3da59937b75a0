"""JSON read without loss (numbers stay the text they were) and written back.

Does not know events, columns or types.
"""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TypeAlias, cast

MAX_DEPTH = 1000
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
INTEGER_DIGITS = 32  # of decimal(38,6)
SIX_PLACES = Decimal("0.000001")
NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
SURROGATE = re.compile("[\ud800-\udfff]")


class NotJsonError(ValueError):
    """The text is not one JSON document."""


class TooDeepError(ValueError):
    """The text nests deeper than a parser must follow."""


@dataclass(frozen=True)
class Number:
    """A JSON number as it was written; its value is 0.<digits> times ten to the power `scale`."""

    literal: str

    @property
    def is_integer_literal(self) -> bool:
        return not set(self.literal) & set(".eE")

    def parts(self) -> tuple[bool, str, int]:
        """Negative, the digits without outer zeros ("" for zero), and the scale.

        >>> Number("-120.50").parts(), Number("0.00").parts(), Number("1e2").parts()
        ((True, '1205', 3), (False, '', 0), (False, '1', 3))
        """
        match = NUMBER.fullmatch(self.literal)
        if match is None:
            raise ValueError(self.literal)
        whole, fraction, exponent = match[2], match[3] or "", match[4] or "0"
        digits = (whole + fraction).lstrip("0")
        if not digits:
            return False, "", 0
        leading_zeros = len(whole + fraction) - len(digits)
        # An exponent of 18 digits is as far out of every range as a longer one.
        power = int(exponent) if len(exponent) < 18 else int(exponent[0] + "9" * 17)
        return match[1] == "-", digits.rstrip("0"), len(whole) - leading_zeros + power

    @property
    def fits_decimal(self) -> bool:
        """Whether the magnitude is below 10^32."""
        return self.parts()[2] <= INTEGER_DIGITS

    def as_int64(self) -> int | None:
        """The value where it is whole and within 64 bits.

        >>> Number("3.0").as_int64(), Number("1e3").as_int64(), Number("2.5").as_int64()
        (3, 1000, None)
        """
        negative, digits, scale = self.parts()
        if not digits:
            return 0
        if len(digits) > scale or scale > 19:
            return None
        magnitude = int(digits.ljust(scale, "0"))
        value = -magnitude if negative else magnitude
        return value if INT64_MIN <= value <= INT64_MAX else None

    def as_decimal(self) -> tuple[Decimal, bool] | None:
        """The value rounded half up to six places, and whether that is the same value.

        >>> Number("0.1234565").as_decimal(), Number("1e32").as_decimal()
        ((Decimal('0.123457'), False), None)
        """
        negative, digits, scale = self.parts()
        if not digits:
            return Decimal("0.000000"), True
        if scale > INTEGER_DIGITS:
            return None
        if scale < -SIX_PLACES.adjusted() - 20:
            return Decimal("0.000000"), False
        exact = Decimal((int(negative), tuple(map(int, digits)), scale - len(digits)))
        context = Context(prec=len(digits) + 100)
        rounded = exact.quantize(SIX_PLACES, rounding=ROUND_HALF_UP, context=context)
        if rounded.is_zero():
            rounded = Decimal("0.000000")
        if rounded.copy_abs() >= Decimal(10) ** INTEGER_DIGITS:
            return None
        return rounded, rounded == exact

    def text(self) -> str:
        """How the number reads as a string, and where it is rescued.

        >>> [Number(n).text() for n in ("-0", "1.50", "1e3", "0.00001", "-0.0", "1e400", "1E-400")]
        ['0', '1.5', '1000.0', '0.00001', '-0.0', '1e400', '1E-400']
        >>> Number("0.1234567890123456").text(), Number("1.000000000000000").text()
        ('0.1234567890123456', '1.000000000000000')
        """
        if self.literal == "-0":
            return "0"
        if self.is_integer_literal:
            return self.literal
        mantissa = re.split("[eE]", self.literal)[0]
        if len(mantissa.lstrip("-").replace(".", "").lstrip("0")) > 15:
            return self.literal
        shortest = repr(float(self.literal))
        if shortest in ("inf", "-inf") or not self.same_value(Number(shortest)):
            return self.literal
        plain = format(Decimal(shortest), "f")
        return plain if "." in plain else plain + ".0"

    def same_value(self, other: "Number") -> bool:
        return self.parts() == other.parts()


Json: TypeAlias = "bool | str | Number | list[Json] | dict[str, Json] | None"


def number_in(text: str) -> Number | None:
    """The number a string spells, in JSON's own grammar and nothing around it.

    >>> [number_in(s) is not None for s in ("12", "-1.5e3", "007", "+1", " 1", "", "1.")]
    [True, True, False, False, False, False, False]
    """
    return Number(text) if NUMBER.fullmatch(text) else None


@contextmanager
def deep_stack() -> Iterator[None]:
    """Room to walk values nested as deep as a parser must follow."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def nesting(text: str) -> int:  # noqa: C901  # a scanner is one loop
    r"""How many brackets are open at once, at most; those inside strings do not count.

    >>> nesting('{"a[[[\\"[":[1]}')
    2
    """
    deepest = depth = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def parse(text: str) -> Json:
    """The document, its numbers as literals; of equal keys the last wins, in the first's place."""
    if nesting(text) > MAX_DEPTH:
        raise TooDeepError
    try:
        loaded = json.loads(
            text,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse,
            object_pairs_hook=_last_wins,
        )
    except ValueError as error:
        raise NotJsonError(str(error)) from error
    return cast("Json", loaded)


def _refuse(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _last_wins(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    return dict(pairs)


def dump(value: Json) -> str:
    r"""Compact JSON; only what JSON or UTF-8 cannot hold is escaped.

    >>> print(dump(parse('{"ü": [1.50, "\\ud800", true, null], "b": {}}')))
    {"ü":[1.5,"\ud800",true,null],"b":{}}
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return value.text()
    if isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=False)
        return SURROGATE.sub(lambda lone: f"\\u{ord(lone[0]):04x}", quoted)
    if isinstance(value, list):
        return "[" + ",".join(dump(item) for item in value) + "]"
    return "{" + ",".join(f"{dump(key)}:{dump(item)}" for key, item in value.items()) + "}"
