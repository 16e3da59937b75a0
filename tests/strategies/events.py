r"""Streams of NDJSON lines as sources send them: good, odd, doubled, late and broken.

`streams()` is the whole zoo. `placed_streams()` holds only events that name their id and a
received time of their own, for laws about order. `contested=True` adds inputs whose answer the
design leaves open: envelope columns under other spellings, lone surrogates in keys, `\r` and
blanks around lines.
"""

import json
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from . import values
from .values import Pairs, Theme, members, object_of, scalars

BASE = datetime(2024, 5, 1, 9, 58, 30, tzinfo=UTC)
BOM = b"\xef\xbb\xbf"

TRACK_EVENTS = (
    *("Order Completed", "orderCompleted", "order_completed", "Product Viewed", "101 Update"),
    *("Identify", "PAGE", "other events", "Track", "日本", "!", " padded ", "E" * 260, "é" * 3),
)
GOOD_TYPES = ("identify", "page", "screen", "group", "alias", "Identify", " PAGE ", "sCREEN")
BAD_TYPES = ('"order"', '""', '"  "', "null", "5", "true", "[]", "{}", '"identifies"')
BAD_EVENTS = ('""', '"  "', "null", "5", "true", "[]", "{}")
IDS = tuple(f"m{n}" for n in range(24))
BROKEN = (
    *(b"nope", b"[1]", b"5", b'"x"', b"null", b"{", b'{"type":"page"', b'{"type":"page"}}'),
    *(b'{"type":"page","n":NaN}', b'{"type":"page","n":-Infinity}', b'{"type":"page","n":01}'),
    *(b"{'type':'page'}", b'{"type":"page",}', b'{"type":"page","s":"\x01"}', b'{"type":"track"}'),
    *(b"\xff\xfe{}", b'{"type":"page","s":"\xed\xa0\x80"}', b'{"type":"page","s":"\xc3"}', b"{}"),
    *(b'{"type":"page"}{"type":"page"}', BOM + b"nope", b'{"type":"page" "n":1}'),
)
BLANK = (b"", b" ", b"\t ", b"\r")
TOP_LEVEL = ("version", "channel", "day", "hr", "Year", "segment_type", "日本", "context.ip", "_x")
MISSING = None


def moment(at: datetime, style: int) -> str:
    """A moment as JSON, in one of the spellings sources use."""
    naive = at.replace(tzinfo=None).isoformat(timespec="microseconds")
    spellings = (naive + "Z", naive + "+00:00", naive.replace("T", " "), naive + "000Z")
    return json.dumps(spellings[style % len(spellings)])


@st.composite
def moments(draw: st.DrawFn) -> str:
    """Received times over a few hours, often the same one, at times with nanoseconds."""
    seconds = draw(st.sampled_from((0, 0, 1, 89, 90, 3600, 7300, 4 * 3600, -86400)))
    at = BASE + timedelta(seconds=seconds, microseconds=draw(st.sampled_from((0, 0, 1, 999_999))))
    text = moment(at, draw(st.integers(0, 3)))
    return text if draw(st.integers(0, 9)) < 9 else f'"{at:%Y-%m-%dT%H:%M:%S}.1234567Z"'


BAD_MOMENTS = ('"nope"', '""', "12", "true", "null", '["2024-05-01"]', "{}", '"2024-02-30"')
LENIENT_MOMENTS = ('"2024-5-1T9:58:30Z"', '"2024-05-01"', '"2024-05-01T12:00+02:00"')


@st.composite
def maybe_moment(draw: st.DrawFn) -> str | None:
    """A received time as a source may give it, or none."""
    dice = draw(st.integers(0, 11))
    if dice == 0:
        return MISSING
    if dice == 1:
        return draw(st.sampled_from(BAD_MOMENTS))
    return draw(st.sampled_from(LENIENT_MOMENTS)) if dice == 2 else draw(moments())


