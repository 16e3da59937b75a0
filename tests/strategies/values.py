"""JSON values as text, so that literals, escapes and duplicate keys come exactly as chosen.

Every strategy yields the text of one JSON value. Conflicts come from themes: a theme gives each
key the kinds of value it usually holds, so that columns get narrow types and still meet misfits.
"""

import json
from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

Text = st.SearchStrategy[str]
Pairs = list[tuple[str, str]]

KEYS = (
    *("productId", "product_id", "ProductID", "price", "quantity", "ok", "when"),
    *("a", "a_b", "a.b", "b", "day", "hr", "Month", "name", "event", "_rescued"),
    *("日本", "", "x y", "ünïcode", "back\\slash", 'quo"te'),
)

SMALL_INTEGERS = ("0", "1", "2", "12", "-7", "1000")
INTEGERS = (
    *SMALL_INTEGERS,
    *("-0", "9007199254740993", "9223372036854775807", "-9223372036854775808"),
)
BIG_INTEGERS = (
    *("9223372036854775808", "-9223372036854775809", "12345678901234567890123"),
    *("9" * 32, "1" + "0" * 32, "-1" + "0" * 40, "7" * 400),
)
FRACTIONS = (
    *("1.5", "1.50", "3.0", "1e3", "1E2", "-2.5e-3", "0.00001", "-0.0", "19.99", "1.5e-7", "1e22"),
    *("0.1234565", "0.1234564", "-0.1234565", "0.000000", "1e-400", "1e400", "-1e400", "1e31"),
    *("1e32", "0.1234567890123456", "12345678901234.123456", "9007199254740993.0"),
    *("9" * 32 + ".9999999", "123456789012345678901234567890.5", "1.7976931348623157e308"),
)
ISO = (
    *("2024-05-01", "2024-02-29", "2024-05-01T10:00:00Z", "2024-05-01T10:00:00.123Z"),
    *("2024-05-01 10:00", "2024-05-01t10:00:00,5z", "2024-05-01T10:00:00+0530"),
    *("2024-05-01T10:00:00-03", "2024-05-01T10:00:00.123456+05:30", "0001-01-01T00:00:00Z"),
    *("2024-05-01T10:00:00.1234567Z", "2024-05-01T10:00:00.1234560000Z", "1969-12-31T23:59:59Z"),
    *("2024-12-31T23:59:59.9999999Z", "2024-05-01T10:00:00.1234564999Z"),
)
NEARLY_ISO = (
    *("2015-2-02T3:04:05Z", "2024-5-1", "2024-02-30", "2023-02-29", "2024-05-01T24:00:00Z"),
    *("2024-05-01T10:00:60Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59.9999999Z"),
    *("9999-12-31T23:00:00-01:00", "20240501", "2024-05-01T", "2024-05-01T10", "0000-01-01"),
    *("2024-05-01T10:00:00+24:00", "2024-05-01T10:00:00+05:60", " 2024-05-01", "2024-05-01\n"),
    *("2024-05-01  10:00", "24-05-01", "2024-13-01", "٢٠٢٤-05-01", "2024-W18-3"),
)
NUMERIC = (
    *("12", "-7", "12.0", "12.5", "1e3", "-0", "0.1234567", "9223372036854775808", "1e400"),
    *("007", "+1", " 1", "1 ", "", "0x1", "1_000", "NaN", "Infinity", "1.", ".5", "١٢"),
)
WORDS = ("x", "Shoe", "true", "false", "True", "FALSE", "null", "ünï", "日本", "🛒", 'a"b\\c\n\t')
CONTROLS = ("\u0000", "a\u0000b", "\u007f\u0085", "\u2028", "\ufffd", "\ufeff")
LONE_SURROGATES = (r'"\ud800"', r'"a\uDFFFb"', r'"\udc00\ud800"', r'"2024-05-01\ud83d"')


