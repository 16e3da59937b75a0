"""The `segment` profile.

The tables, columns and paths of Segment Data Lakes, the whole event flattened.
"""

from __future__ import annotations

from eventlake.model.layout import PARTITION_NAMES
from eventlake.model.types import ColumnType
from eventlake.profiles.profile import Profile

SEGMENT = Profile(
    name="segment",
    tables=(
        ("identify", "identify"),
        ("page", "page"),
        ("screen", "screen"),
        ("group", "group"),
        ("alias", "alias"),
    ),
    overflow_table="other_events",
    leading=(
        ("message_id", ColumnType.STRING),
        ("type", ColumnType.STRING),
        ("event", ColumnType.STRING),
        ("user_id", ColumnType.STRING),
        ("anonymous_id", ColumnType.STRING),
        ("group_id", ColumnType.STRING),
        ("previous_id", ColumnType.STRING),
        ("received_at", ColumnType.TIMESTAMP),
        ("sent_at", ColumnType.TIMESTAMP),
        ("original_timestamp", ColumnType.TIMESTAMP),
        ("timestamp", ColumnType.TIMESTAMP),
    ),
    always=("message_id", "type", "received_at", "timestamp"),
    reserved_columns=PARTITION_NAMES,
    table_path="segment-data/data/{source}/segment_type={table}",
)
