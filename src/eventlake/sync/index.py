"""The index of message ids: what earlier syncs have taken, as sorted 128-bit hashes in files.

A file holds its hashes sorted, then a fence: the first half of every `BLOCK`th hash. Looking up
a few ids reads the fence and the blocks that can hold them; looking up many reads the file. Does
not know how long ids are remembered.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eventlake.ledger.entries import IndexFile
from eventlake.store import Store, guarded
from eventlake.sync.packets import Ids

HASH = np.dtype([("hi", ">u8"), ("lo", ">u8")])
BLOCK = 1024
Hashes = npt.NDArray[np.void]


def index_bytes(hashes: Hashes) -> bytes:
    """The content of an index file of `hashes`, which are sorted."""
    return hashes.tobytes() + hashes["hi"][::BLOCK].tobytes()


def hashes_of(ids: Ids) -> Hashes:
    """The sorted hashes of id records."""
    hashes = np.empty(len(ids), HASH)
    hashes["hi"], hashes["lo"] = ids["hi"], ids["lo"]
    return hashes[np.lexsort((hashes["lo"].astype(np.uint64), hashes["hi"].astype(np.uint64)))]


def known(store: Store, file: IndexFile, wanted: Hashes) -> npt.NDArray[np.bool_]:
    """Which of the `wanted` hashes, which are sorted, the file holds."""
    blocks = -(-file.rows // BLOCK)
    if not len(wanted) or not file.rows:
        return np.zeros(len(wanted), bool)
    with guarded("read", file.key):
        # a block is 16 KiB; beyond a quarter of the file one large request beats many small ones
        if len(wanted) * 4 > blocks:
            data = bytes(store.get_range(file.key, start=0, end=file.rows * HASH.itemsize))
            return _among(wanted, np.frombuffer(data, HASH))
        fence_at = file.rows * HASH.itemsize
        fence = np.frombuffer(
            bytes(store.get_range(file.key, start=fence_at, end=fence_at + blocks * 8)), ">u8"
        )
        # equal halves may span a block's border: look into both
        first = np.maximum(np.searchsorted(fence, wanted["hi"], "left") - 1, 0)
        last = np.maximum(np.searchsorted(fence, wanted["hi"], "right") - 1, 0)
        needed = np.unique(np.concatenate([first, last]))
        starts = (needed * BLOCK * HASH.itemsize).tolist()
        ends = np.minimum((needed + 1) * BLOCK, file.rows) * HASH.itemsize
        parts = store.get_ranges(file.key, starts=starts, ends=ends.tolist())
    return _among(wanted, np.frombuffer(b"".join(map(bytes, parts)), HASH))


def _among(wanted: Hashes, held: Hashes) -> npt.NDArray[np.bool_]:
    """Which of `wanted` are in `held`; both sorted."""
    high = held["hi"].astype(np.uint64)
    low = held["lo"].astype(np.uint64)
    hi, lo = wanted["hi"].astype(np.uint64), wanted["lo"].astype(np.uint64)
    start, end = np.searchsorted(high, hi, "left"), np.searchsorted(high, hi, "right")
    found = np.zeros(len(wanted), bool)
    # 64 equal bits of two different ids are rare beyond measure, so this loop ends after one round
    while (open_ := start < end).any():
        at = np.minimum(start, len(held) - 1)
        found |= open_ & (low[at] == lo)
        start = start + 1
    return found
