"""Files → staged objects: every byte once, whatever is wrong with the input, in bounded memory."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import LocalStore, MemoryStore

from archives import events, gz, zst
from eventlake import store
from eventlake.settings import load
from eventlake.stage import inbox
from eventlake.stage.decode import Damage, chunks
from eventlake.stage.keys import stage_folder
from eventlake.stage.send import Sent, Target, send, stage
from eventlake.store import Store, open_store
from services import S3

DATA = events(2000)


def target(lake: Store, object_bytes: int = 64 << 20, compression: str = "zst") -> Target:
    return Target(lake, "src", object_bytes, compression)


def content(lake: Store, key: str) -> bytes:
    pieces = list(chunks([store.read(lake, key)]))
    assert not any(isinstance(piece, Damage) for piece in pieces)
    return b"".join(piece for piece in pieces if isinstance(piece, bytes))


def staged(lake: Store) -> list[str]:
    return [found.key for found in inbox.staged(lake, "src")]


def send_one(path: Path | str, to: Target) -> Sent:
    (sent,) = send([str(path)], to)
    return sent


@pytest.fixture
def lake() -> Store:
    return MemoryStore()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "events.ndjson"
    path.write_bytes(DATA)
    return path


@pytest.mark.parametrize("compression", ["zst", "gz"])
def test_a_file_is_staged_byte_for_byte(lake: Store, file: Path, compression: str) -> None:
    sent = send_one(file, target(lake, compression=compression))
    assert (sent.status, sent.new_objects, sent.lines, sent.bytes) == ("staged", 1, 2000, len(DATA))
    assert content(lake, sent.objects[0]) == DATA


def test_the_same_content_is_staged_once_however_it_is_wrapped(lake: Store, tmp_path: Path) -> None:
    wrapped = [DATA, gz(DATA), gz(DATA[:99], DATA[99:]), zst(DATA), gzip.compress(DATA, 1)]
    seen = []
    for number, archive in enumerate(wrapped):
        path = tmp_path / f"{number}.json"
        path.write_bytes(archive)
        seen.append(send_one(path, target(lake, 50_000, ("zst", "gz")[number % 2])))
    assert [sent.status for sent in seen] == ["staged"] + ["already staged"] * 4
    assert {sent.objects for sent in seen} == {seen[0].objects}
    assert len(staged(lake)) == len(seen[0].objects) > 1


def test_big_inputs_are_cut_at_line_ends_into_even_objects(lake: Store, file: Path) -> None:
    sent = send_one(file, target(lake, 10_000))
    parts = [content(lake, key) for key in sent.objects]
    assert b"".join(parts) == DATA
    assert all(part.endswith(b"\n") for part in parts)
    assert all(10_000 <= len(part) < 10_200 for part in parts[:-1])


def test_a_file_that_grew_stages_only_its_new_end(lake: Store, file: Path) -> None:
    first = send_one(file, target(lake, 10_000))
    file.write_bytes(DATA + events(10, 2000))
    second = send_one(file, target(lake, 10_000))
    assert second.new_objects == 1
    assert second.objects[:-1] == first.objects[:-1]


@given(
    st.lists(st.binary(max_size=40), max_size=40), st.integers(1, 60), st.lists(st.integers(1, 50))
)
def test_any_bytes_end_up_in_exactly_one_object(
    rows: list[bytes], cut: int, reads: list[int]
) -> None:
    lake = MemoryStore()
    data = b'{"a":1}\n' + b"\n".join(rows)
    sent = stage(_Reads(data, reads), "any", target(lake, cut))
    assert b"".join(content(lake, key) for key in sent.objects) == data
    assert stage(BytesIO(data), "any", target(lake, cut)).objects == sent.objects
    assert sent.lines == data.count(b"\n") + (not data.endswith(b"\n"))


class _Reads(BytesIO):
    """A file that gives as many bytes at a time as it likes."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        super().__init__(data)
        self._sizes = sizes

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._sizes.pop() if self._sizes else size)


