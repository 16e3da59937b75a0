"""The catalog that needs no server: one JSON object per version of a table, in the lake itself.

Versions are created, never changed, so that two writers cannot undo each other and stores
without conditional updates will do. Partitions need no registration: readers find them by their
folders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from eventlake.model.schema import SchemaChange, TableSchema, column_from, column_json
from eventlake.store import Store, create, guarded, read

VERSION = 1


@dataclass(frozen=True, slots=True)
class BuiltinCatalog:
    """Implements `Catalog` below `_eventlake/catalog/`."""

    store: Store

    def load(self, database: str, table: str) -> TableSchema | None:
        """The newest version of the table."""
        found = self._newest(database, table)
        return found[1] if found else None

    def create(self, database: str, table: str, schema: TableSchema, location: str) -> None:
        """Write version 1, unless the table exists."""
        create(self.store, _key(database, table, 1), _table_bytes(schema, location))

    def apply(self, database: str, change: SchemaChange) -> None:
        """Write the next version with the columns that are not there yet."""
        while True:
            found = self._newest(database, change.table)
            if found is None:
                return
            number, schema, location = found
            changed = schema.apply(change)
            if changed == schema:
                return
            if create(
                self.store,
                _key(database, change.table, number + 1),
                _table_bytes(changed, location),
            ):
                return

    def add_partitions(self, database: str, table: str, partitions: Sequence[str]) -> None:
        """Nothing to do: see above."""

    def _newest(self, database: str, table: str) -> tuple[int, TableSchema, str] | None:
        prefix = f"_eventlake/catalog/{database}/{table}/"
        with guarded("list", prefix):
            keys = sorted(meta["path"] for page in self.store.list(prefix) for meta in page)
        if not keys:
            return None
        stored = orjson.loads(read(self.store, keys[-1]))
        schema = TableSchema(tuple(column_from(column) for column in stored["columns"]))
        return int(keys[-1].rpartition("/")[2].partition(".")[0]), schema, stored["location"]


def _key(database: str, table: str, number: int) -> str:
    return f"_eventlake/catalog/{database}/{table}/{number:08}.json"


def _table_bytes(schema: TableSchema, location: str) -> bytes:
    columns = [column_json(column) for column in schema.columns]
    return orjson.dumps(
        {"version": VERSION, "location": location, "columns": columns}, option=orjson.OPT_INDENT_2
    )
