"""Input of people who mean harm, or know no better: no sync stalls or fails, no line is lost."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from eventlake.report.rejects import stored_rejects
from faults import json_cases
from faults.lake_of_faults import leftovers
from lakes import LakeHere, lake_here

GOOD = b'{"type":"track","event":"Good","messageId":"good-%d"}'
MB = 1 << 20


def assert_accounted(lake: LakeHere, summary: dict[str, Any], lines: int) -> None:
    """That the sync is finished and each of so many lines is in a table or rejected."""
    assert summary["status"] == "finished", summary
    assert summary["error"] is None
    events, values = summary["events"], summary["values"]
    assert events["read"] == lines, events
    assert events["read"] == sum(n for name, n in events.items() if name != "read"), events
    assert values["read"] == values["typed"] + values["rounded"] + values["rescued"], values
    assert events["rows"] == sum(table["row_count"] for table in summary["tables"])
    assert sum(summary["rejected_reasons"].values()) == events["rejected"]
    assert leftovers(Path(lake.lake.settings.lake.url)) == []


def rejects(lake: LakeHere) -> dict[int, str]:
    """Line number -> reason."""
    return {
        reject["line"]: reject["reason"]
        for reject in stored_rejects(lake.lake.store, lake.source.id)
    }


def ids(lake: LakeHere) -> set[str]:
    """All message ids in the tables."""
    return {row["message_id"] for table in lake.state.files for row in lake.rows(table)}


def synced(lake: LakeHere, lines: Iterable[bytes]) -> dict[str, Any]:
    """The summary of a sync of these lines."""
    lake.drop("lines.ndjson", b"\n".join(lines) + b"\n")
    return lake.sync()


@pytest.mark.parametrize("places", ["together", "alone", "after many good ones"])
def test_json_suite(places: str, tmp_path: Path) -> None:
    valid = {f"y_{n}": json_cases.event_with(f"y_{n}", v) for n, v in json_cases.VALID.items()}
    invalid = {f"n_{n}": json_cases.event_with(f"n_{n}", v) for n, v in json_cases.INVALID.items()}
    cases = {**valid, **invalid, **{f"n_line_{n}": v for n, v in json_cases.LINES.items()}}
    cases |= {f"y_event_{n}": v for n, v in json_cases.EVENTS.items()}
    assert len(cases) > 200
    lake = lake_here(tmp_path / "lake")
    if places == "alone":
        for number, (name, line) in enumerate(cases.items()):
            lake.drop(f"{number}.ndjson", line + b"\n")
            try:
                summary = lake.sync()
                assert_accounted(lake, summary, 1)
                assert summary["events"]["rows"] == name.startswith("y_"), summary["events"]
            except Exception as error:
                error.add_note(name)
                raise
        return
    good = 5000 if places == "after many good ones" else 0
    summary = synced(lake, [*(GOOD % n for n in range(good)), *cases.values()])
    assert_accounted(lake, summary, good + len(cases))
    refused = {good + n for n, name in enumerate(cases, 1) if name.startswith("n_")}
    assert set(rejects(lake)) == refused
    assert set(valid) <= ids(lake)
    assert summary["events"]["rows"] == good + len(cases) - len(refused)


def test_raw_lines_that_are_rejected_are_kept_as_they_came(tmp_path: Path) -> None:
    lake = lake_here(tmp_path / "lake")
    lines = list(json_cases.LINES.values())
    synced(lake, lines)
    kept = {reject["line"]: reject for reject in stored_rejects(lake.lake.store, lake.source.id)}
    for number, line in enumerate(lines, 1):
        payload = kept[number].get("payload")
        if payload is not None:
            assert payload.encode() == line
        else:
            assert base64.b64decode(kept[number]["payload_base64"]) == line


def test_values_of_duplicate_keys_and_odd_numbers(tmp_path: Path) -> None:
    lake = lake_here(tmp_path / "lake")
    names = [
        "object_duplicated_key",
        "object_key_case",
        "number_1e400",
        "number_10000_digits",
        "number_minus_zero",
    ]
    for name in names:
        lake.drop(name, json_cases.event_with(name, json_cases.VALID[name]) + b"\n")
    assert_accounted(lake, lake.sync(), len(names))
    rows = {row["message_id"]: row for row in lake.rows("case")}
    assert rows["object_duplicated_key"]["properties_v_a"] == "c"
    # a column of numbers that no type holds is text
    assert rows["number_10000_digits"]["properties_v"] == "7" * 10_000
    assert rows["number_1e400"]["properties_v"] == "1e400"
    row = rows["object_key_case"]
    assert (row["properties_v_key"], row["properties_v_k_ey"]) == (2, "four")
    assert json.loads(row["_rescued"]) == {"properties.v.Key": 1, "properties.v.KEY": 3}


def test_no_two_columns_or_tables_differ_by_case_only(tmp_path: Path) -> None:
    lake = lake_here(tmp_path / "lake")
    synced(lake, json_cases.EVENTS.values())
    synced_again = [json_cases.event_with(name, value) for name, value in json_cases.VALID.items()]
    lake.drop("more", b"\n".join(synced_again) + b"\n")
    lake.sync()
    for names in (
        [*lake.schemas()],
        *([name for name, _ in columns] for columns in lake.schemas().values()),
    ):
        assert len({name.lower() for name in names}) == len(names)
        assert all(0 < len(name) <= 250 for name in names)


def test_nothing_is_written_outside_its_folders(tmp_path: Path) -> None:
    lake = lake_here(tmp_path / "lake")
    synced(lake, json_cases.EVENTS.values())
    assert {path.name for path in tmp_path.iterdir()} == {"lake"}
    assert {path.name for path in (tmp_path / "lake").iterdir()} == {
        "_eventlake",
        "segment-data",
        "segment-stage",
    }
    tables = {
        path.name for path in (tmp_path / "lake" / "segment-data" / "data" / "golden").iterdir()
    }
    assert tables == {f"segment_type={table}" for table in lake.state.files}


MEASURE = """
import resource, sys, time, gzip, json
from pathlib import Path
from lakes import lake_here

