"""The registry of sources: unique slugs and ids whoever asks at once, keys shown once."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore

from eventlake import store
from eventlake.errors import Error, InputError, StateError
from eventlake.stage import sources
from eventlake.stage.keys import source_id_key, source_key
from eventlake.store import Store

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Store:
    return LocalStore(tmp_path)


def at_once(count: int, call: Callable[[int], object]) -> tuple[list[object], list[Error]]:
    """Results and errors of `count` threads that start together."""
    start = threading.Barrier(count)
    done: list[object] = []
    failed: list[Error] = []

    def one(number: int) -> None:
        start.wait()
        try:
            done.append(call(number))
        except Error as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done, failed


def test_a_source_gets_an_id_and_a_key_that_is_stored_as_a_hash_only(lake: Store) -> None:
    source, key = sources.add(lake, "web", NOW, name="Web")
    assert (len(source.id), len(key)) == (10, 32)
    assert sources.find(lake, "web") == sources.find(lake, source.id) == source
    assert sources.key_matches(source, key)
    assert not sources.key_matches(source, key[::-1])
    stored = b"".join(store.read(lake, meta["path"]) for meta in store.keys(lake, ""))
    assert key.encode() not in stored
    assert source.key_hash not in repr(source)


@pytest.mark.parametrize(
    "slug", ["", "Web", "we b", "../x", "a/b", "_x", "-x", "a.b", "ü", "x" * 64, "a\n"]
)
def test_an_unusable_slug_is_refused(lake: Store, slug: str) -> None:
    with pytest.raises(InputError) as caught:
        sources.add(lake, slug, NOW)
    assert (caught.value.code, caught.value.on) == ("INVALID_SOURCE", slug)


@pytest.mark.parametrize(
    "source_id", ["", "..", "a/b", "a b", "sources", "Catalog", "x" * 64, "é", "a\n"]
)
def test_an_unusable_id_is_refused(lake: Store, source_id: str) -> None:
    with pytest.raises(InputError) as caught:
        sources.add(lake, "web", NOW, source_id=source_id)
    assert caught.value.code == "INVALID_SOURCE"
    assert list(store.keys(lake, "")) == []


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[2J", "x" * 201])
def test_an_unusable_name_is_refused(lake: Store, name: str) -> None:
    with pytest.raises(InputError):
        sources.add(lake, "web", NOW, name=name)


@pytest.mark.parametrize("make", [LocalStore, lambda _: MemoryStore()], ids=["local", "memory"])
def test_of_many_adds_of_a_slug_at_once_one_wins(
    tmp_path: Path, make: Callable[[Path], Store]
) -> None:
    lake = make(tmp_path)
    done, failed = at_once(8, lambda _: sources.add(lake, "web", NOW))
    assert len(done) == 1
    assert {error.code for error in failed} == {"SOURCE_EXISTS"}
    assert [source.slug for source in sources.all_sources(lake)] == ["web"]
    assert done[0] == (sources.find(lake, "web"), done[0][1])  # type: ignore[index]


def test_of_many_adds_of_an_id_at_once_one_wins(lake: Store) -> None:
    done, failed = at_once(8, lambda n: sources.add(lake, f"web{n}", NOW, source_id="same"))
    assert len(done) == 1
    assert {error.code for error in failed} == {"SOURCE_EXISTS"}
    assert len(sources.all_sources(lake)) == 1


def test_of_many_adds_of_slug_and_id_at_once_one_wins(lake: Store) -> None:
    done, failed = at_once(8, lambda _: sources.add(lake, "web", NOW, source_id="same"))
    assert (len(done), len(failed)) == (1, 7)


def test_an_add_that_was_cut_off_can_be_repeated(lake: Store) -> None:
    store.create(lake, source_id_key("same"), b'{"slug": "web"}')
    with pytest.raises(InputError, match="belongs to") as caught:
        sources.add(lake, "ios", NOW, source_id="same")
    assert "source add web --id same" in caught.value.hint
    source, _ = sources.add(lake, "web", NOW, source_id="same")
    assert source.id == "same"


def test_an_id_whose_add_lost_its_slug_is_free_again(lake: Store) -> None:
    store.create(lake, source_id_key("lost"), b'{"slug": "web"}')
    sources.add(lake, "web", NOW, source_id="won")
    assert sources.add(lake, "ios", NOW, source_id="lost")[0].slug == "ios"
    with pytest.raises(InputError):
        sources.add(lake, "tv", NOW, source_id="won")


def test_changes_are_new_versions_and_the_highest_holds(lake: Store) -> None:
    first, _ = sources.add(lake, "web", NOW)
    assert not sources.set_enabled(lake, "web", enabled=False).enabled
    assert sources.set_enabled(lake, "web", enabled=False).version == 2
    changed, key = sources.rotate_key(lake, first.id)
    assert (changed.version, changed.enabled, changed.id) == (3, False, first.id)
    assert sources.key_matches(sources.find(lake, "web"), key)
    assert sources.all_sources(lake) == [changed]


def test_no_change_is_lost_when_many_come_at_once(lake: Store) -> None:
    sources.add(lake, "web", NOW)
    done, failed = at_once(8, lambda _: sources.rotate_key(lake, "web"))
    assert failed == []
    assert len(done) == 8
    assert sources.find(lake, "web").version == 9


def test_settings_are_checked_and_copied(lake: Store) -> None:
    sources.add(lake, "web", NOW, settings={"sync.dedup_days": "30"})
    ios, key = sources.add(lake, "ios", NOW)
    sources.set_enabled(lake, "web", enabled=False)
    copied = sources.copy_settings(lake, "web", "ios")
    assert (copied.settings, copied.enabled) == ({"sync.dedup_days": 30}, False)
    assert (copied.id, sources.key_matches(copied, key)) == (ios.id, True)
    with pytest.raises(Error, match=r"stage\.keep_days"):
        sources.add(lake, "tv", NOW, settings={"stage.keep_days": "1"})


def test_an_unknown_source_names_the_nearest(lake: Store) -> None:
    for name in ("web", "../web", ""):
        with pytest.raises(InputError) as caught:
            sources.find(lake, name)
        assert caught.value.code == "SOURCE_NOT_FOUND"
    sources.add(lake, "website", NOW)
    with pytest.raises(InputError) as caught:
        sources.find(lake, "webiste")
    assert caught.value.hint == "did you mean `website`?"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", json.dumps({"id": 1}).encode()])
def test_a_record_that_is_no_record_is_reported_not_guessed(lake: Store, content: bytes) -> None:
    store.create(lake, source_key("web", 1), content)
    with pytest.raises(StateError) as caught:
        sources.find(lake, "web")
    assert (caught.value.code, caught.value.on) == ("CORRUPT_RECORD", source_key("web", 1))
