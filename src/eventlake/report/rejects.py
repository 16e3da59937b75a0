"""The lines that syncs have rejected, as they are kept in the lake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import zstandard

from eventlake.store import Store, keys, read


def stored_rejects(store: Store, source_id: str) -> Iterator[dict[str, Any]]:
    """Every rejected line of a source, in the order of the syncs."""
    for key in sorted(meta["path"] for meta in keys(store, f"_eventlake/{source_id}/rejects")):
        run_id = key.rpartition("/")[2].partition("-")[0]
        for line in zstandard.decompress(read(store, key)).splitlines():
            yield {"run_id": run_id, **orjson.loads(line)}