@pytest.mark.parametrize(
    "odd",
    [
        b'{"a": \xff}\n',
        b"not json\n",
        b"\n\n  \n",
        b"[1,2]\n",
        b'{"torn": \n',
        b"\x00\x01\x02\n",
        b'{"a":1}',
    ],
)
def test_a_line_that_is_wrong_is_staged_all_the_same(lake: Store, odd: bytes) -> None:
    for data in (events(3) + odd, odd + events(3)):
        sent = stage(BytesIO(data), "odd", target(lake))
        assert sent.error is None
        assert content(lake, sent.objects[0]) == data


@pytest.mark.parametrize(
    ("data", "code", "hint"),
    [
        (b'[{"a":1},{"a":2}]', "INPUT_IS_JSON_ARRAY", "jq -c '.[]'"),
        (b'\xef\xbb\xbf [\n{"a":1},\n{"a":2}\n]\n', "INPUT_IS_JSON_ARRAY", "jq -c '.[]'"),
        (b'[\n{"a":1}\n]\n', "INPUT_IS_JSON_ARRAY", "jq"),
        (b'{\n  "a": 1\n}\n', "INPUT_IS_PRETTY_JSON", "jq -c ."),
        (b'{"a": 1,\n "b": 2}\n', "INPUT_IS_PRETTY_JSON", "jq -c ."),
        (b'{"a": {\n' + b'"b": 1,\n' * 50_000 + b"}}", "INPUT_IS_PRETTY_JSON", "jq -c ."),
        (b'{"a":1}{"a":2}{"a":3}', "INPUT_NOT_NDJSON", "jq -c ."),
        (b"id,name\n1,x\n", "INPUT_NOT_NDJSON", "JSON object"),
        (b"PAR1" + b"\x15\x04" * 9, "INPUT_NOT_NDJSON", "Parquet"),
        (b"PK\x03\x04" + b"x" * 99, "INPUT_NOT_NDJSON", "unpack"),
        (b"BZh91AY", "INPUT_NOT_NDJSON", "bzip2"),
        (b"\xfd7zXZ\x00", "INPUT_NOT_NDJSON", "xz"),
        (b"a.json" + b"\0" * 251 + b"ustar\0" + b"x" * 300, "INPUT_NOT_NDJSON", "unpack"),
        ('{"a":1}\n'.encode("utf-16"), "INPUT_NOT_NDJSON", "iconv"),
    ],
)
def test_what_is_no_ndjson_is_refused_with_the_way_out(
    lake: Store, data: bytes, code: str, hint: str
) -> None:
    for archive in (data, gz(data)):
        sent = stage(BytesIO(archive), "input", target(lake))
        assert sent.error is not None
        assert sent.error.code == code
        assert hint in sent.error.hint
    assert staged(lake) == []


@pytest.mark.parametrize("data", [b"", gz(b""), zst(b"")])
def test_an_empty_file_is_said_to_be_empty(lake: Store, data: bytes) -> None:
    assert stage(BytesIO(data), "empty", target(lake)).status == "empty"
    assert staged(lake) == []


@pytest.mark.parametrize("pack", [gz, zst])
def test_a_truncated_archive_stages_what_is_readable_and_leaves_word(
    lake: Store, tmp_path: Path, pack: type
) -> None:
    rows = b"".join(
        b'{"n":%d,"r":"%s"}\n' % (n, random.Random(n).randbytes(99).hex().encode())
        for n in range(5000)
    )
    path = tmp_path / "logs.gz"
    path.write_bytes(pack(rows)[:-2000])
    sent = send_one(path, target(lake, 200_000))
    assert sent.status == "staged"
    assert sent.damage is not None
    good = b"".join(content(lake, key) for key in sent.objects)
    assert rows.startswith(good)
    assert good.endswith(b"\n")
    (word,) = inbox.damages(lake, "src")
    assert (word.object, word.file) == (sent.objects[-1], str(path))
    assert (word.offset, word.line) == (sent.damage.offset, sent.lines + 1)
    assert rows[len(good) :].startswith(word.fragment.encode())
    again = send_one(path, target(lake, 200_000))
    assert again.status == "already staged"
    assert len(inbox.damages(lake, "src")) == 1


