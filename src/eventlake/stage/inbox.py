"""What waits in a source's inbox: staged objects, and records of damaged archives.

Does not know what is done already (the ledger does) and deletes nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from eventlake.errors import StateError
from eventlake.stage.keys import damage_folder, stage_folder
from eventlake.store import Store, keys, read


@dataclass(frozen=True, slots=True)
class StagedObject:
    """An object to sync: what it takes to plan without opening it."""

    key: str
    size: int
    e_tag: str | None
    staged_at: datetime


@dataclass(frozen=True, slots=True)
class StagedDamage:
    """An archive that was readable only up to `offset`; the sync counts it as one rejected entry.

    `object` is the last object staged from the archive before the damage, if any.
    """

    key: str
    object: str | None
    file: str
    offset: int
    line: int
    reason: str
    fragment: str
    staged_at: datetime


def staged(store: Store, source_id: str) -> list[StagedObject]:
    """Every staged object of the source, oldest first."""
    found = [
        StagedObject(meta["path"], meta["size"], meta["e_tag"], meta["last_modified"])
        for meta in keys(store, stage_folder(source_id))
        # Consoles make empty objects to stand for folders.
        if meta["size"]
    ]
    return sorted(found, key=lambda staged: (staged.staged_at, staged.key))


def damages(store: Store, source_id: str) -> list[StagedDamage]:
    """Every damage recorded while staging for the source, oldest first."""
    found = [
        damage_of(meta["path"], read(store, meta["path"]), meta["last_modified"])
        for meta in keys(store, damage_folder(source_id))
    ]
    return sorted(found, key=lambda damage: (damage.staged_at, damage.key))


def damage_of(key: str, content: bytes, staged_at: datetime) -> StagedDamage:
    """The damage that a record tells of. Raises StateError CORRUPT_RECORD."""
    try:
        record = json.loads(content)
        return StagedDamage(
            key=key,
            object=record["object"],
            file=record["file"],
            offset=record["offset"],
            line=record["line"],
            reason=record["reason"],
            fragment=record["fragment"],
            staged_at=staged_at,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            "CORRUPT_RECORD",
            f"the damage record cannot be understood: {error}",
            "restore the object or delete it; it only describes an archive that was damaged",
            key,
        ) from error
