"""What a lake holds, told from the ledger: tables, sizes, columns. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eventlake.ledger.state import State
from eventlake.model.layout import PartitionLayout
from eventlake.model.schema import RESCUED


def table_rows(source: str, database: str, state: State) -> Iterator[dict[str, Any]]:
    """One line per table: rows, columns, bytes, days covered, last sync."""
    for table, schema in sorted(state.schemas.items()):
        files = state.files.get(table, ())
        days = sorted({PartitionLayout.DAY.values(file.hour)["day"] for file in files})
        yield {
            "source": source,
            "database": database,
            "table": table,
            "rows": sum(file.rows for file in files),
            "columns": len(schema.columns),
            "files": len(files),
            "bytes": sum(file.size for file in files),
            "first_day": days[0] if days else None,
            "last_day": days[-1] if days else None,
            "days": len(days),
            "last_sync": state.last_sync.get(table),
        }


def column_rows(state: State, table: str) -> Iterator[dict[str, Any]]:
    """One line per column.

    Type, the original paths behind it, when it was first seen, values rescued so far.
    """
    rescued = state.rescued.get(table, {})
    names = [column.name for column in state.schemas[table].columns]
    for column in state.schemas[table].columns:
        yield {
            "column": column.name,
            "type": column.type.value,
            "paths": list(column.paths),
            "first_seen": column.first_seen,
            "rescued": 0 if column.name == RESCUED else rescued.get(column.name, 0),
        }
    for name, values in sorted(rescued.items()):
        if name not in names:
            yield {"column": name, "type": None, "paths": [], "first_seen": None, "rescued": values}
