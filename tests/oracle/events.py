"""Lines of staged objects to events: refuse, route, flatten, settle names, fill what is missing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from zlib import crc32

from .casts import Typed, cast, instant
from .jsontext import Json, NotJsonError, Number, TooDeepError, parse
from .names import Path, column_name, path_text, table_name

TYPES = frozenset({"identify", "track", "page", "screen", "group", "alias"})
ENVELOPE = {
    "message_id": ("messageId", "string"),
    "type": ("type", "string"),
    "event": ("event", "string"),
    "user_id": ("userId", "string"),
    "anonymous_id": ("anonymousId", "string"),
    "group_id": ("groupId", "string"),
    "previous_id": ("previousId", "string"),
    "received_at": ("receivedAt", "timestamp"),
    "sent_at": ("sentAt", "timestamp"),
    "original_timestamp": ("originalTimestamp", "timestamp"),
    "timestamp": ("timestamp", "timestamp"),
}


@dataclass(frozen=True)
class Staged:
    """A staged object, decompressed."""

    key: str
    staged_at: datetime
    data: bytes


@dataclass(frozen=True)
class Settings:
    """The settings a sync's outcome depends on."""

    track_prefix: str = ""
    max_event_bytes: int = 1024 * 1024
    max_depth: int = 16
    max_columns: int = 5000
    max_tables: int = 5000


@dataclass(frozen=True)
class Reject:
    """A line that is no event: why, and where it is (lines count from 1, blank ones included)."""

    reason: str
    key: str
    line: int


@dataclass(frozen=True)
class Leaf:
    """A non-null value of an event and the path it came by."""

    path: Path
    value: Json


@dataclass
class Event:
    """An accepted line: at most one leaf per column, and what is rescued whatever the types."""

    key: str
    line: int
    crc: int
    table: str
    leaves: dict[str, Leaf]
    rescued: list[Leaf]
    message_id: str = ""
    received_at: datetime = field(default=datetime.min.replace(tzinfo=UTC))


def read(staged: Staged, settings: Settings) -> Iterator[Event | Reject]:
    """Every line of an object that is not blank, as an event or a reject."""
    body = staged.data.removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(body.split(b"\n"), start=1):
        if not line.strip(b" \t\r"):
            continue
        document = _document(line, settings)
        route = _route(document) if isinstance(document, dict) else document
        if isinstance(route, str):
            yield Reject(route, staged.key, number)
            continue
        assert isinstance(document, dict)
        leaves, losers = settle_names(list(flatten(document, settings.max_depth)))
        table = table_name(route[0], route[1], settings.track_prefix)
        event = Event(staged.key, number, crc32(line), table, leaves, losers)
        _fill(event, staged.staged_at)
        yield event


def _document(line: bytes, settings: Settings) -> dict[str, Json] | str:
    """The line's object, or the reason it has none."""
    if len(line) > settings.max_event_bytes:
        return "too_large"
    try:
        document = parse(line.decode("utf-8"))
    except UnicodeDecodeError:
        return "not_utf8"
    except TooDeepError:
        return "too_deep"
    except NotJsonError:
        return "not_json"
    return document if isinstance(document, dict) else "not_object"


def _route(document: dict[str, Json]) -> tuple[str, str] | str:
    """The call's type and, for a track, its event; or the reason there is none."""
    kind = document.get("type")
    if not isinstance(kind, str) or kind.strip().lower() not in TYPES:
        return "unknown_type"
    kind = kind.strip().lower()
    if kind != "track":
        return kind, ""
    event = document.get("event")
    return (kind, event) if isinstance(event, str) and event.strip() else "missing_event"


def flatten(value: Json, max_depth: int, path: Path = ()) -> Iterator[Leaf]:
    """The non-null leaves in document order.

    An object whose own path has more than `max_depth` parts is a leaf itself.
    """
    if isinstance(value, dict) and len(path) <= max_depth:
        for key, child in value.items():
            yield from flatten(child, max_depth, (*path, key))
    elif value is not None and value != {}:
        yield Leaf(path, value)


def settle_names(leaves: list[Leaf]) -> tuple[dict[str, Leaf], list[Leaf]]:
    """One leaf per column, and those that lost theirs or, being objects, have none."""
    rivals: dict[str, list[Leaf]] = {}
    losers: list[Leaf] = []
    for leaf in leaves:
        if isinstance(leaf.value, dict):
            losers.append(leaf)
        else:
            rivals.setdefault(column_name(leaf.path), []).append(leaf)
    winners: dict[str, Leaf] = {}
    for column, candidates in rivals.items():
        spelled = [leaf for leaf in candidates if _spelled_like(leaf.path, column)]
        winners[column] = (spelled or candidates)[0]
        losers.extend(leaf for leaf in candidates if leaf is not winners[column])
    return winners, losers


def _spelled_like(path: Path, column: str) -> bool:
    return "_".join(path) == column or (column in ENVELOPE and path == (ENVELOPE[column][0],))


def _fill(event: Event, staged_at: datetime) -> None:
    """Gives the event its id, received time and timestamp where it lacks them."""
    event.message_id = _message_id(event)
    received = _moment(event, "received_at")
    if received is None:
        received = staged_at
        _replace(event, "received_at", _iso(received))
    event.received_at = received
    if "timestamp" not in event.leaves:
        _replace(event, "timestamp", _iso(_corrected(event)))


def _message_id(event: Event) -> str:
    leaf = event.leaves.get("message_id")
    if leaf is None or not isinstance(leaf.value, str | Number) or leaf.value == "":
        place = f"{event.key}\0{event.line}".encode()
        _replace(event, "message_id", "el-" + blake2b(place, digest_size=16).hexdigest())
    typed = cast(event.leaves["message_id"].value, "string")
    assert isinstance(typed.cell, str)
    return typed.cell


def _replace(event: Event, column: str, fill: str) -> None:
    """Puts a fill into a column; an unusable value that was there is rescued."""
    if column in event.leaves:
        event.rescued.append(event.leaves[column])
    event.leaves[column] = Leaf((ENVELOPE[column][0],), fill)


def _moment(event: Event, column: str) -> datetime | None:
    leaf = event.leaves.get(column)
    if leaf is None or not isinstance(leaf.value, str):
        return None
    moment = instant(leaf.value, lenient=True)
    return None if moment is None else moment.at


def _corrected(event: Event) -> datetime:
    """When the event happened, by the server's clock: received - (sent - original)."""
    original, sent = _moment(event, "original_timestamp"), _moment(event, "sent_at")
    if original is None:
        return event.received_at
    if sent is None:
        return original
    try:
        return event.received_at - (sent - original)
    except OverflowError:
        return event.received_at


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def typed_as(leaf: Leaf, column_type: str) -> Typed:
    return cast(leaf.value, column_type)


def where(leaf: Leaf) -> str:
    return path_text(leaf.path)
