"""Names and values of the oracle against the vectors of the facts and the rules of the design."""

from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import values as texts

from .casts import BIGINT, BOOLEAN, DECIMAL, STRING, TIMESTAMP, cast, infer, instant
from .compare import same_rescued
from .jsontext import Json, Number, dump, parse
from .names import column_name, path_text, snake, table_name

# Names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((n, "sample_text") for n in ("sample text", "sample-text", "sample___text")),
        ("sampleText", "sample_text"),
        ("samPLE text", "sam_ple_text"),
        ("SAMPLE 2 TEXT", "sample_2_text"),
        ("___$$Base64Encode", "base64_encode"),
        ("something.com", "something_com"),
        ("$something%", "something"),
        ("2FA Enabled", "2fa_enabled"),
        ("•¶§ƒ˚foo˙∆˚¬", "foo"),
        ("@49L0S145_¬fwHƒ0TSLNVp", "49l0s145_fw_h_0tslnvp"),
        ("FOO:BAR$BAZ", "foo_bar_baz"),
        ("CStringRef", "cstring_ref"),
        *((n, "5test") for n in ("5TEst", "_5TEst", "@%#&5TEst")),
        ("THE5r", "the5r"),
        ("edf_6N", "edf_6n"),
        ("f_pX9", "f_p_x9"),
        ("p_z9Rg", "p_z9_rg"),
        ("lk0B@bFmjrLQ_Z6YL", "lk0_b_b_fmjr_lq_z6yl"),
        ("userID", "user_id"),
        ("HTTPServer", "httpserver"),
        ("iOS Prod", "i_os_prod"),
        ("productID2Name", "product_id2name"),
        ("日本", ""),
    ],
)
def test_snake_case_matches_the_vectors(name: str, expected: str) -> None:
    assert snake(name) == expected


@given(st.text())
def test_snake_case_of_a_clean_name_is_the_name(name: str) -> None:
    assert snake(snake(name)) == snake(name)


def test_a_name_without_letters_gets_a_stable_substitute() -> None:
    digest = blake2b("日本".encode(), digest_size=4).hexdigest()
    assert column_name(("properties", "日本")) == f"properties_x_{digest}"
    assert table_name("track", "日本", "") == f"x_{digest}"


def test_a_long_name_is_cut_and_told_apart() -> None:
    path = ("properties", "K" * 300)
    digest = blake2b(path_text(path).encode(), digest_size=4).hexdigest()
    assert column_name(path) == "properties_" + "k" * 230 + "_" + digest
    assert len(table_name("track", "E" * 300, "track_")) == 240


@pytest.mark.parametrize(
    ("event", "prefix", "table"),
    [
        ("Order Completed", "", "order_completed"),
        ("Order Completed", "track_", "track_order_completed"),
        ("Identify", "", "_identify"),
        ("OTHER events", "", "_other_events"),
        ("Identify", "track_", "track_identify"),
        ("Track", "", "track"),
    ],
)
def test_a_track_event_never_lands_in_a_fixed_table(event: str, prefix: str, table: str) -> None:
    assert table_name("track", event, prefix) == table


# Values


@pytest.mark.parametrize(
    ("literals", "expected"),
    [
        (["1", "-9223372036854775808"], BIGINT),
        (["1", "9223372036854775808"], DECIMAL),
        (["1", "1.0"], DECIMAL),
        (["1e3"], DECIMAL),
        (["9" * 32], DECIMAL),
        (["1" + "0" * 32], STRING),
        (["1e32"], STRING),
        (["1e400"], STRING),
        (["1e99999999999999999999999"], STRING),
        (["-1e-99999999999999999999999"], DECIMAL),
        (["0e99999999999999999999999"], DECIMAL),
        (["1" * 10_000], STRING),
        (["true", "false"], BOOLEAN),
        (["true", "1"], STRING),
        (['"2024-05-01"', '"2024-05-01T10:00:00.123456789Z"'], TIMESTAMP),
        (['"2024-05-01"', '"2024-5-01"'], STRING),
        (['"2024-05-01"', "1"], STRING),
        (["[]"], STRING),
        (['""'], STRING),
    ],
)
def test_a_new_column_gets_the_narrowest_type(literals: list[str], expected: str) -> None:
    assert infer(map(parse, literals)) == expected
    assert infer(map(parse, reversed(literals))) == expected


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-05-01", "2024-05-01T00:00:00"),
        ("2024-05-01T10:30", "2024-05-01T10:30:00"),
        ("2024-05-01 10:30:15", "2024-05-01T10:30:15"),
        ("2024-05-01t10:30:15,5z", "2024-05-01T10:30:15.500000"),
        ("2024-05-01T10:30:15.1234565Z", "2024-05-01T10:30:15.123457"),
        ("2024-05-01T10:30:15.1234564999Z", "2024-05-01T10:30:15.123456"),
        ("2024-12-31T23:59:59.9999995Z", "2025-01-01T00:00:00"),
        ("1969-12-31T23:59:59.9999995Z", "1970-01-01T00:00:00"),
        ("2024-05-01T10:30+05", "2024-05-01T05:30:00"),
        ("2024-05-01T10:30-0530", "2024-05-01T16:00:00"),
        ("2024-05-01T10:30+23:59", "2024-04-30T10:31:00"),
        ("2000-02-29", "2000-02-29T00:00:00"),
    ],
)
def test_an_iso_string_names_a_moment(text: str, utc: str) -> None:
    moment = instant(text, lenient=False)
    assert moment is not None
    assert moment.at == datetime.fromisoformat(utc + "+00:00")
    assert moment.exact == (
        len(text.rsplit(".", maxsplit=1)[-1].rstrip("Z")) <= 6 or "." not in text
    )