def test_an_archive_damaged_from_the_start_leaves_word_only(lake: Store) -> None:
    sent = stage(BytesIO(gz(DATA)[:12]), "logs.gz", target(lake))
    assert (sent.status, sent.objects) == ("empty", ())
    assert [word.object for word in inbox.damages(lake, "src")] == [None]


def test_garbage_after_an_archive_takes_no_line_with_it(lake: Store) -> None:
    sent = stage(BytesIO(gz(DATA[:-1]) + b"garbage"), "logs.gz", target(lake))
    assert content(lake, sent.objects[0]) == DATA[:-1]
    assert len(inbox.damages(lake, "src")) == 1


def test_folders_are_read_by_name_and_links_back_end(lake: Store, tmp_path: Path) -> None:
    for name in ("b/2.json", "a/1.ndjson.gz", "c.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(events(1, len(name)))
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "README.md").write_text("# no events")
    (tmp_path / "no-suffix").write_bytes(events(1))
    (tmp_path / ".hidden.json").write_bytes(events(1))
    os.mkfifo(tmp_path / "pipe.json")
    outcomes = list(send([str(tmp_path)], target(lake)))
    relative = {Path(sent.file).relative_to(tmp_path).as_posix(): sent.status for sent in outcomes}
    assert relative == {
        ".hidden.json": "skipped",
        "README.md": "skipped",
        "a/1.ndjson.gz": "staged",
        "a/loop": "skipped",
        "b/2.json": "staged",
        "c.jsonl": "staged",
        "no-suffix": "staged",
        "pipe.json": "skipped",
    }
    assert list(relative) == sorted(relative)


def test_a_raw_archive_is_read_without_what_segment_left_there(lake: Store, tmp_path: Path) -> None:
    day = tmp_path / "segment-logs" / "AbC123" / "1441152000000"
    day.mkdir(parents=True)
    (day / "1.gz").write_bytes(gz(DATA))
    (day / "notes.json").write_bytes(events(1))
    (tmp_path / "segment-logs" / "dummy-object.txt").write_text("{}")
    for argument in (tmp_path, tmp_path / "segment-logs", day):
        taken = [s for s in send([str(argument)], target(lake)) if s.status != "skipped"]
        assert [Path(sent.file).name for sent in taken] == ["1.gz"]


