"""ISO-8601 timestamps: which strings are one, and the microseconds since 1970 (UTC) they stand for.

Does not guess: no epoch numbers, no slashes, no month names.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_TIME = (
    r"(?:[Tt ](\d{H}):(\d{H})(?::(\d{H})(?:[.,](\d+))?)?(?:([Zz])|([+-])(\d\d)(?::?(\d\d))?)?)?\Z"
)
_STRICT = re.compile(r"(\d{4})-(\d\d)-(\d\d)" + _TIME.replace("{H}", "{2}"), re.ASCII)
_LENIENT = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})" + _TIME.replace("{H}", "{1,2}"), re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
FIRST_US = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
LAST_US = (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) - _EPOCH) // _MICROSECOND


def parse_iso(text: str, *, lenient: bool = False) -> tuple[int, bool] | None:
    """Microseconds since 1970 and whether they are exact, or None when `text` is no ISO timestamp.

    Without a zone it is UTC. Fractions beyond microseconds are rounded half up. `lenient` also
    takes unpadded fields.

    >>> parse_iso("1970-01-01T00:00:01.0000005Z")
    (1000001, False)
    >>> parse_iso("1970-1-01"), parse_iso("1970-1-01", lenient=True)
    (None, (0, True))
    """
    match = (_LENIENT if lenient else _STRICT).match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, zone_hours, zone_minutes = (
        match.groups()
    )
    try:
        at = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            tzinfo=UTC,
        )
        if sign:
            offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes or 0))
            if int(zone_minutes or 0) > 59:
                return None
            at = at.replace(tzinfo=timezone(offset if sign == "+" else -offset))
    except ValueError:
        return None
    micros, exact = (at - _EPOCH) // _MICROSECOND, True
    if fraction:
        micros += int((fraction + "000000")[:6])
        rest = fraction[6:].rstrip("0")
        micros, exact = micros + (rest[:1] >= "5"), not rest
    return (micros, exact) if FIRST_US <= micros <= LAST_US else None


def iso_text(micros: int) -> str:
    """The ISO text of microseconds since 1970: milliseconds, or microseconds where it takes them.

    >>> iso_text(1_000_000), iso_text(1)
    ('1970-01-01T00:00:01.000Z', '1970-01-01T00:00:00.000001Z')
    """
    at = _EPOCH + timedelta(microseconds=micros)
    return at.isoformat(timespec="microseconds" if micros % 1000 else "milliseconds").replace(
        "+00:00", "Z"
    )
