"""Which sources a command is about."""

from __future__ import annotations

from eventlake.errors import InputError
from eventlake.stage import sources
from eventlake.stage.sources import Source
from eventlake.store import Store


def chosen(store: Store, slug: str | None) -> list[Source]:
    """The source named, or all of the lake. Raises InputError when there is none."""
    if slug is not None:
        return [sources.find(store, slug)]
    found = sources.all_sources(store)
    if not found:
        raise InputError(
            "SOURCE_NOT_FOUND",
            "this lake has no source yet",
            "`eventlake source add SLUG` connects one",
        )
    return found
