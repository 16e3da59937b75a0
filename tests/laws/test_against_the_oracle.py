"""Every table, row and cell equals what an independent oracle computes."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakes import LakeHere, lake_here
from oracle import golden
from oracle.compare import differences, schema_differences
from oracle.events import Settings, Staged
from oracle.oracle import Result, merged, sync_all
from strategies import events as streams

few = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def product(folder: Path, syncs: list[list[Staged]], chosen: Settings) -> LakeHere:
    """What the product makes of the objects of each sync."""
    lake = lake_here(
        folder,
        {
            "lake.track_prefix": chosen.track_prefix,
            "sync.max_depth": chosen.max_depth,
            "sync.max_columns": chosen.max_columns,
            "sync.max_tables": chosen.max_tables,
            "sync.max_event_kb": chosen.max_event_bytes // 1024,
        },
    )
    for objects in syncs:
        for staged in objects:
            lake.drop(staged.key.rpartition("/")[2], staged.data, staged.staged_at)
        lake.sync()
    return lake


def assert_same(lake: LakeHere, results: list[Result]) -> None:
    """Tables, rows, cells, schemas and counts of all syncs."""
    assert len(lake.summaries) == len(results)
    assert differences(merged(results), lake.tables()) == []
    assert schema_differences(results[-1].schemas if results else {}, lake.schemas()) == []
    for summary, result in zip(lake.summaries, results, strict=True):
        assert summary["status"] == "finished", summary
        events, values = result.events, result.values
        assert summary["events"] == {
            "read": events.read,
            "rows": events.rows,
            "duplicates": events.duplicates,
            "rejected": events.rejected,
            "suppressed": 0,
        }
        assert summary["values"] == {
            "read": values.read,
            "typed": values.typed,
            "rounded": values.rounded,
            "rescued": values.rescued,
        }


@pytest.mark.parametrize("name", golden.names())
def test_golden_case(name: str, tmp_path: Path) -> None:
    case = golden.load(name)
    lake = product(tmp_path / "lake", case.syncs, case.settings)
    assert_same(lake, sync_all(case.syncs, case.settings))


def placed(syncs: list[list[bytes]]) -> list[list[Staged]]:
    """Objects of several syncs with names and times as staging gives them."""
    return [
        [
            Staged(
                f"segment-stage/golden/{number}-{place}",
                golden.FIRST_STAGED_AT + timedelta(hours=2 * number),
                data,
            )
            for place, data in enumerate(blobs)
        ]
        for number, blobs in enumerate(syncs)
    ]


@few
@given(streams.split_streams())
def test_any_stream_in_any_split(syncs: list[list[bytes]]) -> None:
    objects = placed(syncs)
    with tempfile.TemporaryDirectory() as folder:
        lake = product(Path(folder) / "lake", objects, Settings())
        results = sync_all([[each for each in sync if each.data] for sync in objects])
        kept = [pair for pair in zip(lake.summaries, results, strict=True) if pair[0]["run_id"]]
        lake.summaries = [summary for summary, _ in kept]
        assert_same(lake, [result for _, result in kept])


@few
@given(streams.placed_streams(), st.randoms(use_true_random=False))
def test_shuffled_and_split_anew_the_tables_are_the_same(
    lines: list[bytes], random: object
) -> None:
    shuffled = list(lines)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    half = len(lines) // 2
    one = [[b"\n".join(lines)]]
    other = [[b"\n".join(shuffled[:half]), b"\n".join(shuffled[half:])]]
    with tempfile.TemporaryDirectory() as folder:
        first = product(Path(folder) / "a", placed(one), Settings())
        second = product(Path(folder) / "b", placed(other), Settings())
        assert first.schemas() == second.schemas()
        assert differences(first.tables(), second.tables()) == []
