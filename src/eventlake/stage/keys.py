"""Where things of a source are in the lake. Pure; the layout a reader of the bucket sees."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

STAGE = "segment-stage"
SOURCES = "_eventlake/sources"
SOURCE_IDS = "_eventlake/source-ids"


def stage_folder(source_id: str) -> str:
    """The folder of a source's staged objects; whatever lies in it is read by the next sync."""
    return f"{STAGE}/{source_id}"


def staged_key(source_id: str, digest: str) -> str:
    """The key of a staged object, from its uncompressed content alone.

    Neither date nor compression is part of it: the same lines sent again, at another time or
    compressed in another way, meet the object that is there. Readers tell gzip and zstd by magic.
    """
    return f"{stage_folder(source_id)}/{digest}.ndjson"


def damage_folder(source_id: str) -> str:
    """The folder of the records of damaged archives."""
    return f"_eventlake/{source_id}/damage"


def damage_key(source_id: str, digests: Iterable[str], offset: int, reason: str) -> str:
    """The key of a damage record, from what could be read and where it stopped."""
    text = "\n".join([*digests, str(offset), reason])
    return f"{damage_folder(source_id)}/{blake2b(text.encode(), digest_size=16).hexdigest()}.json"


def is_damage_record(key: str) -> bool:
    """Whether a key is that of a damage record rather than of a staged object."""
    return key.startswith("_eventlake/")


def source_folder(slug: str) -> str:
    """The folder of a source's record: numbered versions, the highest holds."""
    return f"{SOURCES}/{slug}"


def source_key(slug: str, version: int) -> str:
    """One version of a source's record."""
    return f"{source_folder(slug)}/{version:08}.json"


def source_id_key(source_id: str) -> str:
    """The claim that makes a source's id unique in the lake."""
    return f"{SOURCE_IDS}/{source_id}.json"
