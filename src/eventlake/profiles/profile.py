"""What a profile is.

The names of tables and columns, the types that are fixed, and where a table's files live.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from eventlake.model.names import COLUMN_LIMIT, TABLE_LIMIT, Path, fitted, named, path_text
from eventlake.model.types import ColumnType

_MOST_NAMES = 200_000
K = TypeVar("K")


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

    _columns: dict[Path, str] = field(init=False, repr=False, compare=False, hash=False)
    _tables: dict[str, str] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed_types", dict(self.leading))
        # asked for each column of each packet, so these are plain dicts: to hash the profile costs
        # more than to make the name
        object.__setattr__(self, "_columns", {})
        object.__setattr__(self, "_tables", {})

    def table(self, kind: Kind) -> str:
        """The table of a kind of event. Kinds whose names come out equal share one."""
        if kind.type != "track":
            return dict(self.tables)[kind.type]
        table = self._tables.get(kind.event)
        if table is None:
            table = _remember(self._tables, kind.event, _track_table(self, kind.event))
        return table

    def column(self, path: Path) -> str:
        """The column of a JSON path. Paths whose names come out equal share one."""
        column = self._columns.get(path)
        if column is None:
            column = _remember(self._columns, path, _column(self, path))
        return column

    def location(self, source_id: str, table: str) -> str:
        """The folder of a table's partitions, relative to the lake."""
        return self.table_path.format(source=source_id, table=table)


def _remember(names: dict[K, str], key: K, name: str) -> str:
    """Keep a name that was made. Ids used as names must not fill the memory."""
    if len(names) > _MOST_NAMES:
        names.clear()
    names[key] = name
    return name


def _track_table(profile: Profile, event: str) -> str:
    name = fitted(profile.track_prefix + named(event), event, TABLE_LIMIT)
    fixed = {*dict(profile.tables).values(), profile.overflow_table}
    return f"_{name}" if name in fixed else name


def _column(profile: Profile, path: Path) -> str:
    name = fitted("_".join(map(named, path)), path_text(path), COLUMN_LIMIT)
    return f"_{name}" if name in profile.reserved_columns else name