def quoted(strings: Sequence[str]) -> Text:
    """JSON strings, with and without escapes for what is not ASCII."""
    return st.builds(
        lambda text, ascii_only: json.dumps(text, ensure_ascii=ascii_only),
        st.sampled_from(strings),
        st.booleans(),
    )


integers = st.sampled_from(INTEGERS) | st.integers(-(2**63), 2**63 - 1).map(str)
small_numbers = st.sampled_from((*SMALL_INTEGERS, "1.5", "19.99", "-2.25"))
big_integers = st.sampled_from(BIG_INTEGERS)
fractions = st.sampled_from(FRACTIONS)
decimals = st.builds("{}.{:06}".format, st.integers(-(10**8), 10**8), st.integers(0, 10**6 - 1))
booleans = st.sampled_from(("true", "false"))
iso = quoted(ISO)
nearly_iso = quoted(NEARLY_ISO)
numeric = quoted(NUMERIC)
words = quoted(WORDS) | quoted(CONTROLS)
lone_surrogates = st.sampled_from(LONE_SURROGATES)
null = st.just("null")

scalars = st.one_of(
    integers, big_integers, fractions, booleans, iso, nearly_iso, numeric, words, lone_surrogates
)


def array_of(items: Sequence[str]) -> str:
    return "[" + ", ".join(items) + "]"


def object_of(pairs: Pairs) -> str:
    """An object's text; equal keys stay.

    >>> object_of([("a", "1"), ("a", "[]")])
    '{"a": 1, "a": []}'
    """
    return "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in pairs) + "}"


arrays = st.lists(
    st.one_of(
        scalars,
        null,
        st.just("{}"),
        st.lists(scalars, max_size=2).map(array_of),
        st.tuples(st.sampled_from(KEYS), scalars).map(lambda pair: object_of([pair])),
    ),
    max_size=3,
).map(array_of)

KINDS: Mapping[str, Text] = {
    "integer": integers,
    "small": small_numbers,
    "big": big_integers,
    "fraction": fractions,
    "decimal": decimals,
    "boolean": booleans,
    "iso": iso,
    "nearly_iso": nearly_iso,
    "numeric": numeric,
    "word": words,
    "surrogate": lone_surrogates,
    "array": arrays,
}

Theme = Mapping[str, Sequence[str]]

themes: st.SearchStrategy[Theme] = st.fixed_dictionaries(
    {
        key: st.lists(st.sampled_from(tuple(KINDS)), min_size=1, max_size=2, unique=True)
        for key in KEYS
    }
)


@st.composite
def value(draw: st.DrawFn, theme: Theme, key: str, depth: int) -> str:
    """A value for a key: mostly of the theme's kinds, at times any other, null or an object."""
    dice = draw(st.integers(0, 19))
    if dice == 0:
        return draw(st.sampled_from(("null", "{}", '{"a": null}')))
    if dice == 1:
        return draw(scalars | arrays)
    if dice <= 3 and depth:
        return object_of(draw(members(theme, depth - 1, max_size=3)))
    return draw(KINDS[draw(st.sampled_from(theme[key]))])


@st.composite
def members(draw: st.DrawFn, theme: Theme, depth: int = 3, max_size: int = 5) -> Pairs:
    """The members of an object; keys may repeat."""
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=max_size))
    return [(key, draw(value(theme, key, depth))) for key in keys]


def nested(levels: int, leaf: str, *, arrays_too: bool = False) -> str:
    """An object in an object …, `levels` deep, around a leaf.

    >>> nested(2, "1"), nested(2, "1", arrays_too=True)
    ('{"d": {"d": 1}}', '[[1]]')
    """
    opening, closing = ("[", "]") if arrays_too else ('{"d": ', "}")
    return opening * levels + leaf + closing * levels


# Well beyond the guard of 16 path parts, and on either side of what a parser must follow.
deep_values = st.sampled_from(
    (nested(25, "1"), nested(25, '"x"'), nested(600, "true", arrays_too=True), nested(850, "2.50"))
)
TOO_DEEP = nested(1200, "1", arrays_too=True)