def sync(lake):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    summary = lake.sync()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = time.monotonic() - began
    print(json.dumps({"mb": (after - before) >> 10, "s": seconds, "summary": summary}))

lake = lake_here(Path(sys.argv[1]), json.loads(sys.argv[3]))
stage = Path(sys.argv[1]) / "segment-stage" / "golden"
# a first sync, so that what is imported and allocated once is not counted
lake.drop("first", b'{"type":"page"}')
lake.sync()
with open(sys.argv[2], "rb") as source, open(stage / "hostile", "wb") as out:
    while block := source.read(1 << 20):
        out.write(block)
sync(lake)
"""


def measured(folder: Path, file: Path, **overrides: object) -> dict[str, Any]:
    """What a sync of a file costs in a process of its own: MB of growth, seconds; its summary."""
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(MEASURE),
            str(folder / "lake"),
            str(file),
            json.dumps(overrides),
        ],
        env={"PYTHONPATH": f"{tests}:{tests.parent / 'src'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["summary"]["status"] == "finished", found
    events = found["summary"]["events"]
    assert events["read"] == events["rows"] + events["duplicates"] + events["rejected"]
    return found


def filled(path: Path, pieces: Iterable[bytes]) -> Path:
    with path.open("wb") as out:
        for piece in pieces:
            out.write(piece)
    return path


def test_a_line_of_100_mb(tmp_path: Path) -> None:
    line = filled(
        tmp_path / "line",
        [GOOD % 1, b"\n", b'{"type":"page","x":"', *([b"x" * MB] * 100), b'"}\n', GOOD % 2, b"\n"],
    )
    found = measured(tmp_path, line)
    assert found["summary"]["rejected_reasons"] == {"too_large": 1}
    assert found["summary"]["events"]["rows"] == 2
    assert found["mb"] < 64, found["mb"]


@pytest.mark.parametrize("kind", ["one line", "blank lines", "nested gzip", "zst"])
def test_a_bomb(kind: str, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    if kind == "blank lines":
        with gzip.open(bomb, "wb", 6) as out:
            for _ in range(256):
                out.write(b"\n" * MB)
    elif kind == "zst":
        with bomb.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as writer:
            for _ in range(1024):
                writer.write(b"\0" * MB)
    else:
        with gzip.open(bomb, "wb", 1) as out:
            for _ in range(400):
                out.write(b"\0" * MB)
        if kind == "nested gzip":
            bomb.write_bytes(gzip.compress(bomb.read_bytes()))
    found = measured(tmp_path, bomb)
    events = found["summary"]["events"]
    assert events["rejected"] == (0 if kind == "blank lines" else events["read"])
    assert found["mb"] < 96, found["mb"]


def keys_line(most_bytes: int, most_keys: int) -> tuple[bytes, int]:
    """An event with as many keys as fit."""
    parts, size, count = [], 100, 0
    while count < most_keys and size < most_bytes - 20:
        parts.append(b'"k%d":%d' % (count, count % 10))
        size += len(parts[-1]) + 1
        count += 1
    return b'{"type":"track","event":"Keys","messageId":"keys","properties":{' + b",".join(
        parts
    ) + b"}}\n", count


def test_as_many_keys_as_fit_in_a_line(tmp_path: Path) -> None:
    line, count = keys_line(MB, 10**6)
    found = measured(tmp_path, filled(tmp_path / "file", [line, GOOD % 1, b"\n"]))
    summary = found["summary"]
    assert summary["events"]["rows"] == 2
    assert summary["values"]["rescued"] >= count - 5000
    keys = next(table for table in summary["tables"] if table["table_name"] == "keys")
    assert len(keys["refused_columns"]) >= count - 5000
    assert found["s"] < 60, found["s"]
    assert found["mb"] < 1200, found["mb"]


@pytest.mark.skipif(
    os.environ.get("EVENTLAKE_TORTURE") != "full", reason="takes a minute: `make torture`"
)
@pytest.mark.torture
def test_a_million_keys(tmp_path: Path) -> None:
    line, count = keys_line(1 << 30, 10**6)
    assert count == 10**6
    found = measured(tmp_path, filled(tmp_path / "file", [line]), **{"sync.max_event_kb": 102_400})
    assert found["summary"]["events"]["rows"] == 1
    values = found["summary"]["values"]
    assert values["read"] >= count
    assert values["read"] == values["typed"] + values["rescued"]
    assert found["mb"] < 4000, found["mb"]


def test_many_tables(tmp_path: Path) -> None:
    lake = lake_here(tmp_path / "lake")
    lines = [
        b'{"type":"track","event":"Event %d","messageId":"%d","properties":{"a":1}}' % (n, n)
        for n in range(2000)
    ]
    assert_accounted(lake, synced(lake, lines), 2000)
    assert len(lake.state.files) == 2000


def test_many_columns(tmp_path: Path) -> None:
    lake = lake_here(tmp_path / "lake")
    lines = [
        json.dumps(
            {
                "type": "track",
                "event": "Wide",
                "messageId": str(n),
                "properties": {f"c{n * 30 + i}": i for i in range(30)},
            }
        ).encode()
        for n in range(100)
    ]
    assert_accounted(lake, synced(lake, lines), 100)
    assert len(lake.schemas()["wide"]) > 3000
    assert sum(len(row) for row in lake.rows("wide")) == 100 * (30 + 5)


def test_guards(tmp_path: Path) -> None:
    """What there is no room for is kept elsewhere, counted and named."""
    lake = lake_here(
        tmp_path / "lake",
        {
            "sync.max_tables": 10,
            "sync.max_columns": 20,
            "sync.max_depth": 2,
            "sync.max_key_length": 10,
        },
    )
    lines = [
        json.dumps(
            {
                "type": "track",
                "event": f"Event {n % 15}",
                "messageId": str(n),
                "properties": {
                    **{f"p{i:02}": i for i in range(20)},
                    "deep": {"er": {"est": 1}},
                    "k" * 11: "long",
                },
            }
        ).encode()
        for n in range(60)
    ]
    summary = synced(lake, lines)
    assert_accounted(lake, summary, 60)
    tables = {table["table_name"]: table for table in summary["tables"]}
    assert len(lake.state.files) <= 10 + 1
    assert "other_events" in tables
    assert summary["refused_tables"] == sorted({f"event_{n}" for n in range(15)} - set(tables))
    assert summary["refused_tables"]
    assert sum(row_count for table in tables.values() if (row_count := table["row_count"])) == 60
    for name, table in tables.items():
        assert table["refused_columns"], name
        assert len(lake.schemas()[name]) <= 20
    for table in lake.state.files:
        for row in lake.rows(table):
            rescued = json.loads(row["_rescued"])
            assert len(rescued) + sum(name.startswith("properties_") for name in row) == 22
    # the next sync knows the same limits
    lake.drop(
        "again", b'{"type":"track","event":"Event 99","messageId":"x","properties":{"one_more":1}}'
    )
    again = lake.sync()
    assert_accounted(lake, again, 1)
    assert again["refused_tables"] == ["event_99"]


def test_a_file_of_anything(tmp_path: Path) -> None:
    """Objects that are no NDJSON at all, as anybody may drop them into staging."""
    parquet = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), parquet)
    packed = gzip.compress(b"\n".join(GOOD % n for n in range(2000)))
    objects = {
        "parquet": parquet.read_bytes(),
        "cut.gz": packed[: len(packed) // 2],
        "flipped.gz": packed[:200] + bytes([packed[200] ^ 255]) + packed[201:],
        "no-end.zst": zstandard.compress(b"\n".join(GOOD % n for n in range(3000, 4000)))[:-9],
        "empty.gz": gzip.compress(b""),
        "only-magic.gz": b"\x1f\x8b",
        "only-magic.zst": b"\x28\xb5\x2f\xfd",
        "zeros": bytes(100_000),
        "array.json": json.dumps([json.loads(GOOD % n) for n in range(3)]).encode(),
        "pretty.json": json.dumps(json.loads(GOOD % 77), indent=1).encode(),
        "name with spaces, 'quotes' & emoji \U0001f600.ndjson": GOOD % 5000,
        "deep/er/folder/x.ndjson": GOOD % 5001,
    }
    lake = lake_here(tmp_path / "lake")
    for name, data in objects.items():
        lake.drop(name, data)
    began = time.monotonic()
    summary = lake.sync()
    assert summary["status"] == "finished", summary
    events = summary["events"]
    assert events["read"] == events["rows"] + events["duplicates"] + events["rejected"]
    assert {"good-5000", "good-5001", "good-0"} <= ids(lake)
    damaged = {
        r["object"].rpartition("/")[2]
        for r in stored_rejects(lake.lake.store, "golden")
        if r["reason"] == "damaged"
    }
    assert {"cut.gz", "flipped.gz", "no-end.zst"} <= damaged
    assert time.monotonic() - began < 20
    assert lake.sync()["run_id"] is None


def test_ids_used_as_keys_stay_within_memory(tmp_path: Path) -> None:
    """A column per event is a common bug of customers; together they would be rows x rows cells."""
    file = tmp_path / "ids"
    with file.open("w") as out:
        for number in range(6_000):
            keys = ",".join(f'"k{number * 5 + place}":1' for place in range(5))
            line = f'{{"type":"track","event":"K","messageId":"{number}","properties":{{{keys}}}}}'
            out.write(line + "\n")
    found = measured(tmp_path, file)
    assert found["summary"]["events"]["rows"] == 6_000
    assert found["summary"]["values"]["rescued"] > 20_000
    assert found["mb"] < 1_200, found["mb"]
