"""Lines to JSON documents, exactly.

orjson parses all ordinary lines. What it would round or refuse although it is JSON (numbers
beyond a float, lone surrogates) goes through the standard library's parser with the literals
kept: `Number` is the text of such a number. Does not look into the documents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

Document = dict[str, Any]

# Digits and points become "0", the rest of a small exponent stays, all else becomes NUL: one fast
# pass over a chunk that lets two fast searches find every number a float may not hold.
_SHAPE = bytes(
    48 if 48 <= i <= 57 or i == 46 else 101 if i in b"eE" else 45 if i == 45 else 0
    for i in range(256)
)
# A float holds 15 significant digits exactly; a run of 16 digits or points may hold more.
_LONG_RUN = b"0" * 16
# Below about 1e-308 a float becomes zero without a word.
_TINY = b"0e-000"
_ZEROS = re.compile(b"0+")
_HALVES = re.compile("[\ud800-\udfff]")
_BEFORE_NUMBER = frozenset(b":,[ \t\r")
# A decimal(38,6) has so many digits before the point.
DECIMAL_DIGITS = 32
_TINIEST = Decimal("1e-100000")
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Number(str):
    """A JSON number that neither int64 nor a float holds exactly, as its text."""

    __slots__ = ()


class UnreadableError(Exception):
    """A line that is no JSON document. `reason` is the reject's reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def documents(lines: list[bytes]) -> tuple[list[Any], list[int], list[tuple[int, str]]]:
    """Documents, the index of each one's line, and (index, reason) of what is no document.

    Blank lines are neither.
    """
    try:
        docs = list(map(orjson.loads, lines))
        kept = list(range(len(lines)))
        refused: list[tuple[int, str]] = []
    except orjson.JSONDecodeError:
        docs, kept, refused = _one_by_one(lines)
    places: dict[int, int] | None = None
    for line in lines_with_inexact_numbers(lines):
        if places is None:
            places = {index: place for place, index in enumerate(kept)}
        if line in places:
            docs[places[line]] = exact(lines[line])
    if set(map(type, docs)) - {dict}:
        refused += [
            (i, "not_object") for i, doc in zip(kept, docs, strict=True) if type(doc) is not dict
        ]
        pairs = [(i, doc) for i, doc in zip(kept, docs, strict=True) if type(doc) is dict]
        kept, docs = [i for i, _ in pairs], [doc for _, doc in pairs]
    return docs, kept, refused


def _one_by_one(lines: list[bytes]) -> tuple[list[Any], list[int], list[tuple[int, str]]]:
    docs, kept, refused = [], [], []
    for index, line in enumerate(lines):
        try:
            doc = orjson.loads(line)
        except orjson.JSONDecodeError:
            if not line.removeprefix(_BOM).strip(_BLANK):
                continue
            try:
                doc = exact(line)
            except UnreadableError as error:
                refused.append((index, error.reason))
                continue
        docs.append(doc)
        kept.append(index)
    return docs, kept, refused


def lines_with_inexact_numbers(lines: list[bytes]) -> list[int]:
    """Indexes of lines with a number literal that orjson may round.

    Digits inside strings mostly don't count.
    """
    block = b"\n".join(lines)
    shape = block.translate(_SHAPE)
    if _LONG_RUN not in shape and _TINY not in shape:
        return []
    spots = sorted({*_long_runs(block, shape), *_tiny_numbers(block, shape)})
    found, line, line_end = [], -1, -1
    for spot in spots:
        before = line
        while line_end < spot:
            line += 1
            line_end += len(lines[line]) + 1
        if line != before:
            found.append(line)
    return found


def _long_runs(block: bytes, shape: bytes) -> Iterator[int]:
    start = shape.find(_LONG_RUN)
    while start >= 0:
        run = _ZEROS.match(shape, start)
        end = run.end() if run else start
        negative = block[start - 1 : start] == b"-"
        # orjson reads integers of 64 bits exactly: 18 digits always fit, 19 mostly
        if (
            b"." in block[start:end] or block[end : end + 1] in (b"e", b"E") or end - start > 18
        ) and block[start - 1 - negative] in _BEFORE_NUMBER:
            yield start
        start = shape.find(_LONG_RUN, end)


