"""One rule of the design a test: what the oracle makes of lines, events and schemas."""

from datetime import UTC, datetime
from hashlib import blake2b

import pytest

from .casts import BIGINT, STRING, TIMESTAMP
from .events import Reject, Settings, Staged
from .oracle import RESCUED, Columns, EventCounts, Result, Row, State, ValueCounts, rows_of, sync

AT = datetime(2024, 5, 1, 12, tzinfo=UTC)
TAIL = ',"messageId":"m1","receivedAt":"2024-05-01T10:00:00Z"}'


def synced(*lines: str | bytes, state: State | None = None, **guards: int | str) -> Result:
    encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
    objects = [Staged("k", AT, b"\n".join(encoded))]
    return sync(state or State(), objects, Settings(**guards))  # type: ignore[arg-type]  # builder


def page(members: str) -> str:
    return '{"type":"page",' + members + TAIL


def only(result: Result) -> Row:
    (row,) = rows_of(result)
    return row


# Lines


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        *((line, "not_object") for line in (b"[1]", b"5", b'"x"', b"null")),
        *((line, "not_json") for line in (b"nope", b"{", b'{"a":NaN}', b'{"a":-Infinity}')),
        *((line, "not_utf8") for line in (b"\xff{}", b'{"s":"\xed\xa0\x80"}')),
        *((line, "unknown_type") for line in (b"{}", b'{"type":"order"}', b'{"type":5}')),
        *((b'{"type":"track","event":%s}' % e, "missing_event") for e in (b'" "', b"5", b"{}")),
        (b'{"type":"track"}', "missing_event"),
        (b'{"type":"page","d":' + b"[" * 1200 + b"]" * 1200 + b"}", "too_deep"),
        (b'{"type":"page","s":"' + b"x" * 2000 + b'"}', "too_large"),
    ],
)
def test_a_line_that_is_no_event_is_refused_with_the_reason(line: bytes, reason: str) -> None:
    result = synced(b"", line, max_event_bytes=1500 if reason == "too_large" else 2**20)
    assert result.rejects == [Reject(reason, "k", 2)]
    assert result.events == EventCounts(read=1, rejected=1)
    assert not result.schemas


def test_a_nested_value_below_the_limit_is_kept_whole() -> None:
    deep = "[" * 850 + "1.50" + "]" * 850
    row = only(synced(page(f'"d":{deep}')))
    assert row["d"] == deep.replace("1.50", "1.5")


def test_a_byte_order_mark_and_blank_lines_are_no_lines() -> None:
    result = synced(b"\xef\xbb\xbf" + page('"n":1').encode(), b"", b" \t\r", b"")
    assert result.events == EventCounts(read=1, rows=1)


def test_the_last_of_equal_keys_wins() -> None:
    assert only(synced(page('"n":1,"n":"2"')))["n"] == "2"


# Events


def test_an_object_beyond_the_depth_guard_is_rescued_whole() -> None:
    row = only(synced(page('"a":{"b":{"c":1}},"x":{"y":2}'), max_depth=1))
    assert row["x_y"] == 2
    assert row[RESCUED] == {"a.b": '{"c":1}'}


def test_of_rivals_for_a_column_the_one_spelled_like_it_wins() -> None:
    row = only(synced(page('"p":{"productId":1,"product_id":2,"ProductID":3}')))
    assert row["p_product_id"] == 2
    assert row[RESCUED] == {"p.ProductID": "3", "p.productId": "1"}


def test_of_rivals_not_spelled_like_the_column_the_first_wins() -> None:
    row = only(synced(page('"a":{"b.c":"x"},"a.b":{"c":2}')))
    assert row["a_b_c"] == "x"
    assert row[RESCUED] == {r"a\.b.c": "2"}


def test_a_rival_does_not_decide_the_type() -> None:
    result = synced(page('"p":{"productId":"x","product_id":2}'))
    assert dict(result.schemas["page"])["p_product_id"] == BIGINT


def test_a_column_named_like_a_partition_gets_an_underscore() -> None:
    row = only(synced(page('"day":1,"hr":2,"properties":{"day":3}')))
    assert (row["_day"], row["_hr"], row["properties_day"]) == (1, 2, 3)