def test_one_bad_input_does_not_stop_the_others(lake: Store, tmp_path: Path) -> None:
    (tmp_path / "array.json").write_text("[1]")
    (tmp_path / "good.json").write_bytes(DATA)
    (tmp_path / "gone.json").symlink_to(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    paths = ["array.json", "none.json", "gone.json", "empty", "good.json"]
    outcomes = list(send([str(tmp_path / path) for path in paths], target(lake)))
    assert [sent.error and sent.error.code for sent in outcomes] == [
        "INPUT_IS_JSON_ARRAY",
        "INPUT_NOT_FOUND",
        "INPUT_NOT_FOUND",
        "INPUT_EMPTY",
        None,
    ]
    assert len(staged(lake)) == 1


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file no one can read")
def test_a_file_that_cannot_be_read_is_an_outcome(lake: Store, file: Path) -> None:
    first, second = send(["/proc/self/mem", str(file)], target(lake))
    assert first.error is not None
    assert (first.status, first.error.code) == ("failed", "INPUT_UNREADABLE")
    assert second.status == "staged"


def test_names_of_any_bytes_work_and_can_be_printed(lake: Store, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9\n\x1b[2J.json")
    path.write_bytes(DATA)
    for argument in (str(tmp_path), str(path)):
        sent = send_one(argument, target(lake))
        assert sent.file.endswith("caf\\xe9\\x0a\\x1b[2J.json")
        json.dumps(sent.file).encode()


def test_senders_of_the_same_at_once_stage_it_once(tmp_path: Path, file: Path) -> None:
    lake = LocalStore(tmp_path / "lake", mkdir=True)
    start = threading.Barrier(6)
    outcomes: list[Sent] = []

    def one() -> None:
        start.wait()
        outcomes.append(send_one(file, target(lake, 10_000)))

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    objects = outcomes[0].objects
    assert sum(sent.new_objects for sent in outcomes) == len(objects) == len(staged(lake))
    assert b"".join(content(lake, key) for key in objects) == DATA


SEND = """
import sys, resource
from obstore.store import LocalStore
from eventlake.stage.send import Target, send
lake = LocalStore(sys.argv[1], mkdir=True)
for sent in send([sys.argv[2]], Target(lake, "src", int(sys.argv[3]), "zst")):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(sent.status, len(sent.objects), sent.lines, sent.bytes, peak)
"""


def run_send(lake: Path, path: Path | str, object_bytes: int, **options: object) -> list[str]:
    command = [sys.executable, "-c", SEND, str(lake), str(path), str(object_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)  # type: ignore[call-overload]
    return str(done.stdout).split()


def test_a_send_that_was_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    folder, data = tmp_path / "lake", events(200_000)
    command = [sys.executable, "-c", SEND, str(folder), "-", "500000"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as sender:
        assert sender.stdin is not None
        sender.stdin.write(data[:5_000_000])
        sender.stdin.flush()
        stage_dir = folder / stage_folder("src")
        deadline = time.monotonic() + 20
        while not (stage_dir.exists() and any(stage_dir.iterdir())):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        sender.send_signal(signal.SIGKILL)
    lake = LocalStore(folder)
    before = staged(lake)
    assert before
    path = tmp_path / "all.json"
    path.write_bytes(data)
    sent = send_one(path, target(lake, 500_000))
    assert set(before) < set(sent.objects)
    assert sent.new_objects == len(sent.objects) - len(before)
    assert sorted(staged(lake)) == sorted(sent.objects)
    assert b"".join(content(lake, key) for key in sent.objects) == data


def test_a_line_of_100_mb_and_a_bomb_take_little_memory(tmp_path: Path) -> None:
    small = tmp_path / "small.json"
    small.write_bytes(DATA)
    base = int(run_send(tmp_path / "lake", small, 64 << 20)[-1])
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.write(events(1))
        for _ in range(100):
            file.write(os.urandom(1 << 19).hex().encode())
        file.write(b"\n" + events(1))
    status, _, lines, size, peak = run_send(tmp_path / "lake", large, 8 << 20)
    assert (status, lines, int(size) > 100 << 20) == ("staged", "3", True)
    assert int(peak) - base < 130 << 10
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gz(events(1), *[bytes(50 << 20)] * 4))
    assert int(run_send(tmp_path / "lake", bomb, 8 << 20)[-1]) - base < 130 << 10


def test_objects_too_large_for_one_request_reach_s3_whole(versitygw: S3, tmp_path: Path) -> None:
    flags: dict[str, object] = {
        "lake.url": versitygw.bucket(),
        "store.endpoint": versitygw.endpoint,
        "store.access_key_id": versitygw.access_key,
        "store.secret_access_key": versitygw.secret_key,
        "store.allow_http": True,
    }
    lake = open_store(store.address(load(None, {}, flags, cwd=tmp_path)))
    data = events(1) + random.Random(5).randbytes(40 << 20)
    first = stage(BytesIO(data), "big", target(lake))
    assert stage(BytesIO(data), "big", target(lake)).status == "already staged"
    assert (first.status, content(lake, first.objects[0]) == data) == ("staged", True)
