"""Lakes for tests: the product's own steps on a local folder, tasks run here, not on Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq

from eventlake.errors import Error
from eventlake.ledger.state import State
from eventlake.settings import load
from eventlake.stage import sources
from eventlake.stage.sources import Source
from eventlake.store import Address, Store, open_store, read
from eventlake.sync.run import Progress
from eventlake.sync.source import Lake, open_lake, state_of, sync_source

T = TypeVar("T")
R = TypeVar("R")
NOW = datetime(2024, 5, 1, 14, 0, tzinfo=UTC)


@dataclass
class Here:
    """A `Job` that runs its tasks one after the other in this process."""

    store: Store

    def begin(self) -> None:
        """Nothing to start."""

    def each(self, work: Callable[[Store, T], R], tasks: Sequence[T]) -> list[R]:
        """Every task, in order."""
        return [work(self.store, task) for task in tasks]


@dataclass
class LakeHere:
    """A lake with one source and a clock that moves a minute at every look."""

    lake: Lake
    source: Source
    cores: int = 2
    at: datetime = NOW
    summaries: list[dict[str, Any]] = field(default_factory=list)

    def clock(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at

    def drop(self, name: str, data: bytes, staged_at: datetime | None = None) -> str:
        """Put an object into staging, as anybody's tool may."""
        key = f"segment-stage/{self.source.id}/{name}"
        self.lake.store.put(key, data)
        if staged_at is not None:
            path = Path(self.lake.settings.lake.url.removeprefix("file:").replace("//", "/")) / key
            os.utime(path, (staged_at.timestamp(), staged_at.timestamp()))
        return key

    def sync(self, job: Here | None = None) -> dict[str, Any]:
        """One sync; its summary."""
        job = job or Here(self.lake.store)
        summary = sync_source(self.lake, self.source, job, self.cores, self.clock, Progress())
        self.summaries.append(summary)
        return summary

    @property
    def state(self) -> State:
        """What is committed."""
        return state_of(self.lake, self.source)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table, null cells left out."""
        return [
            {name: cell for name, cell in row.items() if cell is not None}
            for group in self.tables().get(table, {}).values()
            for row in group
        ]

    def tables(self) -> dict[str, dict[tuple[str, str], list[dict[str, Any]]]]:
        """Every table's rows by (day, hour), as pyarrow reads the committed files."""
        found: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = {}
        for table, files in self.state.files.items():
            names = [column.name for column in self.state.schemas[table].columns]
            for file in files:
                values = self.lake.layout.values(file.hour)
                group = found.setdefault(table, {}).setdefault(
                    (values["day"], values.get("hr", "")), []
                )
                stored = pq.read_table(_reader(read(self.lake.store, file.key)))
                group += [dict.fromkeys(names) | row for row in stored.to_pylist()]
        return found

    def schemas(self) -> dict[str, list[tuple[str, str]]]:
        """Every table's columns and types, in order."""
        return {
            table: [(column.name, column.type.value) for column in schema.columns]
            for table, schema in self.state.schemas.items()
        }


def _reader(data: bytes) -> Any:
    import pyarrow as pa

    return pa.BufferReader(data)


def lake_here(
    folder: Path,
    overrides: Mapping[str, object] | None = None,
    wrap: Callable[[Store], Store] | None = None,
    source_id: str = "golden",
) -> LakeHere:
    """A lake in a folder, with a source `web`."""
    settings = load(None, {}, {"lake.url": str(folder), **(overrides or {})})
    address = Address(settings.lake.url)
    store = open_store(address)
    if wrap:
        store = wrap(store)
    try:
        source = sources.find(store, "web")
    except Error:
        source, _ = sources.add(store, "web", NOW, source_id=source_id)
    return LakeHere(open_lake(settings, address, store), source)
