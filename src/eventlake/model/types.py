"""Column types and the two laws about them: what a new column becomes, and which values fit a type.

Does not cast: the casts of whole Arrow columns are in `eventlake.sync.cast`. To add a type, add
it here and there.
"""

from __future__ import annotations

from enum import Enum, IntFlag


class ColumnType(Enum):
    """The closed set of types a column can have, by their names in Hive-like catalogs."""

    BIGINT = "bigint"
    BOOLEAN = "boolean"
    DECIMAL = "decimal(38,6)"
    STRING = "string"
    TIMESTAMP = "timestamp"


class Observed(IntFlag):
    """What kinds of JSON values were seen in a column.

    Joined by `|`, so no order of events matters.
    """

    NOTHING = 0
    INTEGER = 1  # an integer literal within 64 bits
    LONG = 2  # a number beyond 64 bits that a decimal(38,6) still holds
    FRACTION = 4  # a literal with a point or an exponent
    HUGE = 8  # a number that no column type holds
    BOOLEAN = 16
    ISO = 32  # an ISO-8601 string
    TEXT = 64  # any other string
    JSON = 128  # an array


_NUMERIC = Observed.INTEGER | Observed.LONG | Observed.FRACTION

_ALONE = {
    Observed.INTEGER: ColumnType.BIGINT,
    Observed.BOOLEAN: ColumnType.BOOLEAN,
    Observed.ISO: ColumnType.TIMESTAMP,
}


def narrowest(observed: Observed) -> ColumnType:
    """The narrowest type that holds every value observed.

    A function of the union of observations, hence the same for any order and any split of the
    events.

    >>> narrowest(Observed.INTEGER | Observed.FRACTION).value
    'decimal(38,6)'
    >>> narrowest(Observed.INTEGER | Observed.BOOLEAN).value
    'string'
    """
    alone = _ALONE.get(observed)
    if alone:
        return alone
    if observed and not observed & ~_NUMERIC:
        return ColumnType.DECIMAL
    return ColumnType.STRING
