"""Whether a sync would find anything to do, told from listings alone.

Without Arrow, Spark or a plan.
"""

from __future__ import annotations

from eventlake.ledger import log
from eventlake.stage import inbox
from eventlake.stage.keys import damage_folder
from eventlake.store import Store, keys


def anything_to_do(store: Store, source_id: str) -> bool:
    """False only when a sync of the source would read nothing and has nothing to finish."""
    ledger = log.load(store, source_id)
    if ledger.prepared or ledger.state.owed or ledger.state.unmoved:
        return True
    consumed = ledger.state.consumed
    for staged in inbox.staged(store, source_id):
        done = consumed.get(staged.key)
        if done is None or (done.size, done.e_tag) != (staged.size, staged.e_tag or ""):
            return True
    return any(meta["path"] not in consumed for meta in keys(store, damage_folder(source_id)))
