"""The lake's object store: a picklable address, obstore's own store, and its errors as ours.

No wrapper class: callers use obstore's methods; the functions here add only what obstore lacks
(create-only with a lost answer, idempotent removal and moves) and the table of errors.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote, urlsplit

from obstore.exceptions import AlreadyExistsError
from obstore.store import AzureStore, GCSStore, LocalStore, ObjectStoreMethods, S3Store

from eventlake import aws
from eventlake.errors import SetupError, StateError
from eventlake.settings_tree import Settings
from eventlake.store_errors import guarded, is_missing, translated

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, RetryConfig

__all__ = [
    "Address",
    "Store",
    "address",
    "create",
    "exists",
    "guarded",
    "is_missing",
    "keys",
    "move",
    "open_store",
    "read",
    "read_or_none",
    "remove",
    "remove_folder",
    "translated",
]

Store: TypeAlias = ObjectStoreMethods

# One request of a listing returns at most this many keys on every cloud.
_PAGE = 1000


@dataclass(frozen=True)
class Address:
    """Where a lake is and how to open it; small and picklable, so Spark workers open their own.

    `options` hold credentials and therefore stay out of the repr.
    """

    url: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    wrapper: str | None = None


def address(settings: Settings) -> Address:
    """The address of the lake that the settings name."""
    store = settings.store
    named = {
        "eventlake.endpoint": store.endpoint,
        "eventlake.region": store.region,
        "eventlake.aws_profile": store.aws_profile,
        "eventlake.role_arn": store.role_arn,
        "eventlake.access_key_id": store.access_key_id,
        "eventlake.secret_access_key": store.secret_access_key.reveal(),
        "eventlake.session_token": store.session_token.reveal(),
        "eventlake.allow_http": "true" if store.allow_http else "",
        "eventlake.timeout_s": str(store.timeout_s),
        "eventlake.retries": str(store.retries),
    }
    options = {key: value for key, value in named.items() if value} | dict(store.options)
    return Address(settings.lake.url, tuple(sorted(options.items())), store.wrapper or None)


def open_store(address: Address) -> Store:
    """The obstore store for the address, rooted at the lake's prefix.

    Nothing is sent over the network yet; a folder is made for a local lake.
    Raises SetupError INVALID_SETTING, NO_CREDENTIALS, MISSING_DEPENDENCY, INSUFFICIENT_PERMISSIONS.
    """
    store = _bare_store(address)
    if address.wrapper is None:
        return store
    module, _, function = address.wrapper.partition(":")
    try:
        wrap = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise SetupError(
            "INVALID_SETTING",
            f"cannot load the store wrapper: {error}",
            "correct `store.wrapper` or remove it",
            address.wrapper,
        ) from error
    wrapped: Store = wrap(store)
    return wrapped


def create(store: Store, key: str, data: bytes) -> bool:
    """Whether `key` now holds `data`: False when another content was there first.

    An attempt of ours whose answer was lost and that is tried again finds its own bytes: True.
    """
    with guarded("write", key):
        try:
            store.put(key, data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return bytes(store.get(key).bytes()) == data
    return True


def read(store: Store, key: str) -> bytes:
    """The object's bytes.

    Raises StateError OBJECT_NOT_FOUND.
    """
    with guarded("read", key):
        return bytes(store.get(key).bytes())


def read_or_none(store: Store, key: str) -> bytes | None:
    """The object's bytes, or None when there is no such object (a missing bucket is an error)."""
    with guarded("read", key):
        try:
            return bytes(store.get(key).bytes())
        except FileNotFoundError as error:
            if is_missing(error):
                return None
            raise


def keys(store: Store, prefix: str) -> Iterator[ObjectMeta]:
    """Every object below the folder `prefix`, in no particular order."""
    with guarded("list", prefix):
        for page in store.list(prefix, chunk_size=_PAGE):
            yield from page


def exists(store: Store, key: str) -> bool:
    """Whether the object is there."""
    return _size(store, key) is not None


