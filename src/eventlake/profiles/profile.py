"""What a profile is.

The names of tables and columns, the types that are fixed, and where a table's files live.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from eventlake.model.names import COLUMN_LIMIT, TABLE_LIMIT, Path, fitted, named, path_text
from eventlake.model.types import ColumnType


@dataclass(frozen=True)
class Kind:
    """The type of a call, and for track calls the name of the event."""

    type: str
    event: str = ""


@dataclass(frozen=True)
class Profile:
    """One way of turning events into tables. Hashable, so that names can be cached per profile."""

    name: str
    # call type -> table; a track call's table is named after its event
    tables: tuple[tuple[str, str], ...]
    # where events go when the source has reached its limit of tables
    overflow_table: str
    # columns whose type the profile fixes, in the order in which they open a table
    leading: tuple[tuple[str, ColumnType], ...]
    # columns every table has from its first row on
    always: tuple[str, ...]
    # names that a column may not have
    reserved_columns: frozenset[str]
    # the folder of a table below the lake; {source} and {table} are filled in
    table_path: str
    track_prefix: str = ""
    fixed_types: dict[str, ColumnType] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed_types", dict(self.leading))

    def table(self, kind: Kind) -> str:
        """The table of a kind of event. Kinds whose names come out equal share one."""
        if kind.type != "track":
            return dict(self.tables)[kind.type]
        return _track_table(self, kind.event)

    def column(self, path: Path) -> str:
        """The column of a JSON path. Paths whose names come out equal share one."""
        return _column(self, path)

    def location(self, source_id: str, table: str) -> str:
        """The folder of a table's partitions, relative to the lake."""
        return self.table_path.format(source=source_id, table=table)


@lru_cache(maxsize=200_000)
def _track_table(profile: Profile, event: str) -> str:
    name = fitted(profile.track_prefix + named(event), event, TABLE_LIMIT)
    fixed = {*dict(profile.tables).values(), profile.overflow_table}
    return f"_{name}" if name in fixed else name


@lru_cache(maxsize=500_000)
def _column(profile: Profile, path: Path) -> str:
    name = fitted("_".join(map(named, path)), path_text(path), COLUMN_LIMIT)
    return f"_{name}" if name in profile.reserved_columns else name
