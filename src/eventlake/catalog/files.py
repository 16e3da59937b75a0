"""The lake's store as a file system that Arrow reads Parquet from. Read only."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from eventlake.store import Store, guarded


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


class _Handler(fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    def __init__(self, store: Store) -> None:
        self.store = store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handler) and other.store is self.store

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return id(self.store)

    def get_type_name(self) -> str:
        return "eventlake"

    def normalize_path(self, path: str) -> str:
        return path

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_ObjectFile(self.store, path), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        return [fs.FileInfo(path, fs.FileType.File) for path in paths]

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("the lake is read only here")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = (
        delete_root_dir_contents
    ) = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse


def file_system(store: Store) -> fs.FileSystem:
    """The store as a pyarrow file system: Arrow's own where the lake is a folder.

    `Scanner.to_reader`, which DuckDB calls, keeps Python's lock while Arrow's threads open files;
    where that needs Python both wait for each other, now and then, for ever.
    """
    folder = getattr(store, "prefix", None)
    if isinstance(folder, Path):
        return fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    return fs.PyFileSystem(_Handler(store))
