"""The store helpers on every kind of store that runs here, and obstore's errors as ours."""

import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from eventlake import aws, store
from eventlake.errors import SetupError, StateError, TransientError
from eventlake.settings import load
from eventlake.store import Address, Store, open_store
from services import S3


def at(url: str, **options: object) -> Store:
    """The store at a URL, its address having crossed a process boundary."""
    flags = {"lake.url": url} | {f"store.{key}": value for key, value in options.items()}
    address = store.address(load(None, {}, flags, cwd=Path("/")))
    copy: Address = pickle.loads(pickle.dumps(address))
    return open_store(copy)


@pytest.fixture
def s3_options(versitygw: S3) -> dict[str, object]:
    """Options that reach the S3 server, which has the bucket `lake`."""
    (versitygw.folder / "lake").mkdir(exist_ok=True)
    return {
        "endpoint": versitygw.endpoint,
        "access_key_id": versitygw.access_key,
        "secret_access_key": versitygw.secret_key,
        "allow_http": True,
        "retries": 0,
        "timeout_s": 5,
    }


@pytest.fixture(params=["memory", "local", "s3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    if request.param == "memory":
        return MemoryStore()
    if request.param == "local":
        return at(str(tmp_path / "a lake é"))
    return at(f"s3://lake/{tmp_path.name}", **request.getfixturevalue("s3_options"))


def test_create_writes_once_and_knows_its_own_bytes(lake: Store) -> None:
    assert store.create(lake, "a/b", b"one")
    assert store.create(lake, "a/b", b"one")
    assert not store.create(lake, "a/b", b"two")
    assert store.read(lake, "a/b") == b"one"


def test_of_many_creators_at_once_one_wins(lake: Store) -> None:
    start = threading.Barrier(8)
    won: list[bytes] = []

    def one(content: bytes) -> None:
        start.wait()
        if store.create(lake, "contested", content):
            won.append(content)

    threads = [threading.Thread(target=one, args=(b"%d" % n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [store.read(lake, "contested")]


def test_what_is_missing_is_none_or_an_error(lake: Store) -> None:
    assert store.read_or_none(lake, "a/none") is None
    assert not store.exists(lake, "a/none")
    with pytest.raises(StateError) as caught:
        store.read(lake, "a/none")
    assert (caught.value.code, caught.value.on) == ("OBJECT_NOT_FOUND", "a/none")


def test_keys_lists_a_folder_and_not_its_neighbour(lake: Store) -> None:
    for key in ("a/x", "a/b/y", "ab/z", "a/é # %20?"):
        store.create(lake, key, b"1")
    assert {meta["path"] for meta in store.keys(lake, "a")} == {"a/x", "a/b/y", "a/é # %20?"}
    assert list(store.keys(lake, "none")) == []


def test_remove_does_not_mind_what_is_gone(lake: Store) -> None:
    for key in ("a", "b", "c"):
        store.create(lake, key, b"")
    store.remove(lake, ["none", "a", "other", "b"])
    store.remove(lake, [])
    assert [meta["path"] for meta in store.keys(lake, "")] == ["c"]


def test_move_can_be_repeated_after_a_crash_anywhere(lake: Store) -> None:
    store.create(lake, "from", b"data")
    store.move(lake, "from", "to/here")
    store.move(lake, "from", "to/here")
    store.create(lake, "from", b"data")
    store.move(lake, "from", "to/here")
    assert not store.exists(lake, "from")
    assert store.read(lake, "to/here") == b"data"


def test_move_of_nothing_is_a_contradiction(lake: Store) -> None:
    with pytest.raises(StateError) as caught:
        store.move(lake, "from", "to")
    assert caught.value.code == "OBJECT_NOT_FOUND"


CALLS: dict[str, Callable[[Store], object]] = {
    "read": lambda lake: store.read_or_none(lake, "a"),
    "create": lambda lake: store.create(lake, "a", b""),
    "keys": lambda lake: list(store.keys(lake, "a")),
    "remove": lambda lake: store.remove(lake, ["a"]),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("url", "change", "kind", "code"),
    [
        ("s3://none", {}, SetupError, "BUCKET_NOT_FOUND"),
        ("s3://lake", {"secret_access_key": "no"}, SetupError, "INSUFFICIENT_PERMISSIONS"),
        ("s3://lake", {"access_key_id": "no"}, SetupError, "INSUFFICIENT_PERMISSIONS"),
        ("s3://lake", {"allow_http": False}, SetupError, "INVALID_SETTING"),
        ("s3://lake", {"endpoint": "http://127.0.0.1:1"}, TransientError, "STORE_UNAVAILABLE"),
    ],
)
def test_a_bucket_that_cannot_be_used_says_why(
    s3_options: dict[str, object],
    call: str,
    url: str,
    change: dict[str, object],
    kind: type[Exception],
    code: str,
) -> None:
    bucket = at(url, **(s3_options | change))
    with pytest.raises(kind) as caught:
        CALLS[call](bucket)
    assert getattr(caught.value, "code", "") == code
    assert getattr(caught.value, "hint", "")
    assert caught.value.__cause__ is not None


def test_a_file_in_the_way_of_the_lake_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for url in (tmp_path / "file", tmp_path / "file" / "lake"):
        with pytest.raises(SetupError) as caught:
            at(str(url))
        assert caught.value.code == "INVALID_SETTING"


def test_an_unknown_option_is_a_wrong_setting() -> None:
    with pytest.raises(SetupError) as caught:
        at("s3://lake", options={"bucket_colour": "red"})
    assert caught.value.code == "INVALID_SETTING"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_recognised() -> None:
    with pytest.raises(OSError, match="space") as system, Path("/dev/full").open("wb", 0) as full:
        full.write(b"x")
    text = f"Generic LocalFileSystem error: {system.value.strerror} (os error {system.value.errno})"
    assert store.translated(OSError(text), "write", "key").code == "STORE_FULL"


def test_an_address_shows_no_secret() -> None:
    address = Address("s3://lake", (("secret_access_key", "hush"),))
    assert "hush" not in repr(address)
    assert hash(address)


def test_a_wrapper_stands_around_the_store(tmp_path: Path) -> None:
    wrapped = at(str(tmp_path), wrapper="builtins:repr")
    assert repr(wrapped).startswith("'LocalStore")
    with pytest.raises(SetupError, match="wrapper"):
        at(str(tmp_path), wrapper="no_such_module:wrap")


def profile_env(home: Path, config: str, credentials: str) -> dict[str, str]:
    (home / ".aws").mkdir()
    (home / ".aws" / "config").write_text(config)
    (home / ".aws" / "credentials").write_text(credentials)
    return {"HOME": str(home)}


def test_keys_and_region_of_a_profile_are_found(tmp_path: Path) -> None:
    env = profile_env(
        tmp_path,
        "[profile work]\nregion = eu-west-1\n",
        "[work]\naws_access_key_id = A\naws_secret_access_key = S%\n",
    )
    assert aws.access({"aws_profile": "work"}, env).config == {
        "region": "eu-west-1",
        "access_key_id": "A",
        "secret_access_key": "S%",
    }


def test_settings_beat_the_environment_beats_profiles(tmp_path: Path) -> None:
    env = profile_env(tmp_path, "", "[default]\naws_access_key_id=P\naws_secret_access_key=P\n")
    mine = {"access_key_id": "A", "secret_access_key": "S"}
    assert aws.access(mine, env | {"AWS_ACCESS_KEY_ID": "E"}).config == mine
    assert aws.access({}, env | {"AWS_ACCESS_KEY_ID": "E"}).config == {}
    assert aws.access({}, env).config["access_key_id"] == "P"


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"aws_profile": "none"}, "NO_CREDENTIALS"),
        ({"access_key_id": "A"}, "INVALID_SETTING"),
    ],
)
def test_credentials_that_cannot_work_are_refused_at_once(
    tmp_path: Path, wanted: dict[str, str], code: str
) -> None:
    with pytest.raises(SetupError) as caught:
        aws.access(wanted, {"HOME": str(tmp_path)})
    assert caught.value.code == code
