"""Laws that hold for every stream: accounting, order, repetition, and the comparison itself."""

from datetime import datetime
from decimal import Decimal
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strategies import events as streams

from .casts import BIGINT, BOOLEAN, DECIMAL, STRING, TIMESTAMP
from .compare import differences, same_rescued, schema_differences
from .oracle import (
    RESCUED,
    Result,
    Row,
    State,
    ValueCounts,
    merged,
    rows_of,
    staged,
    sync,
    sync_all,
)

slow = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def assert_accounts(result: Result) -> None:
    events, values, rows = result.events, result.values, rows_of(result)
    assert events.read == events.rows + events.duplicates + events.rejected
    assert (events.rows, events.rejected) == (len(rows), len(result.rejects))
    assert values.read == values.typed + values.rounded + values.rescued
    assert values == sum(result.values_by_table.values(), ValueCounts())
    cells = sum(cell is not None for row in rows for name, cell in row.items() if name != RESCUED)
    kept = [row[RESCUED] for row in rows]
    rescued = sum(len(cell) for cell in kept if isinstance(cell, dict))
    assert cells == values.typed + values.rounded
    assert rescued == values.rounded + values.rescued


PYTHON_TYPES = {BIGINT: int, BOOLEAN: bool, DECIMAL: Decimal, STRING: str, TIMESTAMP: datetime}


@slow
@given(streams.split_streams())
def test_every_sync_accounts_for_every_event_and_value(syncs: list[list[bytes]]) -> None:
    results = sync_all(staged(blobs, sync_no=place) for place, blobs in enumerate(syncs))
    for result in results:
        assert_accounts(result)
        for table, partitions in result.tables.items():
            columns = result.schemas[table]
            for (day, hour), rows in partitions.items():
                for row in rows:
                    received = row["received_at"]
                    assert isinstance(received, datetime)
                    assert f"{received:%Y-%m-%d %H}" == f"{day} {hour}"
                    assert list(row) == [name for name, _ in columns]
                    for name, column_type in columns:
                        if name != RESCUED and row[name] is not None:
                            assert type(row[name]) is PYTHON_TYPES[column_type]
    every = [row["message_id"] for r in results for row in rows_of(r)]
    assert len(every) == len(set(every))


@slow
@given(streams.streams(contested=True))
def test_contested_streams_are_accounted_for_too(lines: list[bytes]) -> None:
    assert_accounts(sync(State(), staged([b"\n".join(lines)])))


@slow
@given(streams.placed_streams(), st.data())
def test_the_order_and_cut_of_a_stream_change_nothing(
    lines: list[bytes], data: st.DataObject
) -> None:
    one = sync(State(), staged([b"\n".join(lines)]))
    shuffled = data.draw(st.permutations(lines))
    other = sync(State(), staged(data.draw(streams.objects(shuffled))))
    assert not schema_differences(one.schemas, other.schemas)
    assert not differences(one.tables, other.tables)
    assert (one.events, one.values) == (other.events, other.values)
    assert one.values_by_table == other.values_by_table


@slow
@given(streams.streams())
def test_a_second_sync_of_the_same_objects_adds_nothing(lines: list[bytes]) -> None:
    objects = staged([b"\n".join(lines)])
    first, second = sync_all([objects, objects])
    assert not second.tables
    assert not second.new_columns
    assert second.state == first.state
    assert second.events.duplicates == first.events.rows + first.events.duplicates


@slow
@given(streams.split_streams())
def test_a_stored_column_never_moves_or_changes(syncs: list[list[bytes]]) -> None:
    results = sync_all(staged(blobs, sync_no=place) for place, blobs in enumerate(syncs))
    for before, after in pairwise(results):
        for table, columns in before.schemas.items():
            assert after.schemas[table][: len(columns)] == columns
    assert not differences(merged(results), merged(results))


def test_the_comparison_sees_every_kind_of_difference() -> None:
    place = ("2024-05-01", "10")
    row: Row = {"message_id": "m", "n": 1, RESCUED: {"p": "1.50"}}
    same = {"page": {place: [{"message_id": "m", "n": 1, RESCUED: '{"p":15e-1}'}]}}
    assert not differences({"page": {place: [row]}}, same)
    for changed in ({**row, "n": True}, {**row, "more": 1}, {**row, RESCUED: None}):
        assert differences({"page": {place: [row]}}, {"page": {place: [changed]}})
    assert differences({"page": {place: [row]}}, {})
    assert differences({}, same)
    assert differences({"page": {place: [row]}}, {"page": {place: [row, row]}})


def test_deep_values_can_be_compared() -> None:
    deep = "[" * 900 + "]" * 900
    assert same_rescued({"p": deep}, f'{{"p":{deep}}}')
