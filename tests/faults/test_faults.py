"""Every call to the store fails once: before it is done, after it, or while another sync runs."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eventlake.cli.commands.sync import _exit_code
from eventlake.errors import StateError
from eventlake.ledger import log
from eventlake.store import Store
from eventlake.sync.write import write_unit
from faults.faulty import At, Faulty, Killed, busy, delays, raises, refused, timeout
from faults.lake_of_faults import (
    SYNCS,
    Expected,
    committed,
    event,
    in_memory,
    leftovers,
    listed,
    send,
    settle_down,
)
from lakes import Here, LakeHere, lake_here

MODES: dict[str, tuple[str, Callable[[], BaseException]]] = {
    "before": ("before", busy),
    "answer-lost": ("after", timeout),
    "killed": ("after", Killed),
}


@pytest.fixture(scope="module")
def expected() -> Iterator[Expected]:
    """What a lake without faults holds."""
    with in_memory() as folder:
        yield Expected(folder / "lake")


class Scene:
    """A lake as it stands when sync number `sync` has something to do, as often as it is wanted."""

    def __init__(self, folder: Path, sync: int) -> None:
        self._ready = folder / "ready"
        self._folder = folder
        self._count = 0
        self._sync = sync
        lake = lake_here(self._ready)
        for earlier in range(sync):
            send(lake, earlier)
            settle_down(lake)
        send(lake, sync)
        _, _, store = self.begin()
        LakeHere.sync(self._opened)
        self.calls = len(store.calls)

    def begin(self) -> tuple[Path, LakeHere, Faulty]:
        """A fresh copy, and a lake on it whose store can fail."""
        copy = self._folder / f"copy{self._count}"
        self._count += 1
        shutil.copytree(self._ready, copy)
        stores: list[Faulty] = []

        def wrap(store: Store) -> Any:
            stores.append(Faulty(store))
            return stores[-1]

        lake = lake_here(copy, wrap=wrap)
        lake.at += timedelta(hours=self._sync + 1)
        stores[-1].heal()
        self._opened = lake
        return copy, lake, stores[-1]

    def end(self, copy: Path, expected: Expected) -> None:
        """Send what comes after, sync to the end, and compare."""
        lake = lake_here(copy)
        lake.at += timedelta(hours=self._sync + 2)
        settle_down(lake)
        for later in range(self._sync + 1, len(SYNCS)):
            send(lake, later)
            settle_down(lake)
        expected.check(copy)
        shutil.rmtree(copy)


@pytest.mark.parametrize("sync", range(len(SYNCS)))
@pytest.mark.parametrize("mode", MODES)
def test_every_call_fails_once(mode: str, sync: int, expected: Expected, tmp_path: Path) -> None:
    scene = Scene(tmp_path, sync)
    moment, error = MODES[mode]
    for number in range(scene.calls):
        copy, lake, store = scene.begin()
        setattr(store, moment, At(number, raises(error)))
        try:
            summary = lake.sync()
        except Killed:
            pass
        else:
            assert summary["status"] in ("finished", "partial", "failed")
        where = store.calls[number]
        try:
            scene.end(copy, expected)
        except Exception as failure:
            failure.add_note(f"after {mode} at call {number}: {where}")
            raise


@pytest.mark.parametrize("sync", range(len(SYNCS)))
def test_another_sync_runs_while_a_call_is_slow(
    sync: int, expected: Expected, tmp_path: Path
) -> None:
    """After every call in turn, the sync stalls for as long as another needs to do everything."""
    scene = Scene(tmp_path, sync)
    for number in range(scene.calls):
        copy, lake, store = scene.begin()

        def another(copy: Path = copy) -> None:
            other = lake_here(copy)
            other.at += timedelta(hours=sync + 1, minutes=7)
            settle_down(other)

        store.after = At(number, another)
        summary = lake.sync()
        where = store.calls[number]
        try:
            assert summary["status"] == "finished", summary
            scene.end(copy, expected)
        except Exception as failure:
            failure.add_note(f"stalled after call {number}: {where}")
            raise


def test_a_sync_comes_back_when_others_have_long_gone_on(
    expected: Expected, tmp_path: Path
) -> None:
    """It sleeps anywhere in the first sync; meanwhile others finish that and a second one."""
    scene = Scene(tmp_path, 0)
    for number in range(scene.calls):
        copy, lake, store = scene.begin()

        def others(copy: Path = copy) -> None:
            other = lake_here(copy)
            other.at += timedelta(hours=1, minutes=7)
            settle_down(other)
            send(other, 1)
            settle_down(other)

        store.after = At(number, others)
        summary = lake.sync()
        where = store.calls[number]
        try:
            assert summary["status"] == "finished", summary
            lake = lake_here(copy)
            lake.at += timedelta(hours=3)
            settle_down(lake)
            expected.check(copy)
            shutil.rmtree(copy)
        except Exception as failure:
            failure.add_note(f"slept after call {number}: {where}")
            raise


@pytest.mark.parametrize("many", [2, 3])
def test_syncs_at_once(many: int, expected: Expected, tmp_path: Path) -> None:
    for duel in range(20):
        folder = tmp_path / f"{duel}"
        for sync in range(len(SYNCS)):
            send(lake_here(folder), sync)
            summaries = at_once(
                folder, many, 100 * duel + 10 * sync, timedelta(hours=sync, minutes=duel)
            )
            assert [s["status"] for s in summaries] == ["finished"] * many, summaries
        lake = lake_here(folder)
        lake.at += timedelta(hours=9)
        settle_down(lake)
        expected.check(folder)


def at_once(folder: Path, many: int, seed: int, later: timedelta) -> list[dict[str, Any]]:
    """Several syncs of one source in threads, their stores slow at random."""
    summaries: list[dict[str, Any]] = []
    failures: list[BaseException] = []

    def one(number: int) -> None:
        try:
            lake = lake_here(folder, wrap=lambda store: Faulty(store, delays(seed + number, 0.004)))  # type: ignore[arg-type,return-value]
            lake.at += later + timedelta(milliseconds=number)
            summaries.append(lake.sync())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    return summaries


def test_syncs_at_once_with_the_same_clock(expected: Expected, tmp_path: Path) -> None:
    """Two machines may begin in the same microsecond: runs of one number, nothing in common."""
    for duel in range(5):
        folder = tmp_path / f"{duel}"
        for sync in range(len(SYNCS)):
            send(lake_here(folder), sync)
            barrier = threading.Barrier(2)
            summaries: list[dict[str, Any]] = []

            def one(
                folder: Path = folder, sync: int = sync, barrier: threading.Barrier = barrier
            ) -> None:
                lake = lake_here(folder)
                lake.at += timedelta(hours=sync)
                barrier.wait()
                summaries.append(lake.sync())  # noqa: B023  # joined in this turn of the loop

            threads = [threading.Thread(target=one) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert [s["status"] for s in summaries] == ["finished"] * 2, summaries
        expected.check(folder)


def test_a_table_whose_folder_is_a_file(expected: Expected, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    lake = lake_here(folder)
    table = folder / "segment-data" / "data" / "golden" / "segment_type=event_1"
    table.parent.mkdir(parents=True)
    table.write_text("in the way")
    for sync in range(len(SYNCS)):
        send(lake, sync)
        summary = lake.sync()
        assert summary["status"] == "partial"
        assert _exit_code(summary, 1.0) == 3
        assert [t["table_name"] for t in summary["tables"] if t["error"]] == ["event_1"]
        assert set(lake.tables()) == {row.partition("{")[0] for row in expected.rows} - (
            {"event_1"} if sync else {"event_1", "event_2"}
        )
    again = lake.sync()
    assert again["status"] == "partial", again
    table.unlink()
    assert lake.sync()["status"] == "finished"
    settle_down(lake)
    expected.check(folder)


def test_a_source_whose_only_table_is_refused_goes_on_with_others(
    expected: Expected, tmp_path: Path
) -> None:
    """A table that takes nothing, alone in its sync, must not stop those that come later."""
    folder = tmp_path / "lake"
    lake = lake_here(folder)
    table = folder / "segment-data" / "data" / "golden" / "segment_type=alone"
    table.parent.mkdir(parents=True)
    table.write_text("in the way")
    lake.drop("alone.ndjson", b'{"type":"track","event":"Alone","messageId":"alone"}')
    assert lake.sync()["status"] == "partial"
    assert lake.sync()["status"] == "partial"
    send(lake, 0)
    summary = lake.sync()
    assert summary["status"] == "partial"
    assert summary["events"]["rows"] == 12
    assert {"event_0", "event_1", "page"} <= set(lake.tables())
    table.unlink()
    settle_down(lake)
    assert len(lake.rows("alone")) == 1
    assert leftovers(folder) == []
    assert listed(folder) == committed(lake)


@pytest.mark.parametrize("error", [busy, refused, timeout])
@pytest.mark.parametrize(
    "calls", [("put", "rename"), ("put",), ("rename",), ("rename", "head"), ("get_ranges",)]
)
def test_a_table_that_the_store_refuses(
    calls: tuple[str, ...], error: Callable[[], Exception], expected: Expected, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"

    def refuse(number: int, name: str, key: str) -> None:
        if name in calls and ("/event_1/" in key or "segment_type=event_1/" in key):
            raise error()

    store: list[Faulty] = []

    def wrap(inner: Store) -> Any:
        store.append(Faulty(inner, refuse))
        return store[-1]

    lake = lake_here(folder, wrap=wrap)
    reads_only = calls == ("get_ranges",)
    for sync in range(len(SYNCS)):
        send(lake, sync)
        summary = lake.sync()
        assert summary["status"] == ("finished" if reads_only else "partial"), summary
        if not reads_only:
            assert _exit_code(summary, 1.0) == 3
            assert [t["table_name"] for t in summary["tables"] if t["error"]] == ["event_1"]
            assert "event_1" not in lake.tables()
            assert {"event_0", "page"} <= set(lake.tables())
    store[0].heal()
    summary = lake.sync()
    assert summary["status"] == "finished"
    settle_down(lake)
    expected.check(folder, reports=False)


@pytest.mark.parametrize("error", [ValueError("a bug"), MemoryError(), AssertionError("counts")])
def test_a_unit_whose_write_raises(
    error: Exception, expected: Expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lake"
    lake = lake_here(folder)

    def failing(store: Store, unit: Any, settings: Any) -> Any:
        if unit.table == "event_0":
            raise error
        return write_unit(store, unit, settings)

    with monkeypatch.context() as patch:
        patch.setattr("eventlake.sync.run.write_unit", failing)
        for sync in range(len(SYNCS)):
            send(lake, sync)
            summary = lake.sync()
            assert summary["status"] == "partial"
            assert _exit_code(summary, 1.0) == 3
            assert [t["table_name"] for t in summary["tables"] if t["error"]] == ["event_0"]
            assert "event_0" not in lake.tables()
            assert "page" in lake.tables()
    assert lake.sync()["status"] == "finished"
    settle_down(lake)
    assert leftovers(folder) == []
    assert sum(committed(lake).values()) == sum(expected.rows.values())
    assert listed(folder) == committed(lake)
    ids = [row["message_id"] for table in lake.state.files for row in lake.rows(table)]
    assert len(ids) == len(set(ids))


def test_the_store_is_gone_for_a_while(expected: Expected, tmp_path: Path) -> None:
    """Every call from number N on fails, as when a network is cut; the next sync is well again."""
    scene = Scene(tmp_path, 1)
    for number in range(scene.calls):
        copy, lake, store = scene.begin()

        def gone(at: int, name: str, key: str, number: int = number) -> None:
            if at >= number:
                raise timeout()

        store.before = gone
        assert lake.sync()["status"] in ("failed", "finished"), number
        scene.end(copy, expected)


def test_the_sync_after_a_failed_one_says_what_it_did(tmp_path: Path) -> None:
    """A sync that dies once prepared is finished by the next one, whose summary tells of it."""
    folder = tmp_path / "lake"
    stores: list[Faulty] = []

    def wrap(store: Store) -> Any:
        stores.append(Faulty(store))
        return stores[-1]

    lake = lake_here(folder, wrap=wrap)
    send(lake, 0)

    def dies(number: int, name: str, key: str) -> None:
        if name == "put" and key.endswith(".prepared.json"):
            raise Killed

    stores[0].after = dies
    with pytest.raises(Killed):
        lake.sync(Here(lake.lake.store))
    stores[0].heal()
    summary = lake.sync()
    assert summary["events"]["rows"] == 12
    assert lake.sync()["run_id"] is None


def test_of_two_that_publish_one_entry_the_first_to_commit_is_right(
    expected: Expected, tmp_path: Path
) -> None:
    """One cannot move a table, another moves it meanwhile and commits: nothing has failed."""
    folder = tmp_path / "lake"

    def refuse(number: int, name: str, key: str) -> None:
        if name == "rename" and "segment_type=event_1/" in key:
            raise timeout()
        if name == "put" and key.endswith(".committed.json"):
            other = lake_here(folder)
            other.at += timedelta(minutes=7)
            settle_down(other)

    lake = lake_here(folder, wrap=lambda store: Faulty(store, refuse))  # type: ignore[arg-type,return-value]
    send(lake, 0)
    summary = lake.sync()
    assert summary["status"] == "finished", summary
    assert summary["events"]["rows"] == 12
    lake = lake_here(folder)
    send(lake, 1)
    lake.at += timedelta(hours=1)
    settle_down(lake)
    expected.check(folder)


def test_a_listing_that_is_no_snapshot(tmp_path: Path) -> None:
    """A long listing may show an entry and not the commit before; only a hole that stays is one."""
    lake = lake_here(tmp_path / "lake")
    for sync in range(len(SYNCS)):
        send(lake, sync)
        lake.sync()

    class Torn:
        """Leaves a key out of the first so many listings."""

        def __init__(self, times: int) -> None:
            self.left = times

        def __getattr__(self, name: str) -> Any:
            return getattr(lake.lake.store, name)

        def list(self, prefix: str, **named: Any) -> Any:
            pages = [list(page) for page in lake.lake.store.list(prefix, **named)]
            if prefix.endswith("/ledger/") and self.left:
                self.left -= 1
                pages = [[m for m in page if "1.committed" not in m["path"]] for page in pages]
            return iter(pages)

    torn: Any = Torn(2)
    assert log.load(torn, "golden").state == lake.state
    torn = Torn(99)
    with pytest.raises(StateError, match="the commit is missing"):
        log.load(torn, "golden")


@pytest.mark.parametrize("entries", [15, 16, 17, 33])
def test_checkpoints(entries: int, tmp_path: Path) -> None:
    """The state is the same from a checkpoint, from none, and from one that cannot be read."""
    lake = lake_here(tmp_path / "lake")
    for number in range(entries):
        lake.drop(f"{number}", event(number, "Event 0", 10))
        assert lake.sync()["events"]["rows"] == 1
    state = lake.state
    assert state.number == entries
    for checkpoint in (tmp_path / "lake").rglob("checkpoints/*"):
        checkpoint.write_bytes(b"not one")
    assert lake.state == state
    for checkpoint in (tmp_path / "lake").rglob("checkpoints/*"):
        checkpoint.unlink()
    assert lake.state == state
