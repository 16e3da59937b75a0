"""The index of message ids finds what it holds, by blocks and as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from obstore.store import MemoryStore

from eventlake.ledger.entries import IndexFile
from eventlake.sync.index import BLOCK, HASH, Hashes, index_bytes, known


def hashes(count: int, seed: int) -> Hashes:
    made = np.empty(count, HASH)
    random = np.random.default_rng(seed)
    for half in ("hi", "lo"):
        made[half] = random.integers(0, 2**63, count, dtype=np.uint64)
    return made[np.lexsort((made["lo"].astype(np.uint64), made["hi"].astype(np.uint64)))]


@pytest.mark.parametrize("held", [0, 1, BLOCK, BLOCK + 1, 40 * BLOCK + 7])
@pytest.mark.parametrize("asked", [0, 1, 5, 500])
def test_known_ids_are_found_and_others_are_not(held: int, asked: int) -> None:
    store = MemoryStore()
    have = hashes(held, 1)
    store.put("index", index_bytes(have))
    strangers = hashes(asked, 2)
    some = have[:: max(1, held // max(1, asked))][:asked]
    wanted = np.concatenate([strangers, some])
    wanted = wanted[np.lexsort((wanted["lo"].astype(np.uint64), wanted["hi"].astype(np.uint64)))]
    found = known(store, IndexFile("index", held, 0), wanted)
    assert set(wanted[found].tolist()) == set(some.tolist())


def test_ids_with_equal_first_halves_are_told_apart() -> None:
    store = MemoryStore()
    have = np.array([(7, low) for low in range(0, 3 * BLOCK, 2)], HASH)
    store.put("index", index_bytes(have))
    wanted = np.array([(7, 4), (7, 5), (7, 2 * BLOCK), (8, 4)], HASH)
    assert known(store, IndexFile("index", len(have), 0), wanted).tolist() == [
        True,
        False,
        True,
        False,
    ]
