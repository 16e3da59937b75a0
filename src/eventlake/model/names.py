"""Names: how events and JSON paths become the names of tables and columns.

Does not know tables or profiles; only strings.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

# Glue allows 250 characters in a column name and 255 in a table name; a table name also ends up in
# one folder name, `segment_type=<table>`, and file systems stop at 255 bytes for that.
COLUMN_LIMIT = 250
TABLE_LIMIT = 240

_WORD = re.compile(r"[A-Z0-9]+[a-z0-9]*|[a-z0-9]+")
_CLEAN = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*\Z")

Path = tuple[str, ...]


def snake(name: str) -> str:
    """The snake-case rule both Segment products use, ASCII only.

    A word is a run of capitals and digits followed by a run of small letters and digits; all
    else separates words. Names without an ASCII letter or digit come out empty.

    >>> [snake(n) for n in ("productID2Name", "HTTPServer", "p_z9Rg", "something.com", "日本")]
    ['product_id2name', 'httpserver', 'p_z9_rg', 'something_com', '']
    """
    if _CLEAN.match(name):
        return name
    return "_".join(_WORD.findall(name)).lower()


def fingerprint(text: str) -> str:
    """Eight hex digits that stand for `text` where the text itself cannot be part of a name."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def named(original: str) -> str:
    """The snake form of a key or event name, or a stable substitute when nothing is ASCII."""
    return snake(original) or f"x_{fingerprint(original)}"


def fitted(name: str, original: str, limit: int) -> str:
    """`name` cut to `limit`, made distinct by the fingerprint of what it came from."""
    return name if len(name) <= limit else f"{name[: limit - 9]}_{fingerprint(original)}"


def path_text(path: Iterable[str]) -> str:
    r"""A JSON path as people write it; dots and backslashes inside keys are escaped.

    >>> path_text(("properties", "a.b"))
    'properties.a\\.b'
    """
    return ".".join(
        key.replace("\\", "\\\\").replace(".", "\\.") if "." in key or "\\" in key else key
        for key in path
    )


@lru_cache(maxsize=100_000)
def path_keys(text: str) -> Path:
    r"""The keys of a path written by `path_text`.

    >>> path_keys('properties.a\\.b')
    ('properties', 'a.b')
    """
    if "\\" not in text:
        return tuple(text.split("."))
    keys, key, escaped = [], "", False
    for char in text:
        if escaped:
            key, escaped = key + char, False
        elif char == "\\":
            escaped = True
        elif char == ".":
            keys.append(key)
            key = ""
        else:
            key += char
    return (*keys, key)