def remove(store: Store, keys: Sequence[str]) -> None:
    """Deletes the objects; those that are gone already are no error."""
    if not keys:
        return
    with guarded("delete", keys[0]):
        try:
            store.delete(list(keys))
        except FileNotFoundError as error:
            if not is_missing(error):
                raise
            # Local, Azure and Google stores stop at the first missing object.
            for key in keys:
                _remove_one(store, key)


def remove_folder(store: Store, folder: str) -> None:
    """Removes what a store on a disk keeps of a folder without objects.

    Empty folders, halves of writes that were killed.

    Elsewhere a folder is gone with its last object.
    """
    root = getattr(store, "prefix", None)
    if isinstance(root, Path):
        shutil.rmtree(root / folder, ignore_errors=True)


def move(store: Store, src: str, dst: str) -> None:
    """Puts the object at `dst` and takes it from `src`; safe to repeat after a crash anywhere.

    Names carry the run that made them, so an object of equal size at `dst` is the same one.
    Raises StateError OBJECT_NOT_FOUND when it is in neither place.
    """
    there = _size(store, dst)
    if there is not None and _size(store, src) in (there, None):
        remove(store, [src])
        return
    with guarded("move", src):
        try:
            store.rename(src, dst)
        except FileNotFoundError as error:
            if not is_missing(error):
                raise
            if _size(store, dst) is None:
                raise StateError(
                    "OBJECT_NOT_FOUND",
                    f"cannot move to {dst}: the object is in neither place",
                    "do not delete below `_eventlake/`; run `eventlake doctor`",
                    src,
                ) from error


def _size(store: Store, key: str) -> int | None:
    with guarded("look up", key):
        try:
            return store.head(key)["size"]
        except FileNotFoundError as error:
            if is_missing(error):
                return None
            raise


def _remove_one(store: Store, key: str) -> None:
    try:
        store.delete(key)
    except FileNotFoundError as error:
        if not is_missing(error):
            raise


def _bare_store(address: Address) -> Store:
    options = dict(address.options)
    ours = {
        k.partition(".")[2]: options.pop(k) for k in list(options) if k.startswith("eventlake.")
    }
    with guarded("open", address.url):
        scheme, colon, _ = address.url.partition(":")
        if not colon or "/" in scheme:
            return LocalStore(address.url, mkdir=True)
        if scheme == "file":
            return LocalStore(unquote(urlsplit(address.url).path), mkdir=True)
        client: ClientConfig = {
            "timeout": timedelta(seconds=float(ours.get("timeout_s", "60"))),
            "user_agent": "eventlake",
        }
        # Options given here replace those that the S3 client would take from the environment.
        if "true" in (ours.get("allow_http"), os.environ.get("AWS_ALLOW_HTTP", "").lower()):
            client["allow_http"] = True
        retry: RetryConfig = {"max_retries": int(ours.get("retries", "5"))}
        match scheme:
            case "s3" | "s3a":
                return _s3(address.url, ours, options, client, retry)
            case "abfss" | "abfs" | "az":
                return AzureStore.from_url(
                    address.url,
                    config=_with(options, "endpoint", ours),  # type: ignore[arg-type]  # free options of the user
                    client_options=client,
                    retry_config=retry,
                )
            case "gs":
                return GCSStore.from_url(
                    address.url,
                    config=_with(options, "base_url", ours),  # type: ignore[arg-type]  # free options of the user
                    client_options=client,
                    retry_config=retry,
                )
    raise SetupError(
        "INVALID_SETTING",
        "no store is known for this scheme",
        "use a path, file:, s3://, abfss:// or gs:// in `lake.url`",
        address.url,
    )


def _with(options: dict[str, str], name: str, ours: dict[str, str]) -> dict[str, str]:
    """The options with `store.endpoint` under the name the cloud's client has for it."""
    return {name: ours["endpoint"], **options} if "endpoint" in ours else options


def _s3(
    url: str,
    ours: dict[str, str],
    options: dict[str, str],
    client: ClientConfig,
    retry: RetryConfig,
) -> Store:
    access = aws.access(ours)
    split = urlsplit(url)
    return S3Store(
        split.netloc,
        prefix=split.path.strip("/") or None,
        config={**access.config, **options},  # type: ignore[arg-type]  # free options
        client_options=client,
        retry_config=retry,
        credential_provider=access.provider,
    )
