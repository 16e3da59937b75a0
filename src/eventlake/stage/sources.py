"""The sources of a lake: who may send, under which id, with which settings of their own.

State that changes is a series of create-only versions (the highest holds), because local stores
have no conditional updates. Write keys are never stored, only their hash.
"""

from __future__ import annotations

import difflib
import hashlib
import hmac
import json
import re
import secrets
import string
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

from eventlake.errors import InputError, StateError
from eventlake.settings import check_source_settings
from eventlake.stage.keys import SOURCES, source_folder, source_id_key, source_key
from eventlake.store import Store, create, keys, read, remove

_ALPHABET = string.ascii_letters + string.digits
# As long as Segment's ids and write keys, so paths and SDK settings look alike.
_ID_LENGTH, _WRITE_KEY_LENGTH = 10, 32
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
# Folders beside those of the sources below `_eventlake/`.
_RESERVED_IDS = frozenset({"sources", "source-ids", "catalog", "suppressed", "reports", "lake"})
# Two people changing one source at once is rare; more rounds than this is a fault.
_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Source:
    """A source of events; `settings` are those that differ from the lake's, by dotted key."""

    id: str
    slug: str
    name: str
    enabled: bool
    created_at: datetime
    key_hash: str = field(repr=False)
    settings: Mapping[str, object] = field(default_factory=dict)
    version: int = 1


