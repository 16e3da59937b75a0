"""The stored reports as a table, and as values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import orjson

from eventlake.store import Store, keys, read

FOLDER = "segment-data/reports"


def stored_reports(
    store: Store, source_id: str | None = None, last: int | None = None
) -> list[list[dict[str, Any]]]:
    """The lines of the newest reports, oldest first."""
    found = sorted(
        (
            meta["path"]
            for meta in keys(store, FOLDER)
            if meta["path"].endswith("/report.json")
            and (source_id is None or f"/source={source_id}/" in meta["path"])
        ),
        key=lambda key: key.rpartition("run_id=")[2],
    )
    if last is not None:
        found = found[-last:] if last else []
    with ThreadPoolExecutor(8) as pool:
        return [
            [orjson.loads(line) for line in data.splitlines()]
            for data in pool.map(lambda key: read(store, key), found)
        ]


def reports_table(store: Store) -> Any:
    """`__segment_datalake.sync_reports`.

    Every line of every report, with Segment's columns in Segment's order.
    """
    import pyarrow as pa

    text, whole = pa.string(), pa.int64()
    columns = {
        **dict.fromkeys(("type", "workspace_id", "run_id"), text),
        **dict.fromkeys(("start_time", "finish_time"), pa.timestamp("us")),
        "duration_mins": whole,
        **dict.fromkeys(("status", "error", "error_code", "table_name", "database"), text),
        "partitions": pa.list_(pa.map_(text, text)),
        "new_columns": pa.list_(pa.struct([("name", text), ("type", text)])),
        "row_count": whole,
        "is_new": pa.bool_(),
        "replay": pa.bool_(),
        **dict.fromkeys(("replay_from", "replay_to"), pa.timestamp("us")),
        **dict.fromkeys(("emr_cluster_id", "s3_bucket", "source_id", "day"), text),
    }
    rows = [
        {name: _cell(line.get(name), kind) for name, kind in columns.items()}
        for lines in stored_reports(store)
        for line in lines
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(columns.items())))


def _cell(value: Any, kind: Any) -> Any:
    import pyarrow as pa

    if isinstance(value, str) and pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value)
    if value is not None and pa.types.is_list(kind) and pa.types.is_map(kind.value_type):
        return [list(each.items()) for each in value]
    return value