@pytest.mark.parametrize(
    ("original", "sent", "received", "expected"),
    [
        tuple(f"2015-12-12T19:11:01.{ms}Z" for ms in ("152", "169", "266", "249")),
        *(
            tuple(f"2022-07-24T{clock}Z" for clock in case)
            for case in (
                ("15:53:44.725", "15:54:14.659", "15:54:14.904", "15:53:44.970"),
                ("01:41:04.535", "01:41:04.554", "01:41:06.240", "01:41:06.221"),
            )
        ),
        ("2022-07-24T01:00:00Z", None, "2022-07-24T02:00:00Z", "2022-07-24T01:00:00Z"),
        (None, "2022-07-24T01:00:00Z", "2022-07-24T02:00:00Z", "2022-07-24T02:00:00Z"),
        tuple(f"{day}T00:00:00Z" for day in ("0001-01-01", "9999-01-01", *["2022-07-24"] * 2)),
    ],
)
def test_a_missing_timestamp_is_corrected_for_skew(
    original: str | None, sent: str | None, received: str, expected: str
) -> None:
    times = [("originalTimestamp", original), ("sentAt", sent), ("receivedAt", received)]
    members = ",".join(f'"{key}":"{value}"' for key, value in times if value)
    row = only(synced('{"type":"page",' + members + "}"))
    assert row["timestamp"] == datetime.fromisoformat(expected)


def test_a_missing_id_and_received_time_are_filled() -> None:
    row = only(synced(b"", b'{"type":"page"}'))
    assert row["message_id"] == "el-" + blake2b(b"k\x002", digest_size=16).hexdigest()
    assert row["received_at"] == row["timestamp"] == AT
    assert row[RESCUED] is None


def test_an_unusable_id_or_received_time_is_filled_and_rescued() -> None:
    result = synced('{"type":"page","messageId":true,"receivedAt":"noon","timestamp":"late"}')
    row = only(result)
    assert str(row["message_id"]).startswith("el-")
    assert (row["received_at"], row["timestamp"]) == (AT, None)
    assert row[RESCUED] == {"messageId": "true", "receivedAt": '"noon"', "timestamp": '"late"'}
    assert result.values == ValueCounts(read=6, typed=3, rescued=3)


def test_a_number_is_an_id_by_its_text() -> None:
    result = synced('{"type":"page","messageId":12}', '{"type":"group","messageId":"12"}')
    assert result.events == EventCounts(read=2, rows=1, duplicates=1)


def test_of_doubles_the_first_received_stays_over_all_tables() -> None:
    late = '{"type":"page","messageId":"m","receivedAt":"2024-05-01T10:00:00.000002Z"}'
    early = '{"type":"group","messageId":"m","receivedAt":"2024-05-01T10:00:00.000001Z"}'
    result = synced(late, early)
    assert set(result.tables) == {"group"}
    assert set(result.schemas) == {"group"}
    assert not synced(early, state=result.state).tables


# Schemas


def test_columns_come_in_order_and_new_ones_last() -> None:
    first = synced(page('"userId":"u","b":1,"a":1,"Day":1'))
    assert [name for name, _ in first.schemas["page"]] == (
        ["message_id", "type", "user_id", "received_at", "timestamp", "_day", "a", "b", RESCUED]
    )
    second = synced('{"type":"page","sentAt":"2024-05-01","aa":1}', state=first.state)
    assert second.new_columns == {"page": [("aa", BIGINT), ("sent_at", TIMESTAMP)]}
    assert second.schemas["page"] == first.schemas["page"] + second.new_columns["page"]


def test_a_stored_type_stays_and_misfits_are_rescued() -> None:
    stored: dict[str, Columns] = {"page": [("n", BIGINT), (RESCUED, STRING)]}
    result = synced(page('"n":"x"'), state=State(stored))
    assert only(result)["n"] is None
    assert only(result)[RESCUED] == {"n": '"x"'}


def test_columns_beyond_the_guard_are_rescued() -> None:
    row = only(synced(page('"b":1,"a":2'), max_columns=5))
    assert row["a"] == 2
    assert row[RESCUED] == {"b": "1"}


def test_tables_beyond_the_guard_share_one() -> None:
    lines = [f'{{"type":"track","event":"{event}"}}' for event in ("b", "a", "c")]
    result = synced(*lines, '{"type":"page"}', max_tables=2)
    assert set(result.schemas) == {"page", "a", "other_events"}
    assert {row["event"] for row in result.tables["other_events"][("2024-05-01", "12")]} == {
        "b",
        "c",
    }
