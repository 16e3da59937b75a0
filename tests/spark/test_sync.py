"""The product on real servers: the same tables on a laptop, S3 and a cluster, in all readers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from services import ROOT, S3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MONDAY = "2024-05-06T10:{minute:02}:00.000Z"


def page(number: int, **more: object) -> dict[str, object]:
    return {
        "messageId": f"p{number}",
        "type": "page",
        "receivedAt": MONDAY.format(minute=number % 60),
        "context": {"ip": "10.0.0.1", "page": {"url": f"/p/{number}"}},
        "properties": {"price": number / 4, "title": "Größe"},
        **more,
    }


def order(number: int) -> dict[str, object]:
    return {
        "messageId": f"o{number}",
        "type": "track",
        "event": "Order Completed",
        "receivedAt": MONDAY.format(minute=number % 60).replace("T10", "T11"),
        "properties": {"total": f"{number}.50" if number % 7 else "n/a", "items": [{"sku": "a"}]},
    }


FIRST = [*map(page, range(200)), *map(order, range(100)), page(3)]
SECOND = [*(page(n, properties={"price": "dear", "new": True}) for n in range(300, 310)), order(1)]


def run(folder: Path, *args: str, env: Mapping[str, str] | None = None, code: int = 0) -> str:
    """The real command, in a folder; what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "eventlake", *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **(env or {})},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def make_lake(folder: Path, env: Mapping[str, str]) -> list[dict[str, Any]]:
    """Two syncs with a column that is new and a type that no longer fits; their summaries."""
    run(folder, "init", env=env)
    run(folder, "source", "add", "web", "--id", "s1", env=env)
    summaries = []
    for events in (FIRST, SECOND):
        lines = "".join(json.dumps(event) + "\n" for event in events)
        (folder / "events.ndjson").write_text(lines)
        run(folder, "send", "--source", "web", "events.ndjson", env=env)
        summaries.append(json.loads(run(folder, "sync", "--json", env=env)))
    assert run(folder, "sync", env=env) == "web: nothing new to sync\n"
    return summaries


def contents(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """All rows of all tables, as `query` gives them."""
    return {
        table: run(
            folder,
            "query",
            f"SELECT * FROM web.{table} ORDER BY message_id",
            "--format",
            "json",
            env=env,
        )
        for table in ("page", "order_completed")
    }


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("laptop")
    return folder, make_lake(folder, {})


def test_both_accounts_of_each_sync_balance(laptop: tuple[Path, list[dict[str, Any]]]) -> None:
    first, second = (summary for summary in laptop[1])
    assert first["events"] == {
        "read": 301,
        "rows": 300,
        "duplicates": 1,
        "rejected": 0,
        "suppressed": 0,
    }
    assert second["events"]["rows"] == 10
    assert second["events"]["duplicates"] == 1
    assert second["values"]["rescued"] == 10
    for summary in (first, second):
        values = summary["values"]
        assert values["read"] == values["typed"] + values["rounded"] + values["rescued"]


def test_every_reader_sees_the_same_rows(
    laptop: tuple[Path, list[dict[str, Any]]], spark: SparkSession
) -> None:
    folder = laptop[0]
    data = folder / "lake/segment-data/data/s1/segment_type=page"
    files = sorted(map(str, data.rglob("*.parquet")))
    wanted = [
        (row["message_id"], row["properties_price"], row.get("properties_new"))
        for row in map(json.loads, contents(folder, {})["page"].splitlines())
    ]
    wanted = [(m, None if p is None else float(p), n) for m, p, n in wanted]
    columns = ["message_id", "properties_price", "properties_new"]

    by_spark = spark.read.option("mergeSchema", "true").parquet(str(data)).select(*columns)
    by_duckdb = duckdb.sql(
        f"SELECT {', '.join(columns)} FROM read_parquet({files!r}, union_by_name=true)"
    )
    by_polars = pl.concat([pl.read_parquet(file) for file in files], how="diagonal")
    by_arrow = [row for file in files for row in pq.read_table(file).to_pylist()]

    def same(rows: list[tuple[Any, ...]]) -> bool:
        plain = [(m, None if p is None else float(p), n) for m, p, n in rows]
        return sorted(plain, key=str) == sorted(wanted, key=str)

    assert same([tuple(row) for row in by_spark.collect()])
    assert same(by_duckdb.fetchall())
    assert same(by_polars.select(columns).rows())
    assert same([tuple(row.get(c) for c in columns) for row in by_arrow])
    times = {f.name: str(f.type) for f in pq.read_schema(files[0]) if f.name.endswith("_at")}
    assert set(times.values()) == {"timestamp[us, tz=UTC]"}


def test_on_s3_the_lake_is_the_same(
    laptop: tuple[Path, list[dict[str, Any]]], versitygw: S3, tmp_path: Path
) -> None:
    env = {**versitygw.env, "EVENTLAKE_LAKE_URL": f"{versitygw.bucket()}/some/prefix"}
    summaries = make_lake(tmp_path, env)
    assert [s["events"] for s in summaries] == [s["events"] for s in laptop[1]]
    assert contents(tmp_path, env) == contents(laptop[0], {})
    assert "order_completed" in run(tmp_path, "tables", env=env)


def test_on_a_cluster_the_lake_is_the_same(
    laptop: tuple[Path, list[dict[str, Any]]], spark_cluster: str, tmp_path: Path
) -> None:
    env = {"EVENTLAKE_SPARK_MASTER": spark_cluster, "EVENTLAKE_LAKE_URL": f"{tmp_path}/lake"}
    summaries = make_lake(tmp_path, env)
    assert [s["values"] for s in summaries] == [s["values"] for s in laptop[1]]
    assert contents(tmp_path, env) == contents(laptop[0], {})


def test_a_changed_layout_is_refused_before_any_work(
    laptop: tuple[Path, list[dict[str, Any]]],
) -> None:
    folder = laptop[0]
    (folder / "more.ndjson").write_text(json.dumps(page(400)) + "\n")
    run(folder, "send", "--source", "web", "more.ndjson")
    summary = json.loads(
        run(folder, "sync", "--json", env={"EVENTLAKE_LAKE_LAYOUT": "day"}, code=1)
    )
    assert summary["status"] == "failed"
    assert summary["error_code"] == "LAYOUT_CHANGED"
