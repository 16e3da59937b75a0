"""The two accounts every sync must balance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventCounts:
    """read = rows + duplicates + rejected + suppressed."""

    read: int = 0
    rows: int = 0
    duplicates: int = 0
    rejected: int = 0
    suppressed: int = 0

    @property
    def balanced(self) -> bool:
        """Whether every event read is accounted for."""
        return self.read == self.rows + self.duplicates + self.rejected + self.suppressed


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """read = typed + rounded + rescued."""

    read: int = 0
    typed: int = 0
    rounded: int = 0
    rescued: int = 0

    @property
    def balanced(self) -> bool:
        """Whether every value read is accounted for."""
        return self.read == self.typed + self.rounded + self.rescued


def total(counts: Iterable[ValueCounts]) -> ValueCounts:
    """The sum of value counts."""
    read = typed = rounded = rescued = 0
    for c in counts:
        read, typed, rounded, rescued = (
            read + c.read,
            typed + c.typed,
            rounded + c.rounded,
            rescued + c.rescued,
        )
    return ValueCounts(read, typed, rounded, rescued)
