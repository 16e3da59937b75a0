"""A sync of one source, from its settings.

What the command line, a scheduler or a job on a cluster calls.

Puts the parts together; the flow itself is in `run`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from isal import isal_zlib

from eventlake.catalog.builtin import BuiltinCatalog
from eventlake.errors import Error, SetupError
from eventlake.ledger import log
from eventlake.ledger.state import State
from eventlake.model.layout import PartitionLayout
from eventlake.profiles import PROFILES, Profile
from eventlake.report.reports import write_report
from eventlake.settings import Settings
from eventlake.stage import inbox
from eventlake.stage.keys import damage_folder
from eventlake.stage.sources import Source, database_of
from eventlake.store import Address, Store, keys, read, remove
from eventlake.sync.columns import Guards
from eventlake.sync.outcome import RunSettings
from eventlake.sync.plan import SyncPlan, inputs_of, plan
from eventlake.sync.publish import Target
from eventlake.sync.run import Job, Progress, failed_summary, sync
from eventlake.sync.settle import Limits

# What a read task gathers before it writes: uncompressed, about as much again in memory.
BUNDLE_BYTES = 192 << 20
UNIT_BYTES = 128 << 20
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake that is open: its settings, and what follows from them."""

    settings: Settings
    address: Address
    store: Store
    profile: Profile
    layout: PartitionLayout

    @property
    def marks(self) -> tuple[tuple[str, str], ...]:
        """What a lake that holds data may not change without being rewritten."""
        lake = self.settings.lake
        marks = {"profile": lake.profile, "layout": lake.layout, "track_prefix": lake.track_prefix}
        return tuple(sorted(marks.items()))

    def target(self, source: Source) -> Target:
        """Where a source's tables go."""
        bucket = self.settings.lake.url.partition("://")[2].partition("/")[0]
        return Target(
            self.store,
            BuiltinCatalog(self.store),
            database_of(source),
            bucket,
            self.profile,
            self.layout,
        )


def open_lake(settings: Settings, address: Address, store: Store) -> Lake:
    """The lake that the settings describe. Raises SetupError for a profile that is not there."""
    profile = PROFILES.get(settings.lake.profile)
    if profile is None:
        raise SetupError(
            "INVALID_SETTING",
            f"the profile `{settings.lake.profile}` is not available in this version",
            f"use one of: {', '.join(PROFILES)}",
            "lake.profile",
        )
    profile = replace(profile, track_prefix=settings.lake.track_prefix)
    return Lake(settings, address, store, profile, PartitionLayout(settings.lake.layout))


def state_of(lake: Lake, source: Source) -> State:
    """What is committed of a source."""
    return log.load(lake.store, source.id).state


def plan_source(lake: Lake, source: Source, state: State, cores: int) -> SyncPlan:
    """What a sync of the source would read now.

    Raises SetupError when the lake was written with other settings.
    """
    _unchanged(lake, state)
    staged = [
        (each.key, each.size, each.e_tag or "", int(each.staged_at.timestamp() * 1_000_000))
        for each in inbox.staged(lake.store, source.id)
    ]
    damage = [
        (
            meta["path"],
            meta["size"],
            meta["e_tag"] or "",
            int(meta["last_modified"].timestamp() * 1_000_000),
        )
        for meta in keys(lake.store, damage_folder(source.id))
    ]
    everything = staged + damage
    same = {
        key: isal_zlib.crc32(read(lake.store, key)) == done.check
        for key, size, e_tag, _ in everything
        if (done := state.consumed.get(key)) and done.size == size and done.e_tag != e_tag
    }
    return plan(
        source.id, inputs_of(everything, state, same), cores, lake.settings.sync.task_mb << 20
    )


def _unchanged(lake: Lake, state: State) -> None:
    before, now = dict(state.layout), dict(lake.marks)
    for name, value in before.items():
        if value != now.get(name):
            raise SetupError(
                "LAYOUT_CHANGED",
                f"this lake was written with {name} = {value!r}, "
                f"the settings now say {now.get(name)!r}",
                f"set lake.{name} back, or start a new lake and send the events there",
                f"lake.{name}",
            )


def run_settings(lake: Lake, source: Source, cores: int) -> RunSettings:
    """The settings as a run takes them."""
    chosen = lake.settings.sync
    return RunSettings(
        address=lake.address,
        target=lake.target(source),
        guards=Guards(chosen.max_depth, chosen.max_key_length),
        limits=Limits(chosen.max_tables, chosen.max_columns),
        max_event_bytes=chosen.max_event_kb << 10,
        bundle_bytes=BUNDLE_BYTES,
        unit_bytes=max(UNIT_BYTES, chosen.file_mb << 20),
        compression=chosen.compression,
        dedup_days=chosen.dedup_days,
        cores=cores,
        layout_marks=lake.marks,
    )


def sync_source(
    lake: Lake,
    source: Source,
    job: Job,
    cores: int,
    clock: Callable[[], datetime],
    progress: Progress,
) -> dict[str, Any]:
    """Sync one source and return its summary, also of a sync that failed."""
    started = clock()
    settings = run_settings(lake, source, cores)
    try:
        summary = sync(
            job,
            settings,
            lambda state: plan_source(lake, source, state, cores),
            source.id,
            clock,
            progress,
        )
    except Error as error:
        summary = failed_summary(source.id, error, started, clock(), progress)
        try:
            write_report(lake.store, summary, settings.target.database, settings.target.bucket)
        except Error as second:
            summary["error"] += f"; its report could not be stored either: {second}"
        return {**summary, "hint": error.hint}
    # the sync is committed whatever becomes of this; the next one tries again
    with suppress(Error):
        expire(lake, source, clock())
    return summary


def expire(lake: Lake, source: Source, now: datetime) -> None:
    """Delete staged objects that are synced and older than the settings keep them."""
    days = lake.settings.stage.keep_days
    if not days:
        return
    state = state_of(lake, source)
    owed = {each.key for each in state.owed}
    oldest = now.timestamp() - days * _DAY_S
    remove(
        lake.store,
        [
            each.key
            for each in inbox.staged(lake.store, source.id)
            if each.staged_at.timestamp() < oldest
            and each.key in state.consumed
            and each.key not in owed
        ],
    )
