"""Kills and races real syncs, and sees that nothing is lost, doubled or visible by half.

`python tests/torture/torture.py --kills 1000 --duels 200 [--lake URL] [--seed N]`, with
PYTHONPATH=src from the root of the project.

Every round sends new events and starts `eventlake sync` on Spark. A kill is a SIGKILL to its
process group at a random moment: anywhere in its run, or shortly after something of it appeared in
the ledger or among the data. A duel is two or three syncs at once. All the while another process
lists the lake and opens every file it finds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.ledger import log
from eventlake.report.rejects import stored_rejects
from eventlake.settings import load
from eventlake.stage import sources
from eventlake.store import Store, address, keys, open_store, read

ROOT = Path(__file__).parents[2]
SOURCE = "torture"
DATA = "segment-data/data"
# Processes of a sync that was killed must be gone after so long.
ORPHANS_S = 30
SYNC_S = 180
EVENTS = 60


def store_of(url: str) -> Store:
    """The lake's store, with what the environment says of S3."""
    return open_store(address(load(None, {}, {"lake.url": url})))


@dataclass
class Torture:
    """A lake, what was sent to it, and the syncs that work on it."""

    url: str
    folder: Path  # for the settings of the syncs
    seed: int = 0
    on_disk: Path | None = (
        None  # where the lake's objects can be seen as files, also those of the S3 server
    )
    say: Callable[[str], None] = lambda text: None
    sent: set[str] = field(default_factory=set)
    bad_lines: int = 0
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    killed: Counter[str] = field(default_factory=Counter)
    usual_s: float = 5.0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.store = store_of(self.url)
        sources.add(self.store, "web", datetime.now(UTC), source_id=SOURCE)
        (self.folder / "eventlake.toml").write_text(f'[lake]\nurl = "{self.url}"\n')

    def send(self) -> None:
        """Stage new events, some that were sent before, and some lines that are none."""
        lines = []
        old = sorted(self.sent)
        for _ in range(EVENTS):
            number = len(self.sent)
            hour, minute = divmod(number // 7 % 1440, 60)
            message_id = f"m{number:08}"
            self.sent.add(message_id)
            lines.append(self._event(message_id, number % 5, hour, minute))
        again = self.rng.sample(old, min(len(old), 5))
        lines += [self._event(known, int(known[1:]) % 5, 23, 59) for known in again]
        for _ in range(2):
            lines.append(f'{{"broken": {self.bad_lines}'.encode())
            self.bad_lines += 1
        self.rng.shuffle(lines)
        half = len(lines) // 2
        for part in (lines[:half], lines[half:]):
            self.store.put(
                f"segment-stage/{SOURCE}/{uuid.uuid4().hex}.ndjson", b"\n".join(part) + b"\n"
            )

    def _event(self, message_id: str, name: int, hour: int, minute: int) -> bytes:
        return json.dumps(
            {
                "type": "track",
                "event": f"Event {name}",
                "messageId": message_id,
                "receivedAt": f"2024-05-{1 + name:02}T{hour:02}:{minute:02}:00.000Z",
                "properties": {
                    "number": int(message_id[1:]),
                    f"p{int(message_id[1:]) // 500}": "x",
                },
            }
        ).encode()

    def start(self) -> subprocess.Popen[bytes]:
        """A sync, as a user would start it."""
        env = {
            **os.environ,
            "TORTURE_MARK": self.mark,
            "PYTHONPATH": str(ROOT / "src"),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "eventlake", "sync", "--source", "web", "--json"],
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        """The summary of a sync that nobody has disturbed."""
        out, err = process.communicate(timeout=SYNC_S)
        assert process.returncode == 0, (process.returncode, out.decode(), err.decode())
        summary: dict[str, Any] = json.loads(out)
        assert summary["status"] == "finished", summary
        events = summary["events"]
        assert events["read"] == sum(v for k, v in events.items() if k != "read"), events
        return summary

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for a moment, and end the sync then, if it is not over."""
        moment = self.rng.choice(
            ["time", "time", "prepared", "prepared", "data", "committed", "run"]
        )
        before = self._seen(moment)
        deadline = time.monotonic() + self.rng.uniform(0.2, self.usual_s * 1.05)
        latest = time.monotonic() + 4 * self.usual_s
        while process.poll() is None and time.monotonic() < (
            deadline if moment == "time" else latest
        ):
            if moment != "time" and self._seen(moment) != before:
                time.sleep(self.rng.choice([0, 0.002, 0.01, 0.03, 0.1]) * self.rng.random())
                break
            time.sleep(0.001 if moment != "time" else 0.005)
        self.killed[moment if process.poll() is None else "too late"] += 1
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def _seen(self, moment: str) -> int:
        """How much of a kind there is on the disk."""
        if self.on_disk is None or moment == "time":
            return 0
        own = self.on_disk / "_eventlake" / SOURCE
        if moment in ("prepared", "committed"):
            with contextlib.suppress(FileNotFoundError):
                return sum(f".{moment}." in path.name for path in (own / "ledger").iterdir())
            return 0
        top = own / "runs" if moment == "run" else self.on_disk / DATA
        return sum(len(files) for _, _, files in os.walk(top))

    def kills(self, count: int) -> None:
        """Start so many syncs and kill each."""
        self.send()
        self.finish(self.start())  # the first makes the archive of classes
        self.send()
        began = time.monotonic()
        self.finish(self.start())
        self.usual_s = time.monotonic() - began
        for number in range(count):
            self.send()
            process = self.start()
            self.kill(process)
            if number % 25 == 24:
                self.say(f"{number + 1} kills: {dict(self.killed)}; {len(self.sent):,} events sent")

    def duels(self, count: int) -> None:
        """Start so many times two or three syncs at once; sometimes one of them is killed."""
        for number in range(count):
            self.send()
            processes = []
            for _ in range(self.rng.choice([2, 2, 3])):
                processes.append(self.start())
                time.sleep(self.rng.choice([0, 0, 0.05, 0.3]) * self.rng.random())
            if self.rng.random() < 0.2:
                self.kill(processes.pop())
            for process in processes:
                self.finish(process)
            if number % 25 == 24:
                self.say(f"{number + 1} duels; {len(self.sent):,} events sent")

    def check(self) -> dict[str, int]:
        """Sync to the end and see that everything is there, once."""
        for _ in range(3):
            if self.finish(self.start())["run_id"] is None:
                break
        else:
            raise AssertionError("there is always something left to sync")
        assert no_processes(self.mark), processes(self.mark)
        state = log.load(self.store, SOURCE).state
        known = {file.key: file for files in state.files.values() for file in files}
        found = {meta["path"] for meta in keys(self.store, DATA)}
        assert found == set(known), found ^ set(known)
        ids: Counter[str] = Counter()
        for key, file in known.items():
            rows = pq.read_table(pa.BufferReader(read(self.store, key))).to_pylist()
            assert len(rows) == file.rows
            for row in rows:
                number = int(row["message_id"][1:])
                assert row["properties_number"] == number
                assert row[f"properties_p{number // 500}"] == "x"
                assert file.table == f"event_{number % 5}"
            ids.update(row["message_id"] for row in rows)
        assert [m for m, count in ids.items() if count > 1] == []
        assert set(ids) == self.sent, f"{len(self.sent - set(ids))} lost"
        rejects = Counter(reject["payload"] for reject in stored_rejects(self.store, SOURCE))
        assert rejects == Counter(f'{{"broken": {n}' for n in range(self.bad_lines))
        left = [meta["path"] for meta in keys(self.store, f"_eventlake/{SOURCE}/runs")]
        assert left == []
        assert not state.unmoved
        assert not state.owed
        total: Counter[str] = Counter()
        for meta in keys(self.store, "segment-data/reports"):
            total.update(json.loads(read(self.store, meta["path"]).splitlines()[0])["events"])
        assert total["rows"] == len(ids), total
        assert total["rejected"] == self.bad_lines, total
        assert total["read"] == total["rows"] + total["duplicates"] + total["rejected"], total
        return {
            "entries": state.number,
            "files": len(known),
            "rows": len(ids),
            "rejected": self.bad_lines,
        }

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Another process reads the lake all the while; what it has seen to be wrong fails here."""
        reader = subprocess.Popen(
            [sys.executable, __file__, "--read", self.url],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            yield
        except BaseException:
            reader.kill()
            raise
        finally:
            out, err = reader.communicate(timeout=60)
        assert reader.returncode == 0, (out.decode(), err.decode())
        self.say(f"the reader: {out.decode().strip()}")


def watch(url: str) -> None:
    """List the lake and read what is new until stdin is closed.

    Never half a file, never a row twice, nothing that goes again.
    """
    store = store_of(url)
    where: dict[str, str] = {}
    files: set[str] = set()
    looks, closed = 0, False
    while not closed:
        closed = bool(_ready(0.02))
        # a lake on a disk is looked at as a disk, with whatever else lies there
        local = Path(url)
        if local.is_absolute():
            names = [
                str(path.relative_to(local)) for path in (local / DATA).rglob("*") if path.is_file()
            ]
        else:
            names = [meta["path"] for meta in keys(store, DATA)]
        looks += 1
        for name in sorted(set(names) - files):
            assert name.endswith(".parquet"), name
            for message_id in (
                pq.read_table(pa.BufferReader(read(store, name))).column("message_id").to_pylist()
            ):
                assert where.setdefault(message_id, name) == name, (
                    message_id,
                    where[message_id],
                    name,
                )
            files.add(name)
        assert files <= set(names), files - set(names)
    print(f"{looks:,} looks, {len(files):,} files, {len(where):,} rows")


def _ready(seconds: float) -> list[Any]:
    import select

    return select.select([sys.stdin], [], [], seconds)[0]


def processes(mark: str) -> list[str]:
    """The living processes that come from our syncs."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if (
                entry.name.isdigit()
                and f"TORTURE_MARK={mark}".encode() in (entry / "environ").read_bytes()
            ):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
    return found


def no_processes(mark: str) -> bool:
    """Whether none is left, after some patience."""
    deadline = time.monotonic() + ORPHANS_S
    while processes(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def run(torture: Torture, kills: int, duels: int) -> dict[str, int]:
    """All of it, watched."""
    with torture.watched():
        if kills:
            torture.kills(kills)
        torture.duels(duels)
        return torture.check()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--duels", type=int, default=200)
    parser.add_argument("--lake", default="", help="URL of an empty lake; a new folder by default")
    parser.add_argument(
        "--on-disk", type=Path, help="where the objects of that lake can be seen as files"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--read", metavar="URL", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.read:
        watch(chosen.read)
        return
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        folder = Path(name)
        url = chosen.lake or str(folder / "lake")
        on_disk = chosen.on_disk or (None if chosen.lake else folder / "lake")
        print(f"seed {chosen.seed}, lake {url}", flush=True)
        began = time.monotonic()
        torture = Torture(url, folder, chosen.seed, on_disk, lambda text: print(text, flush=True))
        found = run(torture, chosen.kills, chosen.duels)
        print(
            f"nothing lost, nothing doubled: {found}, killed {dict(torture.killed)}, "
            f"{time.monotonic() - began:.0f} s"
        )


if __name__ == "__main__":
    main()
