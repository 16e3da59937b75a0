"""The lake's store as a file system that DuckDB reads Parquet from. Read only."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from fsspec import AbstractFileSystem

from eventlake.store import Store, guarded

PROTOCOL = "eventlake"


class _ObjectFile(io.RawIOBase):
    """An object as a seekable file; each read is one ranged request."""

    def __init__(self, store: Store, key: str) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._at = 0
        with guarded("read", key):
            self._size = store.head(key)["size"]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def size(self) -> int:
        return self._size

    def read(self, size: int = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        with guarded("read", self._key):
            data = bytes(self._store.get_range(self._key, start=self._at, end=end))
        self._at = end
        return data


class LakeFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """The objects of a lake, as fsspec names things."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def _open(self, path: str, mode: str = "rb", **_: Any) -> _ObjectFile:
        if mode != "rb":
            raise PermissionError(f"the lake is read only here: {path}")
        return _ObjectFile(self._store, self._strip_protocol(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        key = self._strip_protocol(path)
        with guarded("look up", key):
            meta = self._store.head(key)
        return {
            "name": key,
            "size": meta["size"],
            "type": "file",
            "created": meta["last_modified"],
            "mtime": meta["last_modified"],
        }

    def modified(self, path: str) -> Any:
        return self.info(path)["mtime"]

    def glob(self, path: str, **_: Any) -> list[str]:
        return [self._strip_protocol(path)]  # the ledger names files; none is a pattern


def location(store: Store, key: str) -> str:
    """Where DuckDB finds an object: a path where the lake is a folder, else through `LakeFiles`."""
    folder = getattr(store, "prefix", None)
    return str(folder / key) if isinstance(folder, Path) else f"{PROTOCOL}://{key}"
