"""Settle: which tables and columns the events of a sync go to.

Observed kinds and stored schemas in, schema changes out.

Pure, and the same for any order of events, files and tasks: it only looks at what was observed
altogether.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eventlake.model.names import path_keys
from eventlake.model.schema import RESCUED, Column, SchemaChange, TableSchema
from eventlake.model.types import ColumnType, Observed, narrowest
from eventlake.profiles.profile import Kind, Profile
from eventlake.sync.columns import CODES
from eventlake.sync.packets import Packet


@dataclass(frozen=True, slots=True)
class Limits:
    """The guards on what a source may create."""

    max_tables: int
    max_columns: int


@dataclass(frozen=True, slots=True)
class TableDecision:
    """What becomes of a table.

    Its schema after the sync, what changed, and the columns it has no room for.
    """

    table: str
    schema: TableSchema
    change: SchemaChange | None
    refused_columns: tuple[str, ...]
    optional: frozenset[str]  # columns that appear only where some row has a cell in them


@dataclass(frozen=True, slots=True)
class Settlement:
    """Where everything goes.

    `refused_tables` had no room; their events are in the profile's overflow table.
    """

    table_of: Mapping[Kind, str]
    tables: Mapping[str, TableDecision]
    refused_tables: tuple[str, ...]


def settle(
    packets: Iterable[Packet],
    stored: Mapping[str, TableSchema],
    profile: Profile,
    limits: Limits,
    now: str,
) -> Settlement:
    """Decide tables, columns and types from everything that a sync has read."""
    packets = list(packets)
    rows: defaultdict[str, int] = defaultdict(int)
    for packet in packets:
        rows[profile.table(packet.kind)] += packet.rows
    refused = _refused_tables(rows, stored, profile, limits)
    table_of = {
        packet.kind: profile.overflow_table
        if (table := profile.table(packet.kind)) in refused
        else table
        for packet in packets
    }
    seen: defaultdict[str, dict[str, _Seen]] = defaultdict(dict)
    for packet in packets:
        _observe(seen[table_of[packet.kind]], packet, profile)
    tables = {
        table: _decide(table, columns, stored.get(table), profile, limits, now)
        for table, columns in sorted(seen.items())
    }
    return Settlement(table_of, tables, tuple(sorted(refused)))


def _refused_tables(
    rows: Mapping[str, int], stored: Mapping[str, TableSchema], profile: Profile, limits: Limits
) -> frozenset[str]:
    """The new tables beyond the guard: those with the fewest events, then the last by name.

    Fixed tables always fit.
    """
    fixed = {*dict(profile.tables).values(), profile.overflow_table}
    new = sorted(
        (name for name in rows if name not in stored and name not in fixed),
        key=lambda t: (-rows[t], t),
    )
    room = max(0, limits.max_tables - len(set(stored) | (fixed & set(rows))))
    return frozenset(new[room:])


@dataclass(slots=True)
class _Seen:
    observed: Observed
    values: int
    paths: set[str]


def _observe(columns: dict[str, _Seen], packet: Packet, profile: Profile) -> None:
    for name, values in packet.fields:
        code, path = name[0], name[1:]
        column = profile.column(path_keys(path))
        seen = columns.get(column)
        if seen is None:
            columns[column] = _Seen(CODES[code][1], values, {path})
        else:
            seen.observed |= CODES[code][1]
            seen.values += values
            seen.paths.add(path)


def _decide(
    table: str,
    seen: Mapping[str, _Seen],
    stored: TableSchema | None,
    profile: Profile,
    limits: Limits,
    now: str,
) -> TableDecision:
    known = stored.types() if stored else {}
    new = [name for name in seen if name not in known]
    leading = [name for name, _ in profile.leading]
    always = [] if stored else [name for name in profile.always if name not in seen]
    # one column is `_rescued`; the profile's own always fit
    room = (
        limits.max_columns
        - len(known)
        - (RESCUED not in known)
        - sum(name in leading for name in (*new, *always))
    )
    rest = sorted(
        (name for name in new if name not in leading), key=lambda name: (-seen[name].values, name)
    )
    refused = rest[max(0, room) :]
    kept = [name for name in leading if name in {*new, *always}] + sorted(rest[: max(0, room)])
    # leading columns open a new table; in an old one all that is new goes last, by name
    added = sorted(kept) if stored else kept
    columns = tuple(
        Column(
            name,
            _type(name, seen.get(name), profile),
            tuple(sorted(seen[name].paths)) if name in seen else (),
            now,
        )
        for name in added
    )
    if RESCUED not in known:
        columns += (Column(RESCUED, ColumnType.STRING, (), now),)
    paths = {name: tuple(sorted(seen[name].paths)) for name in seen if name in known}
    change = SchemaChange(table, columns, paths, is_new=stored is None)
    schema = (stored or TableSchema()).apply(change)
    optional = frozenset(added) - frozenset(profile.always)
    changed = None if schema == stored else change
    return TableDecision(table, schema, changed, tuple(sorted(refused)), optional)


def _type(name: str, seen: _Seen | None, profile: Profile) -> ColumnType:
    fixed = profile.fixed_types.get(name)
    if fixed is not None:
        return fixed
    return narrowest(seen.observed) if seen else ColumnType.STRING
