"""Dedupe: which rows of a sync are duplicates.

First received wins; what an earlier sync took always wins.

Works on hashes of message ids only, one range of hashes at a time, so that the ranges can be
spread over tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from eventlake.ledger.entries import IndexFile
from eventlake.store import Store, guarded
from eventlake.sync.index import Hashes, hashes_of, known
from eventlake.sync.packets import BUCKETS, ID_RECORD, Bundle, Ids

Rows = npt.NDArray[np.int64]


def load_ids(store: Store, bundle: Bundle, first: int = 0, last: int = BUCKETS) -> Ids:
    """The id records of a bundle in the buckets from `first` to before `last`."""
    start, end = bundle.bounds[first], bundle.bounds[last]
    if start == end:
        return np.empty(0, ID_RECORD)
    size = ID_RECORD.itemsize
    with guarded("read", bundle.ids_key):
        data = bytes(store.get_range(bundle.ids_key, start=start * size, end=end * size))
    return np.frombuffer(data, ID_RECORD)


def duplicates(
    store: Store,
    bundles: Sequence[Bundle],
    index: Sequence[IndexFile],
    first: int = 0,
    last: int = BUCKETS,
) -> dict[int, Rows]:
    """For each bundle, by its place, the rows that are duplicates among these buckets."""
    loaded = [load_ids(store, bundle, first, last) for bundle in bundles]
    ids = np.concatenate([*loaded, np.empty(0, ID_RECORD)])
    owner = np.repeat(np.arange(len(loaded)), [len(part) for part in loaded])
    winner = _winners(ids, owner)
    taken = np.zeros(len(ids), bool)
    if index and len(ids):
        hashes = hashes_of(ids[winner])
        seen = np.zeros(len(hashes), bool)
        for file in index:
            seen |= known(store, file, hashes)
        taken = np.isin(_joined(ids), _joined(hashes[seen])) if seen.any() else taken
    lost = ~winner | taken
    return {
        place: ids["row"][lost & (owner == place)].astype(np.int64)
        for place in np.unique(owner[lost]).tolist()
    }


def _winners(ids: Ids, owner: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """The first received of each message id.

    Of those received at once, whichever by content, not by place.
    """
    keys = [ids[name].astype(np.uint64) for name in ("hi", "lo")]
    order = np.lexsort((ids["row"], owner, ids["check"], ids["received"], keys[1], keys[0]))
    same = np.ones(len(ids), bool)
    if len(ids):
        same[0] = False
        for key in keys:
            ordered = key[order]
            same[1:] &= ordered[1:] == ordered[:-1]
    winner = np.empty(len(ids), bool)
    winner[order] = ~same
    return winner


def _joined(records: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    joined = np.empty((len(records), 2), ">u8")
    joined[:, 0], joined[:, 1] = records["hi"], records["lo"]
    return joined.view("V16").ravel()


def taken_hashes(
    store: Store,
    bundles: Sequence[Bundle],
    left_out: Mapping[int, Rows],
    first: int = 0,
    last: int = BUCKETS,
) -> Hashes:
    """The sorted hashes of all rows of the bundles but those in `left_out`."""
    kept = []
    for place, bundle in enumerate(bundles):
        ids = load_ids(store, bundle, first, last)
        drop = np.zeros(bundle.rows, bool)
        drop[left_out.get(place, np.empty(0, np.int64))] = True
        kept.append(ids[~drop[ids["row"]]])
    return hashes_of(np.concatenate([*kept, np.empty(0, ID_RECORD)]))