@st.composite
def message_id(draw: st.DrawFn) -> str | None:
    """An id from few, so that doubles are frequent; at times a number, unusable or none."""
    dice = draw(st.integers(0, 11))
    if dice == 0:
        return MISSING
    if dice == 1:
        odd = ("null", '""', "true", "[1]", "{}", "12", '"12"', "1.50", '"1.5"', '"日本"')
        return draw(st.sampled_from(odd))
    return json.dumps(draw(st.sampled_from(IDS)))


@st.composite
def routed(draw: st.DrawFn) -> Pairs:
    """`type`, and `event` where there is one."""
    dice = draw(st.integers(0, 15))
    if dice == 0:
        bad = draw(st.sampled_from((MISSING, *BAD_TYPES)))
        return [] if bad is MISSING else [("type", bad)]
    if dice <= 4:
        pairs = [("type", json.dumps(draw(st.sampled_from(GOOD_TYPES))))]
        return pairs + ([("event", draw(scalars))] if dice == 1 else [])
    kind = ("type", draw(st.sampled_from(('"track"', '"track"', '"Track"', '" TRACK "'))))
    if dice == 5:
        bad = draw(st.sampled_from((MISSING, *BAD_EVENTS)))
        return [kind] if bad is MISSING else [kind, ("event", bad)]
    return [kind, ("event", json.dumps(draw(st.sampled_from(TRACK_EVENTS)), ensure_ascii=False))]


@st.composite
def clocks(draw: st.DrawFn) -> Pairs:
    """The client's times: with skew, missing or wrong, and the rare `timestamp` given."""
    pairs: Pairs = []
    for key, of_16 in (("originalTimestamp", 11), ("sentAt", 11), ("timestamp", 4)):
        dice = draw(st.integers(0, 15))
        if dice < of_16:
            pairs.append((key, draw(moments())))
        elif dice == 15:
            pairs.append((key, draw(st.sampled_from(BAD_MOMENTS) | scalars)))
    return pairs


@st.composite
def body(draw: st.DrawFn, theme: Theme) -> Pairs:
    """Everything that is neither route, id nor time."""
    pairs: Pairs = []
    for key in draw(st.lists(st.sampled_from(("userId", "anonymousId", "groupId", "previousId")))):
        pairs.append((key, draw(values.quoted(("u1", "u2", "")) | scalars)))
    for key in ("properties", "properties", "traits", "context", "integrations", "_metadata"):
        if draw(st.integers(0, 2)) == 0:
            pairs.append((key, object_of(draw(members(theme)))))
    for key in draw(st.lists(st.sampled_from(TOP_LEVEL), max_size=2)):
        pairs.append((key, draw(st.sampled_from(("2", '"1.1"')) | scalars)))
    if draw(st.integers(0, 39)) == 0:
        pairs.append(("deep", draw(values.deep_values)))
    return pairs


CONTESTED: tuple[tuple[str, str], ...] = (
    *(("message_id", '"m1"'), ("MessageID", '"m2"'), ("message", '{"id": "m3"}'), ("Type", "1")),
    *(("received_at", '"2024-05-01T09:58:30Z"'), ("Timestamp", '"2024-05-01"'), ("day_", "1")),
    *(("sent", '{"at": "2024-05-01"}'), ("event_", '"x"'), ("\ud800a", "1"), ("\ud801", "true")),
    *(("Day", "1"), ("_day", "2"), ("n", "0.00000000000000012"), ("n", "1.0000000000000000")),
)


@st.composite
def event(draw: st.DrawFn, theme: Theme, *, contested: bool = False) -> Pairs:
    """The members of one event, in any order."""
    pairs = draw(routed())
    for key, text in (("messageId", draw(message_id())), ("receivedAt", draw(maybe_moment()))):
        if text is not MISSING:
            pairs.append((key, text))
    pairs += draw(clocks()) + draw(body(theme))
    if contested:
        pairs += draw(st.lists(st.sampled_from(CONTESTED), max_size=2))
    return _turned(pairs, draw(st.integers(0, len(pairs))))


