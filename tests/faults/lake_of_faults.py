"""The small lake that the fault tests work on: what is sent, and what must be in it in the end."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pyarrow.parquet as pq

from eventlake.report.rejects import stored_rejects
from eventlake.store import Store, keys, read
from lakes import NOW, LakeHere, lake_here

Cells = Counter[str]


def event(id_: int, name: str, hour: int, **properties: object) -> bytes:
    """A track event, its message id from its number."""
    return json.dumps(
        {
            "type": "track",
            "event": name,
            "messageId": f"m{id_:06}",
            "userId": f"u{id_ % 7}",
            "receivedAt": f"2024-05-01T{hour:02}:{id_ % 60:02}:00.000Z",
            "properties": {"number": id_, **properties},
        }
    ).encode()


def page(number: int, hour: int) -> bytes:
    """A page call."""
    return json.dumps(
        {
            "type": "page",
            "messageId": f"m{number:06}",
            "receivedAt": f"2024-05-01T{hour:02}:{number % 60:02}:00.000Z",
            "name": "Home",
        }
    ).encode()


# What each sync finds: tables new and known, duplicates within and across syncs, rejects, late
# hours, a new column, a value that does not fit.
SYNCS: tuple[dict[str, tuple[bytes, ...]], ...] = (
    {
        "a.ndjson": (
            *(event(n, f"Event {n % 2}", 10 + n % 2) for n in range(8)),
            event(1, "Event 1", 11),
            b"{broken",
        ),
        "b.ndjson": (*(page(n, 9) for n in range(100, 104)), event(2, "Event 0", 12), b"[1]", b""),
    },
    {
        "c.ndjson": (
            *(event(n, f"Event {n % 3}", 8 + n % 5, new="x") for n in range(200, 210)),
            event(3, "Event 1", 13),
            page(101, 14),
            b'{"type": "nothing"}',
        ),
        "d.ndjson": (
            *(event(n, "Event 0", 3, number="not a number") for n in range(300, 303)),
            page(400, 23),
        ),
    },
)


def send(lake: LakeHere, sync: int) -> None:
    """Stage what a sync is to find, with times that do not depend on when the test runs."""
    for place, (name, lines) in enumerate(SYNCS[sync].items()):
        lake.drop(name, b"\n".join(lines) + b"\n", NOW + timedelta(hours=sync, minutes=place))


def settle_down(lake: LakeHere, most: int = 6) -> list[dict[str, Any]]:
    """Sync until nothing is left."""
    summaries = []
    for _ in range(most):
        summaries.append(lake.sync())
        if summaries[-1]["run_id"] is None:
            return summaries
    raise AssertionError(f"still not done: {summaries[-1]}")


def row_text(table: str, row: dict[str, Any]) -> str:
    """A row as text that is the same for the same cells, whichever file it is in."""
    return table + json.dumps(
        {k: v for k, v in row.items() if v is not None}, sort_keys=True, default=str
    )


def committed(lake: LakeHere) -> Cells:
    """All rows of the files that the ledger knows."""
    return Counter(
        row_text(table, row)
        for table, groups in lake.tables().items()
        for rows in groups.values()
        for row in rows
    )


def listed(folder: Path) -> Cells:
    """All rows of the files that somebody who lists the lake finds."""
    found: Cells = Counter()
    for file in sorted((folder / "segment-data" / "data").rglob("*.parquet")):
        table = next(
            part.removeprefix("segment_type=")
            for part in file.parts
            if part.startswith("segment_type=")
        )
        found.update(row_text(table, row) for row in pq.ParquetFile(file).read().to_pylist())
    return found


def rejected(store: Store, source_id: str = "golden") -> Counter[tuple[str, int, str]]:
    """Every rejected line that is kept."""
    return Counter((r["object"], r["line"], r["reason"]) for r in stored_rejects(store, source_id))


def accounts(store: Store) -> Counter[str]:
    """The sum of all stored reports' events; each must balance."""
    total: Counter[str] = Counter()
    for meta in keys(store, "segment-data/reports"):
        source, *tables = map(orjson.loads, read(store, meta["path"]).splitlines())
        events = source["events"]
        assert events["read"] == sum(v for k, v in events.items() if k != "read"), events
        assert events["rows"] == sum(table.get("row_count", 0) for table in tables), (
            events,
            tables,
        )
        total.update(events)
    return total


def leftovers(folder: Path, source_id: str = "golden") -> list[str]:
    """Files of runs that are over."""
    runs = folder / "_eventlake" / source_id / "runs"
    return [str(path.relative_to(runs)) for path in runs.rglob("*") if path.is_file()]


class Expected:
    """What is in the lake after all syncs without any fault."""

    def __init__(self, folder: Path) -> None:
        lake = lake_here(folder)
        for sync in range(len(SYNCS)):
            send(lake, sync)
            settle_down(lake)
        self.rows = committed(lake)
        self.rejects = rejected(lake.lake.store)
        self.accounts = accounts(lake.lake.store)
        self.schemas = {table: dict(columns) for table, columns in lake.schemas().items()}
        assert listed(folder) == self.rows
        assert leftovers(folder) == []
        lines = sum(bool(line) for sync in SYNCS for those in sync.values() for line in those)
        assert self.accounts["read"] == lines

    def check(self, folder: Path, *, reports: bool = True) -> None:
        """That the lake in `folder` holds the same."""
        lake = lake_here(folder)
        state = lake.state
        assert committed(lake) == self.rows
        assert listed(folder) == self.rows
        assert rejected(lake.lake.store) == self.rejects
        assert {table: dict(columns) for table, columns in lake.schemas().items()} == self.schemas
        assert not state.unmoved
        assert not state.owed
        assert leftovers(folder) == []
        if reports:
            total = accounts(lake.lake.store)
            assert total == self.accounts, (total, self.accounts)


@contextmanager
def in_memory() -> Iterator[Path]:
    """A new folder, in memory where the system has a folder for that."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)