def _tiny_numbers(block: bytes, shape: bytes) -> Iterator[int]:
    spot = shape.find(_TINY)
    while spot >= 0:
        start = spot
        while start and shape[start - 1] == 48:
            start -= 1
        negative = block[start - 1 : start] == b"-"
        if block[start - 1 - negative] in _BEFORE_NUMBER:
            yield start
        spot = shape.find(_TINY, spot + 1)


def exact(line: bytes) -> Any:
    """The document of one line with every number exact. Duplicate keys: the last one wins.

    Raises `UnreadableError` with the reason.
    """
    try:
        text = line.removeprefix(_BOM).decode()
    except UnicodeDecodeError:
        raise UnreadableError("not_utf8") from None
    try:
        return json.loads(
            text,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise UnreadableError("too_deep") from None
    except ValueError:
        raise UnreadableError("not_json") from None


def _integer(text: str) -> int | Number:
    if len(text) < 19:
        return int(text)
    if len(text) < 21 and -(2**63) <= (value := int(text)) < 2**63:
        return value
    return Number(text)


def _fraction(text: str) -> float | Number:
    mantissa = text.lower().partition("e")[0]
    digits = mantissa.replace(".", "").lstrip("-0")
    value = float(text)
    if (
        len(digits) > 15
        or value in (float("inf"), float("-inf"))
        or (abs(value) < 1e-290 and digits)
    ):
        return Number(text)
    return value


def _constant(text: str) -> Any:
    raise ValueError(text)


def _object(pairs: list[tuple[str, Any]]) -> Document:
    doc = dict(pairs)
    if any(not key.isascii() for key in doc):
        doc = {whole(key): value for key, value in doc.items()}
    return doc


def whole(text: str) -> str:
    """`text` with U+FFFD where it has half of a surrogate pair, which no UTF-8 can hold."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def json_text(value: Any) -> str:
    """The JSON text of a value, compact, with exact numbers. Lone surrogates become escapes."""
    if type(value) is Number:
        return str(value)
    if type(value) is float:
        return plain(value)
    try:
        return orjson.dumps(
            value, default=_fragment, option=orjson.OPT_PASSTHROUGH_SUBCLASS
        ).decode()
    except (orjson.JSONEncodeError, RecursionError):
        return _dumps(value)


def _fragment(value: Any) -> orjson.Fragment:
    if type(value) is Number:
        return orjson.Fragment(value)
    raise TypeError(type(value))


def _dumps(value: Any) -> str:
    """`json_text` for what orjson refuses.

    Lone surrogates, and nesting deeper than it (or a call stack) goes.
    """
    out: list[str] = []
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if type(item) is dict:
            stack.append(Number("}"))
            for place, (key, child) in reversed(list(enumerate(item.items()))):
                stack += (child, Number(f"{',' if place else ''}{json.dumps(key)}:"))
            out.append("{")
        elif type(item) is list:
            stack.append(Number("]"))
            for place, child in reversed(list(enumerate(item))):
                stack += (child, Number("," if place else ""))
            out.append("[")
        elif type(item) is Number:  # also a piece of text that is ready
            out.append(str(item))
        else:
            out.append(_scalar(item))
    return "".join(out)


def _scalar(value: Any) -> str:
    if type(value) is float:
        return plain(value)
    return json.dumps(value) if type(value) is str else orjson.dumps(value).decode()


def plain(value: float) -> str:
    """The shortest text of a float, without an exponent.

    >>> [plain(v) for v in (1.5, 1000.0, 1e-05, 1e22)]
    ['1.5', '1000.0', '0.00001', '10000000000000000000000.0']
    """
    text = repr(value)
    if "e" not in text:
        return text
    text = format(Decimal(text), "f")
    return text if "." in text else f"{text}.0"


def number_value(text: str) -> Decimal | None:
    """The value of a number, however many digits it has; None where no decimal(38,6) holds it.

    What is smaller than any decimal's exponent comes back as something as good as zero, but not
    zero.
    """
    try:
        value = Decimal(text)
    except InvalidOperation:
        return _TINIEST if "e-" in text.lower() else None
    return value if value.adjusted() < DECIMAL_DIGITS or not value else None