def _turned(pairs: Pairs, start: int) -> Pairs:
    return pairs[start:] + pairs[:start]


def line(pairs: Pairs) -> bytes:
    """An event as a line."""
    return object_of(pairs).encode("utf-8")


def resent(pairs: Pairs, received_at: str) -> Pairs:
    """The same event, received at another time."""
    return [pair for pair in pairs if pair[0] != "receivedAt"] + [("receivedAt", received_at)]


@st.composite
def streams(
    draw: st.DrawFn, max_size: int = 20, *, contested: bool = False, event_limit: int = 0
) -> list[bytes]:
    """The lines of a stream, broken ones and doubles among them.

    With a limit in bytes some lines are well above it (and the guard must be set to it).
    """
    theme = draw(values.themes)
    broken = [*BROKEN, line([("deep", values.TOO_DEEP)])]
    if event_limit:
        padding = json.dumps("x" * event_limit)
        broken += [line([("type", '"page"'), ("padding", padding)])] * len(broken)
    events: list[Pairs] = []
    lines: list[bytes] = []
    for _ in range(draw(st.integers(0, max_size))):
        dice = draw(st.integers(0, 19))
        if dice == 0:
            lines.append(draw(st.sampled_from(broken)))
        elif dice == 1:
            lines.append(draw(st.sampled_from(BLANK)))
        elif dice <= 3 and events:
            earlier = draw(st.sampled_from(events))
            lines.append(line(earlier if dice == 2 else resent(earlier, draw(moments()))))
        else:
            events.append(draw(event(theme, contested=contested)))
            lines.append(line(events[-1]))
    if contested:
        lines = [draw(st.sampled_from((b"", b" ", b"\t"))) + text + b"\r" for text in lines]
    return lines


@st.composite
def placed_streams(draw: st.DrawFn, max_size: int = 12) -> list[bytes]:
    """Good events only, all with an id (some equal) and received times that all differ."""
    theme = draw(values.themes)
    lines = []
    for place in range(draw(st.integers(0, max_size))):
        name = json.dumps(draw(st.sampled_from(TRACK_EVENTS)))
        kind = draw(st.sampled_from(('"track"', '"track"', '"identify"', '"page"')))
        pairs: Pairs = [("type", kind), ("event", name)]
        pairs.append(("messageId", json.dumps(draw(st.sampled_from(IDS)))))
        at = BASE + timedelta(seconds=draw(st.integers(0, 9000)), microseconds=place)
        pairs.append(("receivedAt", moment(at, place)))
        pairs += draw(clocks()) + draw(body(theme))
        lines.append(line(_turned(pairs, draw(st.integers(0, len(pairs))))))
    return lines


@st.composite
def objects(draw: st.DrawFn, lines: list[bytes]) -> list[bytes]:
    """The lines cut into one or more objects, with or without a byte order mark or last newline."""
    cuts = sorted(draw(st.lists(st.integers(0, len(lines)), max_size=3)))
    blobs = []
    for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True):
        mark = BOM if draw(st.integers(0, 7)) == 0 else b""
        blobs.append(mark + b"\n".join(lines[start:end]) + draw(st.sampled_from((b"\n", b""))))
    return blobs


@st.composite
def syncs(draw: st.DrawFn, lines: list[bytes], max_syncs: int = 3) -> list[list[bytes]]:
    """The lines cut into syncs, each of them into objects."""
    cuts = sorted(draw(st.lists(st.integers(0, len(lines)), max_size=max_syncs - 1)))
    bounds = zip([0, *cuts], [*cuts, len(lines)], strict=True)
    return [draw(objects(lines[start:end])) for start, end in bounds]


def split_streams(max_size: int = 20) -> st.SearchStrategy[list[list[bytes]]]:
    """Streams, cut into syncs and objects."""
    return streams(max_size=max_size).flatmap(syncs)