def add(
    store: Store,
    slug: str,
    now: datetime,
    *,
    source_id: str | None = None,
    name: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> tuple[Source, str]:
    """Connects a source; returns it and its write key, which cannot be had again.

    Of two calls for one slug or id at once, one wins. A call that was cut off can be repeated.
    Raises InputError INVALID_SOURCE, SOURCE_EXISTS.
    """
    if source_id is None:
        source_id = "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
    name = name if name is not None else slug
    _check(slug, source_id, name)
    if _latest(store, slug) is not None:
        raise _taken(slug, f"there is a source `{slug}` already")
    _claim(store, source_id, slug)
    write_key = _new_write_key()
    own = check_source_settings(settings or {})
    source = Source(source_id, slug, name, True, now, _hash(write_key), own)
    if not create(store, source_key(slug, 1), _to_json(source)):
        raise _taken(slug, f"there is a source `{slug}` already")
    return source, write_key


def all_sources(store: Store) -> list[Source]:
    """Every source of the lake, by slug."""
    newest: dict[str, str] = {}
    for meta in keys(store, SOURCES):
        folder, _, _ = meta["path"].rpartition("/")
        newest[folder] = max(newest.get(folder, ""), meta["path"])
    return [_from_json(key, read(store, key)) for _, key in sorted(newest.items())]


def find(store: Store, slug_or_id: str) -> Source:
    """The source with this slug or else this id.

    Raises InputError SOURCE_NOT_FOUND.
    """
    if _SLUG.fullmatch(slug_or_id):
        source = _latest(store, slug_or_id)
        if source is not None:
            return source
    known = all_sources(store)
    for source in known:
        if source.id == slug_or_id:
            return source
    slugs = [source.slug for source in known]
    near = difflib.get_close_matches(slug_or_id, slugs, n=1)
    if near:
        hint = f"did you mean `{near[0]}`?"
    elif slugs:
        hint = "`eventlake source list` shows all"
    else:
        hint = f"`eventlake source add {slug_or_id}` connects it"
    raise InputError("SOURCE_NOT_FOUND", "there is no such source in this lake", hint, slug_or_id)


def database_of(source: Source) -> str:
    """The name of a source's database: its slug, as catalogs spell names."""
    return source.slug.replace("-", "_")


def set_enabled(store: Store, slug: str, *, enabled: bool) -> Source:
    """Lets a source take events, or not."""
    return _change(store, slug, lambda source: replace(source, enabled=enabled))


def rotate_key(store: Store, slug: str) -> tuple[Source, str]:
    """Gives a source a new write key and returns it; the old one is void at once."""
    write_key = _new_write_key()
    hashed = _hash(write_key)
    return _change(store, slug, lambda source: replace(source, key_hash=hashed)), write_key


def copy_settings(store: Store, origin: str, target: str) -> Source:
    """Gives `target` the settings of `origin`, on or off included; name, id and key stay."""
    source = find(store, origin)
    return _change(
        store, target, lambda old: replace(old, settings=source.settings, enabled=source.enabled)
    )


def key_matches(source: Source, write_key: str) -> bool:
    """Whether this is the source's write key, in constant time."""
    return hmac.compare_digest(source.key_hash, _hash(write_key))


def _change(store: Store, slug: str, change: Callable[[Source], Source]) -> Source:
    for _ in range(_ROUNDS):
        old = find(store, slug)
        new = replace(change(old), version=old.version)
        if new == old:
            return old
        new = replace(new, version=old.version + 1)
        if create(store, source_key(old.slug, new.version), _to_json(new)):
            return new
    raise StateError(
        "CORRUPT_RECORD",
        f"the source changed {_ROUNDS} times while it was being changed",
        "run the same command again",
        slug,
    )


def _latest(store: Store, slug: str) -> Source | None:
    newest = max((meta["path"] for meta in keys(store, source_folder(slug))), default=None)
    return None if newest is None else _from_json(newest, read(store, newest))


def _claim(store: Store, source_id: str, slug: str) -> None:
    key = source_id_key(source_id)
    mine = json.dumps({"slug": slug}).encode()
    if create(store, key, mine):
        return
    other = _claimed_by(key, read(store, key))
    holder = _latest(store, other)
    if holder is not None and holder.id != source_id:
        # The other call lost its slug after this claim; a source never changes its id.
        remove(store, [key])
        if create(store, key, mine):
            return
    hint = "choose another id"
    if holder is None:
        hint += f", or finish what was cut off: `eventlake source add {other} --id {source_id}`"
    raise InputError("SOURCE_EXISTS", f"the id belongs to the source `{other}`", hint, source_id)


def _claimed_by(key: str, content: bytes) -> str:
    try:
        return str(json.loads(content)["slug"])
    except (ValueError, KeyError, TypeError) as error:
        raise _corrupt(key, error) from error


def _check(slug: str, source_id: str, name: str) -> None:
    if not _SLUG.fullmatch(slug):
        raise InputError(
            "INVALID_SOURCE",
            "the slug is not usable",
            "use lower-case letters, digits, `_` and `-`, at most 63, a letter or digit first",
            slug,
        )
    if not _ID.fullmatch(source_id) or source_id.lower() in _RESERVED_IDS:
        raise InputError(
            "INVALID_SOURCE",
            "the id is not usable",
            "use letters, digits, `_` and `-`, at most 63, a letter or digit first"
            + (f"; not {', '.join(sorted(_RESERVED_IDS))}"),
            source_id,
        )
    if not name.strip() or not name.isprintable() or len(name) > 200:
        raise InputError(
            "INVALID_SOURCE", "the name is not usable", "use 1 to 200 printable characters", slug
        )


def _taken(slug: str, message: str) -> InputError:
    return InputError("SOURCE_EXISTS", message, "`eventlake source list` shows all", slug)


def _new_write_key() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_WRITE_KEY_LENGTH))


def _hash(write_key: str) -> str:
    # 190 random bits cannot be guessed, so no slow or salted hash is needed.
    return "sha256:" + hashlib.sha256(write_key.encode()).hexdigest()


def _to_json(source: Source) -> bytes:
    record = asdict(source) | {"created_at": source.created_at.isoformat()}
    return json.dumps(record, ensure_ascii=False, indent=1).encode()


def _from_json(key: str, content: bytes) -> Source:
    try:
        record = json.loads(content)
        record["created_at"] = datetime.fromisoformat(record["created_at"])
        return Source(**record)
    except (ValueError, KeyError, TypeError) as error:
        raise _corrupt(key, error) from error


def _corrupt(key: str, error: Exception) -> StateError:
    return StateError(
        "CORRUPT_RECORD",
        f"the record of a source cannot be understood: {error}",
        "restore the object from a backup or another version of it",
        key,
    )
