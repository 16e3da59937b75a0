"""Eventlake beside its peers, in one run: CPU of the whole process tree, wall, peak memory, ratios.

`python bench/run.py` measures 400,000 events; `--full` adds growth by events and by tables.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
PER = 100_000
_SUBREAPER = 36


@dataclass(frozen=True)
class Cost:
    """What a command cost, all its processes together."""

    wall: float
    cpu: float
    peak_mb: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--folder", type=Path, help="keep the data here")
    parser.add_argument("--skip", nargs="*", default=[], help="peers not to run")
    parser.add_argument("--full", action="store_true", help="growth by events and by tables, too")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = chosen.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        raw = _events(folder, chosen.events)
        table = _peers(folder, raw, chosen.events, set(chosen.skip))
        _print(table, chosen.events)
        _starts(folder)
        if chosen.full:
            _growth(folder)


def _events(folder: Path, count: int, files: int = 16) -> Path:
    raw = folder / f"raw-{count}"
    if not raw.exists():
        _run([HERE / "events.py", raw, count, files])
    return raw


def _peers(folder: Path, raw: Path, events: int, skip: set[str]) -> dict[str, Cost]:
    table = {"empty Spark job": _empty_job(folder)}
    table["eventlake, cold"] = _eventlake(folder, raw)
    peers = {
        "packets prototype": [HERE / "peer_packets.py", raw, folder / "packets"],
        "DuckDB script": [HERE / "peer_duckdb.py", raw, folder / "duckdb"],
        "plain PySpark": [HERE / "peer_spark.py", raw, folder / "spark"],
        "dlt": [HERE / "peer_dlt.py", raw, folder / "dlt", events],
    }
    for name, command in peers.items():
        if name not in skip:
            table[name] = _metered([sys.executable, *command], folder)
    return table


def _eventlake(folder: Path, raw: Path) -> Cost:
    """A sync of staged events into a new lake, from a cold start."""
    lake = folder / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    _cli(lake, "source", "add", "bench")
    _cli(lake, "send", "--source", "bench", str(raw))
    return _metered([sys.executable, "-m", "eventlake", "--lake", lake, "sync"], folder)


def _empty_job(folder: Path) -> Cost:
    code = (
        "from eventlake.compute.session import launch\n"
        "with launch('local[*]', {}) as pending:\n"
        "    pending.session().range(2).collect()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=_env())  # the archive is made once
    return _metered([sys.executable, "-c", code], folder)


def _starts(folder: Path) -> None:
    """The two that people wait for: a small sync, and one with nothing to do."""
    small = _events(folder, 1000, 1)
    empty, one = _empty_job(folder), _eventlake(folder, small)
    nothing = _metered(
        [sys.executable, "-m", "eventlake", "--lake", folder / "lake", "sync"], folder
    )
    print(f"\n1,000 events, cold    {one.wall:6.2f} s = {one.wall / empty.wall:.2f} × an empty job")
    print(f"nothing new           {nothing.wall:6.2f} s")


def _growth(folder: Path) -> None:
    start = _empty_job(folder)
    print("\nevents      CPU s per 100,000, without JVM start    peak MB")
    for count in (100_000, 400_000, 3_000_000):
        cost = _eventlake(folder, _events(folder, count, max(4, count // 25_000)))
        print(f"{count:>9,}   {(cost.cpu - start.cpu) / count * PER:6.2f}   {cost.peak_mb:>30,}")
    print("\ntables      CPU s per 100,000, without JVM start    peak MB")
    for tables in (10, 1000):
        cost = _eventlake(folder, _tables(folder, tables))
        print(f"{tables:>9,}   {(cost.cpu - start.cpu) / 400_000 * PER:6.2f}   {cost.peak_mb:>30,}")


def _tables(folder: Path, tables: int) -> Path:
    """The workload with its events spread over so many tables."""
    import gzip

    raw, out = _events(folder, 400_000), folder / f"tables-{tables}"
    if out.exists():
        return out
    out.mkdir()
    number = 0
    for file in sorted(raw.glob("*.gz")):
        with gzip.open(file) as lines, gzip.open(out / file.name, "wb", compresslevel=1) as kept:
            for line in lines:
                event = json.loads(line)
                event |= {"type": "track", "event": f"Event {number % tables}"}
                kept.write(json.dumps(event).encode() + b"\n")
                number += 1
    return out


def _print(table: dict[str, Cost], events: int) -> None:
    ours, start = table["eventlake, cold"], table["empty Spark job"]
    net = ours.cpu - start.cpu
    print(
        f"\n{events:,} events, {os.cpu_count()} cores, {platform.machine()}, {platform.system()},"
    )
    print(f"Python {platform.python_version()}\n")
    print("way                  wall s   CPU s   CPU s/100k   peak MB   CPU ÷ ours   wall ÷ ours")
    for name, cost in table.items():
        print(
            f"{name:<20} {cost.wall:6.1f}  {cost.cpu:6.1f}   {cost.cpu / events * PER:10.2f}"
            f"   {cost.peak_mb:7,}   {cost.cpu / net:10.2f}   {cost.wall / ours.wall:11.2f}"
        )
    print(f"\neventlake without JVM start: {net / events * PER:.2f} CPU s per 100,000 events")
    print("(CPU ÷ ours is against that; the peers' own start is in their figures)")


def _cli(lake: Path, *args: str) -> None:
    command = [sys.executable, "-m", "eventlake", "--lake", lake, *args]
    subprocess.run(list(map(str, command)), check=True, env=_env(), stdout=subprocess.DEVNULL)


def _run(command: list[object]) -> None:
    subprocess.run([sys.executable, *map(str, command)], check=True, env=_env())


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": sys.executable}


def _metered(command: list[object], folder: Path) -> Cost:
    """Run a command and wait for all that it leaves behind, so that their CPU time is counted."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        started = time.monotonic()
        log = (folder / "log").open("wb")
        process = subprocess.Popen(list(map(str, command)), env=_env(), stdout=log, stderr=log)
        peak = _Peak(os.getpid())
        _, status = os.waitpid(process.pid, 0)
        wall = time.monotonic() - started
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break
        spent = os.times()
        cpu = spent.children_user + spent.children_system
        os.write(write, json.dumps([wall, cpu, peak.stop(), status]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        wall, cpu, peak_mb, status = json.loads(answer.read())
    os.waitpid(child, 0)
    if status:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{(folder / 'log').read_text()[-3000:]}")
    return Cost(wall, cpu, peak_mb)


class _Peak:
    """The most memory that the descendants of a process held at once; shared pages count once."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._most // 1024

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            self._most = max(self._most, sum(map(_pss_kb, _descendants(self._root))))


def _descendants(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [root]
    while todo:
        todo += (children := parents.get(todo.pop(), []))
        found += children
    return found


def _pss_kb(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


if __name__ == "__main__":
    main()