@pytest.mark.parametrize("text", [*texts.NEARLY_ISO, "2024-05-01Z", "2024-05-01T10:00:00."])
def test_what_is_nearly_iso_makes_no_timestamp_column(text: str) -> None:
    assert instant(text, lenient=False) is None


@pytest.mark.parametrize(
    ("literal", "column_type", "cell", "outcome"),
    [
        ("3.0", BIGINT, 3, "typed"),
        ("1e3", BIGINT, 1000, "typed"),
        ("9007199254740993.0", BIGINT, 9007199254740993, "typed"),
        ("-0", BIGINT, 0, "typed"),
        ("9223372036854775808", BIGINT, None, "rescued"),
        ("2.5", BIGINT, None, "rescued"),
        ('"12"', BIGINT, 12, "typed"),
        ('"12.0"', BIGINT, 12, "typed"),
        ('"007"', BIGINT, None, "rescued"),
        ('"+1"', BIGINT, None, "rescued"),
        ('" 1"', BIGINT, None, "rescued"),
        ('""', BIGINT, None, "rescued"),
        ("true", BIGINT, None, "rescued"),
        ("[1]", BIGINT, None, "rescued"),
        ("1", DECIMAL, Decimal("1.000000"), "typed"),
        ("0.1234565", DECIMAL, Decimal("0.123457"), "rounded"),
        ("-0.1234565", DECIMAL, Decimal("-0.123457"), "rounded"),
        ("1e-400", DECIMAL, Decimal("0.000000"), "rounded"),
        ("-0.0", DECIMAL, Decimal("0.000000"), "typed"),
        ("9" * 32 + ".999999", DECIMAL, Decimal("9" * 32 + ".999999"), "typed"),
        ("9" * 32 + ".9999995", DECIMAL, None, "rescued"),
        ("1e32", DECIMAL, None, "rescued"),
        ('"1.5"', DECIMAL, Decimal("1.500000"), "typed"),
        ("true", BOOLEAN, True, "typed"),
        ('"false"', BOOLEAN, False, "typed"),
        ('"False"', BOOLEAN, None, "rescued"),
        ("1", BOOLEAN, None, "rescued"),
        ('"2015-2-02T3:04:05Z"', TIMESTAMP, datetime(2015, 2, 2, 3, 4, 5, tzinfo=UTC), "typed"),
        ('"nope"', TIMESTAMP, None, "rescued"),
        ("1430000000", TIMESTAMP, None, "rescued"),
        ("-0", STRING, "0", "typed"),
        ("1.50", STRING, "1.5", "typed"),
        ("1e3", STRING, "1000.0", "typed"),
        ("1e22", STRING, "10000000000000000000000.0", "typed"),
        ("0.00001", STRING, "0.00001", "typed"),
        ("12345678901234567890123", STRING, "12345678901234567890123", "typed"),
        ("0.1234567890123456", STRING, "0.1234567890123456", "typed"),
        ("1e400", STRING, "1e400", "typed"),
        ("true", STRING, "true", "typed"),
        ('[1, "ü", {"a": 1.50}]', STRING, '[1,"ü",{"a":1.5}]', "typed"),
        (r'"a\ud800"', STRING, "a\ufffd", "rounded"),
        (r'"\ud83d\ude00"', STRING, "😀", "typed"),
    ],
)
def test_a_value_is_cast_exactly_or_kept(
    literal: str, column_type: str, cell: object, outcome: str
) -> None:
    typed = cast(parse(literal), column_type)
    assert (typed.cell, typed.outcome) == (cell, outcome)
    assert type(typed.cell) is type(cell)


@given(st.lists(st.sampled_from(sorted(texts.KINDS)).flatmap(lambda kind: texts.KINDS[kind])))
def test_an_inferred_type_loses_none_of_its_values(literals: list[str]) -> None:
    values: list[Json] = [parse(text) for text in literals]
    column_type = infer(values)
    for value in values:
        rounds_out_of_range = isinstance(value, Number) and value.as_decimal() is None
        lost = cast(value, column_type).outcome == "rescued"
        assert not lost or (column_type == DECIMAL and rounds_out_of_range)


@given(texts.scalars | texts.arrays)
def test_written_json_reads_back_as_the_same_value(text: str) -> None:
    assert same_rescued({"p": text}, {"p": dump(parse(text))})
