"""The sync report, in Segment's shape.

One `source` object and one `event` object per table, one per line.

The summary (`sync --json`) is the other form of the same facts. Does not decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from eventlake.store import Store, guarded

Report = Mapping[str, Any]


def report_key(source_id: str, run_id: str, day: str) -> str:
    """Where the report of a run is stored; `day` is that of the sync."""
    return f"segment-data/reports/day={day}/source={source_id}/run_id={run_id}/report.json"


def segment_lines(summary: Report, database: str, bucket: str) -> list[dict[str, Any]]:
    """The stored report out of a summary. Keys without a value are left out."""
    started, finished = summary["started_at"], summary["finished_at"]
    minutes = int((_time(finished) - _time(started)).total_seconds() // 60)
    shared = {
        "workspace_id": "",
        "run_id": summary["run_id"],
        "start_time": _text(started),
        "finish_time": _text(finished),
        "duration_mins": minutes,
        "replay": False,
        "s3_bucket": bucket,
        "source_id": summary["source_id"],
        "day": started[:10],
    }
    # Segment knows finished and failed; a partly failed run says so in its tables
    status = "failed" if summary["status"] == "failed" else "finished"
    source = {
        "type": "source",
        **shared,
        "status": status,
        "error": summary["error"],
        "error_code": summary["error_code"],
        "table_name": "",
        "database": database,
        "row_count": summary["events"]["rows"] if status == "finished" else None,
        # beyond Segment's columns: the accounts that each sync must balance
        "events": summary["events"],
        "values": summary["values"],
        "phases": summary["phases"],
    }
    tables = [
        {
            "type": "event",
            **shared,
            "status": "failed" if table["error"] else "finished",
            "error": table["error"],
            "error_code": table["error_code"],
            "table_name": table["table_name"],
            "database": database,
            "partitions": table["partitions"],
            "new_columns": table["new_columns"],
            "row_count": table["row_count"],
            "is_new": table["is_new"],
            "values": table["values"],
        }
        for table in summary["tables"]
    ]
    return [
        {key: value for key, value in line.items() if value not in (None, [])}
        for line in (source, *tables)
    ]


def write_report(store: Store, summary: Report, database: str, bucket: str) -> None:
    """Store the report of a run. Repeatable."""
    lines = segment_lines(summary, database, bucket)
    key = report_key(summary["source_id"], summary["run_id"], summary["started_at"][:10])
    with guarded("write", key):
        store.put(key, b"".join(orjson.dumps(line) + b"\n" for line in lines))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _text(text: str) -> str:
    return _time(text).strftime("%Y-%m-%d %H:%M:%S.%f")
