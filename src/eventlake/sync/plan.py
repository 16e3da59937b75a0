"""Plan: which staged objects a sync reads, in which tasks.

Later, which packets it writes, in which units.

Pure. A plan is a value: `sync --dry-run` prints the one that the run would execute.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from eventlake.ledger.state import State
from eventlake.model.layout import PartitionLayout
from eventlake.sync.dedupe import Rows
from eventlake.sync.packets import Bundle
from eventlake.sync.read import Input, ReadTask
from eventlake.sync.settle import Settlement
from eventlake.sync.write import Part, WriteUnit

# An empty cell costs as much as a full one while rows are put together.
_CELL_BYTES = 8
# A task below this costs more to start than to run.
LEAST_TASK_BYTES = 1 << 20
# Packets that one write task holds at once: about four times as much in memory.
UNIT_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What a sync of one source will read."""

    source_id: str
    tasks: tuple[ReadTask, ...]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """All objects, in no particular order."""
        return tuple(each for task in self.tasks for each in task.inputs)

    @property
    def size(self) -> int:
        """Bytes as staged."""
        return sum(task.size for task in self.tasks)


def plan(source_id: str, inputs: Sequence[Input], cores: int, task_bytes: int) -> SyncPlan:
    """Spread staged objects over tasks of even size.

    As many as keep all cores busy, none needlessly small.
    """
    total = sum(each.size for each in inputs)
    wanted = max(-(-total // task_bytes), min(2 * cores, total // LEAST_TASK_BYTES), 1)
    count = min(len(inputs), -(-wanted // cores) * cores if wanted > 1 else 1)
    groups = _even(sorted(inputs, key=lambda each: (-each.size, each.key)), count)
    tasks = tuple(
        ReadTask(number, tuple(sorted(group, key=lambda each: each.key)))
        for number, group in enumerate(groups)
    )
    return SyncPlan(source_id, tasks)


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=_Sized)


def _even(items: Iterable[S], count: int) -> list[list[S]]:
    """Items, largest first, each to the group that has least so far."""
    groups: list[list[S]] = [[] for _ in range(count)]
    heap = [(0, number) for number in range(count)]
    for item in items:
        size, number = heapq.heappop(heap)
        groups[number].append(item)
        heapq.heappush(heap, (size + item.size, number))
    return [group for group in groups if group]


@dataclass(frozen=True, slots=True)
class WriteTask:
    """The units that one Spark task writes, one after the other."""

    number: int
    units: tuple[WriteUnit, ...]


def write_tasks(units: Sequence[WriteUnit], cores: int) -> tuple[WriteTask, ...]:
    """Spread units over tasks, largest first, a few per core: none waits long for the last one."""
    groups = _even(
        sorted(units, key=lambda unit: (-unit.size, unit.table, unit.number)),
        min(len(units), 3 * cores),
    )
    return tuple(WriteTask(number, tuple(group)) for number, group in enumerate(groups))


def write_units(
    bundles: Sequence[Bundle],
    dropped: Mapping[int, Rows],
    settled: Settlement,
    layout: PartitionLayout,
    unit_bytes: int = UNIT_BYTES,
) -> tuple[WriteUnit, ...]:
    """Group packets by table.

    What is too large for one task is split by partition, then by packet.
    """
    parts: defaultdict[str, list[Part]] = defaultdict(list)
    for place, bundle in enumerate(bundles):
        rows = np.sort(dropped[place]) if place in dropped else np.empty(0, np.int64)
        for packet in bundle.packets:
            first, last = np.searchsorted(rows, (packet.first_row, packet.first_row + packet.rows))
            lost = rows[first:last] - packet.first_row
            if len(lost) < packet.rows:
                parts[settled.table_of[packet.kind]].append(
                    Part(bundle.key, packet, 0, packet.rows, lost)
                )
    units: list[WriteUnit] = []
    for table, those in sorted(parts.items()):
        decision = settled.tables[table]
        width = len(decision.schema.columns) * _CELL_BYTES
        fits = sum(_cost(part, width) for part in those) <= unit_bytes
        groups = [those] if fits else _split(those, layout, unit_bytes, width)
        units += [
            WriteUnit(table, decision.schema.types(), decision.optional, tuple(group), number)
            for number, group in enumerate(groups)
        ]
    return tuple(units)


def _cost(part: Part, row_bytes: int) -> int:
    """The memory a part takes: its bytes, or its rows times columns where most cells are empty."""
    return max(part.size, (part.stop - part.start) * row_bytes)


def _split(
    parts: Sequence[Part], layout: PartitionLayout, unit_bytes: int, row_bytes: int
) -> list[list[Part]]:
    """Parts by partition: small neighbours together, large ones cut between packets."""
    by_partition: defaultdict[int, list[Part]] = defaultdict(list)
    for part in parts:
        row = 0
        for hour, rows in part.packet.hours:
            by_partition[layout.hour(hour)].append(
                Part(part.key, part.packet, row, row + rows, part.dropped)
            )
            row += rows
    groups: list[list[Part]] = [[]]
    cost = 0
    for part in (part for _, those in sorted(by_partition.items()) for part in those):
        more = _cost(part, row_bytes)
        if groups[-1] and cost + more > unit_bytes:
            groups.append([])
            cost = 0
        groups[-1].append(part)
        cost += more
    return groups


def inputs_of(
    staged: Iterable[tuple[str, int, str, int]], state: State, same_content: Mapping[str, bool]
) -> list[Input]:
    """What is to be read.

    Objects (key, size, e_tag, staged_us) not yet consumed, and those with events still owed.

    `same_content` tells of keys whose e_tag alone has changed, as after a restore, whether they
    hold what was consumed.
    """
    owed = {each.key: each for each in state.owed}
    found = []
    for key, size, e_tag, staged_us in staged:
        done = state.consumed.get(key)
        if done is None or not (
            done.size == size and (done.e_tag == e_tag or same_content.get(key, False))
        ):
            found.append(Input(key, size, e_tag, staged_us))
        elif key in owed:
            found.append(Input(key, size, e_tag, owed[key].staged_us, frozenset(owed[key].kinds)))
    return found
