"""The names of tables and columns: Segment's vectors, and the cases its rule leaves open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.model.names import path_keys, path_text, snake
from eventlake.profiles import PROFILES
from eventlake.profiles.profile import Kind

SEGMENT = PROFILES["segment"]

VECTORS = {
    "sample text": "sample_text",
    "sample-text": "sample_text",
    "sample___text": "sample_text",
    "sampleText": "sample_text",
    "samPLE text": "sam_ple_text",
    "SAMPLE 2 TEXT": "sample_2_text",
    "___$$Base64Encode": "base64_encode",
    "something.com": "something_com",
    "$something%": "something",
    "2FA Enabled": "2fa_enabled",
    "•¶§ƒ˚foo˙∆˚¬": "foo",
    "@49L0S145_¬fwHƒ0TSLNVp": "49l0s145_fw_h_0tslnvp",
    "FOO:BAR$BAZ": "foo_bar_baz",
    "CStringRef": "cstring_ref",
    "5TEst": "5test",
    "_5TEst": "5test",
    "@%#&5TEst": "5test",
    "THE5r": "the5r",
    "edf_6N": "edf_6n",
    "f_pX9": "f_p_x9",
    "p_z9Rg": "p_z9_rg",
    "lk0B@bFmjrLQ_Z6YL": "lk0_b_b_fmjr_lq_z6yl",
    "userID": "user_id",
    "HTTPServer": "httpserver",
    "iOS Prod": "i_os_prod",
    "productID2Name": "product_id2name",
    "日本": "",
}


@pytest.mark.parametrize(("name", "wanted"), VECTORS.items())
def test_snake_case_is_segments(name: str, wanted: str) -> None:
    assert snake(name) == wanted


@given(st.text())
def test_a_clean_name_stays_as_it_is(name: str) -> None:
    assert snake(snake(name)) == snake(name)


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_a_path_survives_being_written(keys: list[str]) -> None:
    assert path_keys(path_text(keys)) == tuple(keys)


@pytest.mark.parametrize(
    ("event", "table"),
    [
        ("Order Completed", "order_completed"),
        ("orderCompleted", "order_completed"),
        ("Identify", "_identify"),
        ("page", "_page"),
        ("Other Events", "_other_events"),
        ("日本", "x_ce47dfba"),
    ],
)
def test_table_of_a_track_event(event: str, table: str) -> None:
    assert SEGMENT.table(Kind("track", event)) == table


def test_a_track_prefix_goes_before_the_event() -> None:
    assert (
        replace(SEGMENT, track_prefix="track_").table(Kind("track", "Identify")) == "track_identify"
    )


def test_long_names_are_cut_and_stay_distinct() -> None:
    tables = {SEGMENT.table(Kind("track", "e" * 300 + end)) for end in "ab"}
    columns = {SEGMENT.column(("properties", "k" * 300 + end)) for end in "ab"}
    assert len(tables) == len(columns) == 2
    assert {len(table) for table in tables} == {240}
    assert {len(column) for column in columns} == {250}


@pytest.mark.parametrize(
    ("path", "column"),
    [
        (("properties", "productId"), "properties_product_id"),
        (("context", "page", "url"), "context_page_url"),
        (("_metadata", "bundled"), "metadata_bundled"),
        (("day",), "_day"),
        (("hr",), "_hr"),
        (("_rescued",), "rescued"),
    ],
)
def test_column_of_a_path(path: tuple[str, ...], column: str) -> None:
    assert SEGMENT.column(path) == column
