"""Compares what the product wrote with what the oracle expects, and says where they differ."""

from collections.abc import Mapping, Sequence

from .jsontext import Json, Number, deep_stack, parse
from .oracle import RESCUED, Columns, Partition, Tables

LITERAL_DIGITS = 15  # a number of more digits must keep its literal text


def same_json(expected: Json, actual: Json) -> bool:
    """Equal documents; numbers of at most 15 significant digits by value, longer ones by text.

    >>> same_json(parse('{"a": [1.50]}'), parse('{"a": [15e-1]}'))
    True
    >>> same_json(parse("1234567890123456.0"), parse("1234567890123456"))
    False
    """
    if isinstance(expected, Number) and isinstance(actual, Number):
        if expected.literal == actual.literal:
            return True
        short = len(expected.parts()[1]) <= LITERAL_DIGITS
        return short and expected.same_value(actual)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(same_json, expected, actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            same_json(value, actual[key]) for key, value in expected.items()
        )
    return type(expected) is type(actual) and expected == actual


def same_rescued(expected: object, actual: object) -> bool:
    """Equal `_rescued` cells, each null, a JSON text, or the oracle's path → JSON text."""
    with deep_stack():
        return same_json(_rescued_json(expected), _rescued_json(actual))


def _rescued_json(cell: object) -> Json:
    if isinstance(cell, str):
        return parse(cell)
    if isinstance(cell, Mapping):
        return {str(path): parse(str(text)) for path, text in cell.items()}
    return None


def same_cell(expected: object, actual: object) -> bool:
    """Equal values of the same Python type: True is not 1, and a Decimal is not an int.

    Arrays are equal as JSON: `[1e22]` may be written in more than one way.
    """
    if type(expected) is type(actual) and expected == actual:
        return True
    if isinstance(expected, str) and isinstance(actual, str) and expected[:1] == actual[:1] == "[":
        try:
            return same_json(parse(expected), parse(actual))
        except ValueError:
            return False
    return False


def row_differences(expected: Mapping[str, object], actual: Mapping[str, object]) -> list[str]:
    """The columns in which two rows differ; a column the actual row lacks counts as null."""
    found = [f"unexpected column {name}" for name in actual if name not in expected]
    for name, cell in expected.items():
        same = same_rescued if name == RESCUED else same_cell
        if not same(cell, actual.get(name)):
            found.append(f"{name}: expected {cell!r}, got {actual.get(name)!r}")
    return found


def differences(
    expected: Tables,
    actual: Mapping[str, Mapping[Partition, Sequence[Mapping[str, object]]]],
) -> list[str]:
    """Every difference between two lakes; rows are matched by message id, their order ignored."""
    found: list[str] = []
    wanted, got = _by_place(expected), _by_place(actual)
    found += [f"missing {place}" for place in wanted if place not in got]
    found += [f"unexpected {place}" for place in got if place not in wanted]
    for place, rows in wanted.items():
        others = got.get(place, [])
        if others and len(others) != len(rows):
            found.append(f"{place}: {len(others)} rows for {len(rows)}")
        elif others:
            for row, other in zip(rows, others, strict=True):
                found += [f"{place} {text}" for text in row_differences(row, other)]
    return found


Place = tuple[str, Partition, str]


def _by_place(
    tables: Mapping[str, Mapping[Partition, Sequence[Mapping[str, object]]]],
) -> dict[Place, list[Mapping[str, object]]]:
    places: dict[Place, list[Mapping[str, object]]] = {}
    for table, partitions in tables.items():
        for partition, rows in partitions.items():
            for row in rows:
                place = (table, partition, str(row.get("message_id", row.get("id"))))
                places.setdefault(place, []).append(row)
    return places


def schema_differences(
    expected: Mapping[str, Columns], actual: Mapping[str, Sequence[tuple[str, str]]]
) -> list[str]:
    """The tables whose columns differ in name, type or order."""
    return [
        f"{table}: expected {expected.get(table)}, got {actual.get(table)}"
        for table in sorted({*expected, *actual})
        if list(expected.get(table, [])) != list(actual.get(table, []))
    ]
