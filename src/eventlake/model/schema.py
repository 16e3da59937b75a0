"""Table schemas as values: ordered columns, and the only ways they change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eventlake.model.types import ColumnType

# Where every value that does not fit its column is kept, as a JSON object: original path -> value
# as it came.
RESCUED = "_rescued"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and the original JSON paths whose values it holds."""

    name: str
    type: ColumnType
    paths: tuple[str, ...] = ()
    first_seen: str = ""  # ISO time of the sync that added it


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a table in catalog order. New columns go last; none is ever removed."""

    columns: tuple[Column, ...] = ()

    def types(self) -> dict[str, ColumnType]:
        """Column name to type, in order."""
        return {column.name: column.type for column in self.columns}

    def apply(self, change: SchemaChange) -> TableSchema:
        """The schema after `change`. Applying a change twice is the same as once."""
        known = {column.name: column for column in self.columns}
        merged = [
            Column(
                c.name,
                c.type,
                tuple(sorted({*c.paths, *change.paths.get(c.name, ())})),
                c.first_seen,
            )
            for c in self.columns
        ]
        return TableSchema((*merged, *(c for c in change.added if c.name not in known)))


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What a sync does to one table's schema.

    Columns added last, and paths newly seen behind known columns.
    """

    table: str
    added: tuple[Column, ...]
    paths: Mapping[str, tuple[str, ...]]
    is_new: bool


def column_json(column: Column) -> dict[str, object]:
    """The stored form of a column."""
    return {
        "name": column.name,
        "type": column.type.value,
        "paths": list(column.paths),
        "first_seen": column.first_seen,
    }


def column_from(stored: Mapping[str, object]) -> Column:
    """The column that `column_json` wrote."""
    paths = stored.get("paths")
    return Column(
        str(stored["name"]),
        ColumnType(stored["type"]),
        tuple(map(str, paths)) if isinstance(paths, Iterable) else (),
        str(stored.get("first_seen", "")),
    )
