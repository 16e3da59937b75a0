"""Partition layouts: which folder an event received at some hour lives in.

Each knows both directions.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import Enum

HOUR_US = 3_600_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PartitionLayout(Enum):
    """The four Hive-style layouts on received time, by the name used in settings."""

    DAY_HOUR = "day/hour"
    YEAR_MONTH_DAY_HOUR = "year/month/day/hour"
    YEAR_MONTH_DAY = "year/month/day"
    DAY = "day"

    @property
    def keys(self) -> tuple[str, ...]:
        """The partition columns in path order."""
        return _KEYS[self]

    def hour(self, hour: int) -> int:
        """The first hour (since 1970) of the partition that `hour` falls into."""
        return hour if "hr" in self.keys else hour - hour % 24

    def values(self, hour: int) -> dict[str, str]:
        """Partition columns and values of an hour since 1970."""
        at = EPOCH + timedelta(hours=hour)
        day = f"{at.day:02}" if "month" in self.keys else f"{at.year:04}-{at.month:02}-{at.day:02}"
        every = {
            "year": f"{at.year:04}",
            "month": f"{at.month:02}",
            "day": day,
            "hr": f"{at.hour:02}",
        }
        return {key: every[key] for key in self.keys}

    def path(self, hour: int) -> str:
        """The folder of an hour since 1970.

        >>> PartitionLayout.DAY_HOUR.path(490_000)
        'day=2025-11-24/hr=16'
        """
        return "/".join(f"{key}={value}" for key, value in self.values(hour).items())

    def parse(self, path: str) -> dict[str, str]:
        """The partition columns and values that `path` wrote."""
        pairs = [part.partition("=") for part in path.split("/")]
        if tuple(key for key, _, _ in pairs) != self.keys:
            raise ValueError(f"{path!r} is not a partition of layout {self.value}")
        return {key: value for key, _, value in pairs}


_KEYS = {
    PartitionLayout.DAY_HOUR: ("day", "hr"),
    PartitionLayout.YEAR_MONTH_DAY_HOUR: ("year", "month", "day", "hr"),
    PartitionLayout.YEAR_MONTH_DAY: ("year", "month", "day"),
    PartitionLayout.DAY: ("day",),
}

# No column may have the name of a partition key, in whichever layout: readers would see two columns
# of one name.
PARTITION_NAMES = frozenset({"day", "hr", "year", "month", "segment_type"})
