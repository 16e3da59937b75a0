"""What a catalog must do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eventlake.model.schema import SchemaChange, TableSchema


class Catalog(Protocol):
    """A place where tables are registered.

    Every method can be repeated: what is there already is success.

    All raise SetupError when someone must act (permissions, a missing database) and
    TransientError when later may do.
    """

    def load(self, database: str, table: str) -> TableSchema | None:
        """The table as the catalog has it, a user's edits included; None where there is none."""
        ...

    def create(self, database: str, table: str, schema: TableSchema, location: str) -> None:
        """Register a table."""
        ...

    def apply(self, database: str, change: SchemaChange) -> None:
        """Append new columns to a table, after all that it has."""
        ...

    def add_partitions(self, database: str, table: str, partitions: Sequence[str]) -> None:
        """Make partitions (folders below the table's location) known."""
        ...
