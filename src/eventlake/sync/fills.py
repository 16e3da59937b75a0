"""What a line may lack and every row has: a message id, the time received, a timestamp.

Filled in before anything is flattened.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlake.model.timestamps import FIRST_US, LAST_US, iso_text, parse_iso
from eventlake.profiles.profile import Kind
from eventlake.sync.columns import Rescue, strings_by_code
from eventlake.sync.parse import Document, Number, json_text, whole


@dataclass(frozen=True, slots=True)
class Origin:
    """The staged object that lines come from.

    `only`: kinds still owed from an earlier sync; nothing else counts.
    """

    key: str
    staged_us: int
    only: frozenset[Kind] | None = None


# The columns that every event has, and the field that is filled in where it has none.
FILLED = {"message_id": "messageId", "received_at": "receivedAt", "timestamp": "timestamp"}


def adopt(docs: list[Document], column: str, canonical: str, aliases: list[str]) -> list[Rescue]:
    """Let another spelling of a field that is filled in when missing stand for it."""
    rescued = []
    for row, doc in enumerate(docs):
        here = [key for key in doc if (key == canonical or key in aliases) and doc[key] is not None]
        if not here or here == [canonical]:
            continue
        winner = next((key for key in here if key in (canonical, column)), here[0])
        value = doc[winner]
        rescued += [Rescue(row, key, json_text(doc[key])) for key in here if key != winner]
        for key in aliases:
            doc.pop(key, None)
        doc[canonical] = value
    return rescued


def received_times(values: list[Any], origin: Origin) -> tuple[npt.NDArray[np.int64], list[Rescue]]:
    """When each event was received, in microseconds.

    Where that is missing or no time, when it was staged.
    """
    if set(map(type, values)) == {str}:
        try:
            coded = dict(strings_by_code(pa.array(values, pa.string())))
        except UnicodeEncodeError:
            coded = {}
        if set(coded) == {"z"}:
            return np.asarray(coded["z"].cast(pa.int64())) * 1000, []
    received, rescued = np.empty(len(values), np.int64), []
    for row, value in enumerate(values):
        parsed = parse_iso(value, lenient=True) if type(value) is str else None
        if parsed is None:
            if value is not None and value != {}:
                rescued.append(Rescue(row, "receivedAt", json_text(value)))
            values[row] = iso_text(origin.staged_us)
        received[row] = parsed[0] if parsed else origin.staged_us
    return received, rescued


def message_hashes(
    ids: list[Any], lines: list[int], origin: Origin
) -> tuple[list[bytes], list[Rescue]]:
    """The 128-bit hash of each event's message id.

    An event without one gets an id from where its line stands.
    """
    rescued = []
    texts = ids
    if set(map(type, ids)) != {str} or "" in ids:
        texts = list(ids)
        for row, value in enumerate(ids):
            if type(value) is str and value:
                continue
            if type(value) in (int, float, Number):
                texts[row] = json_text(value)
                continue
            if value is not None and value != {}:
                rescued.append(Rescue(row, "messageId", json_text(value)))
            place = f"{origin.key}\0{lines[row]}".encode("utf-8", "surrogatepass")
            texts[row] = ids[row] = f"el-{blake2b(place, digest_size=16).hexdigest()}"
    try:
        return [blake2b(text.encode(), digest_size=16).digest() for text in texts], rescued
    except UnicodeEncodeError:
        return [blake2b(whole(text).encode(), digest_size=16).digest() for text in texts], rescued


def fill_timestamps(envelope: dict[str, list[Any]], received: npt.NDArray[np.int64]) -> None:
    """Segment's correction for wrong clocks: received - (sent - original)."""
    values = envelope["timestamp"]
    if None not in values:
        return
    originals, sents = envelope.get("originalTimestamp"), envelope.get("sentAt")
    for row, value in enumerate(values):
        if value is None or value == {}:
            original = originals[row] if originals else None
            sent = sents[row] if sents else None
            values[row] = iso_text(_skewed(original, sent, int(received[row])))


def _skewed(original: Any, sent: Any, received: int) -> int:
    original_at = parse_iso(original, lenient=True) if type(original) is str else None
    sent_at = parse_iso(sent, lenient=True) if type(sent) is str else None
    if original_at is None:
        return received
    if sent_at is None:
        return original_at[0]
    corrected = received - (sent_at[0] - original_at[0])
    return corrected if FIRST_US <= corrected <= LAST_US else received
