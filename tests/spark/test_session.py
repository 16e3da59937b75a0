"""Real JVMs: each test starts one, and looks at what is left of it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlake.compute import archive, java, session
from services import ROOT

# Prints where it is, then waits in a task, as a sync does that is killed at work.
DRIVER = """
import signal, sys, time
from eventlake.compute.session import launch

seconds = float(sys.argv[1])

def slow(batches):
    time.sleep(seconds)
    yield from batches

# A shell without job control starts its children deaf to Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
with launch(sys.argv[2], {}) as pending:
    spark = pending.session()
    print(pending._driver.folder.path, flush=True)
    print(spark.range(0, 2, 1, 2).mapInArrow(slow, "id long").count())
"""
# Ten times what it takes, because tests share the machine.
GONE_TIMEOUT_S = 120


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of a run with its own folder for temporary files."""
    (tmp_path / "tmp").mkdir()
    return os.environ | {"TMPDIR": str(tmp_path / "tmp")}


def start(env: dict[str, str], seconds: float, master: str = "local[2]") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(seconds), master],
        env=env | {"PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def started(driver: subprocess.Popen[str]) -> str:
    """The folder of a run whose session is up."""
    assert driver.stdout is not None
    return driver.stdout.readline().strip()


def processes_of(folder: str) -> list[str]:
    """Command lines that name a run's folder, or whose environment does: its JVM and workers."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            if folder.encode() in command + (process / "environ").read_bytes():
                found.append(command.replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def wait_until_gone(folder: str) -> list[str]:
    deadline = time.monotonic() + GONE_TIMEOUT_S
    while (left := processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def test_a_run_leaves_no_process_and_no_file(env: dict[str, str]) -> None:
    driver = start(env, 0)
    folder = started(driver)
    out, err = driver.communicate(timeout=300)
    assert err == ""
    assert (driver.returncode, out) == (0, "2\n")
    assert processes_of(folder) == []
    assert list(Path(env["TMPDIR"]).iterdir()) == []


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_jvm_and_workers_die_with_the_driver(env: dict[str, str], name: str) -> None:
    driver = start(env, 600)
    folder = started(driver)
    while len(processes_of(folder)) < 5:
        # The JVM, what Spark started, what is warm, its daemon and at least one worker.
        time.sleep(0.05)
    driver.send_signal(signal.Signals[name])
    _, err = driver.communicate(timeout=300)
    assert driver.returncode != 0
    assert wait_until_gone(folder) == []
    if name == "SIGINT":
        assert err.strip().splitlines()[-1].startswith("KeyboardInterrupt")
        assert "py4j" not in err.split("KeyboardInterrupt")[-1]


def test_the_next_run_sweeps_what_a_killed_one_left(env: dict[str, str]) -> None:
    driver = start(env, 600)
    folder = started(driver)
    driver.kill()
    driver.communicate()
    assert wait_until_gone(folder) == []
    following = start(env, 0)
    following.communicate(timeout=300)
    assert list(Path(env["TMPDIR"]).iterdir()) == []


def test_two_first_runs_at_once_make_one_archive_and_both_work(
    env: dict[str, str], tmp_path: Path
) -> None:
    env["EVENTLAKE_CACHE_DIR"] = str(tmp_path / "cache")
    drivers = [start(env, 0), start(env, 0)]
    assert [d.communicate(timeout=300)[0].splitlines()[-1] for d in drivers] == ["2", "2"]
    (archive,) = (tmp_path / "cache").glob("*.jsa")
    assert not list((tmp_path / "cache").glob("*.partial"))
    # A stale or damaged one is passed over by the JVM.
    archive.write_bytes(b"damaged" * 1000)
    out, err = start(env, 0).communicate(timeout=300)
    assert (out.splitlines()[-1], err) == ("2", "")


def test_a_killed_first_run_leaves_no_half_archive_in_use(
    env: dict[str, str], tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    driver = start(env | {"EVENTLAKE_CACHE_DIR": str(cache)}, 600)
    folder = started(driver)
    driver.kill()
    driver.communicate()
    assert wait_until_gone(folder) == []
    assert not list(cache.glob("*.jsa"))
    (lock,) = cache.glob("*.lock")
    found = java.find("", os.environ)
    deadline = time.monotonic() + GONE_TIMEOUT_S
    # A process gives up its locks a little after it has left the list of processes.
    while not (following := archive.choose(cache, lock.stem.removeprefix("spark-"), found)).writes:
        assert time.monotonic() < deadline
    following.release()
    assert not list(cache.glob("*.partial"))


def test_a_cluster_runs_the_same_job_and_is_left_in_order(
    env: dict[str, str], spark_cluster: str
) -> None:
    driver = start(env, 0, spark_cluster)
    out, err = driver.communicate(timeout=300)
    assert err == ""
    assert out.splitlines()[-1] == "2"
    assert list(Path(env["TMPDIR"]).iterdir()) == []


def test_what_java_says_is_in_the_error() -> None:
    script = """
from eventlake.compute.session import launch
from eventlake.errors import SetupError
with launch("local[1]", {"spark.driver.extraJavaOptions": "-Xss1"}) as pending:
    try:
        pending.session()
    except SetupError as error:
        print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300
    )
    assert run.stdout.startswith("SPARK_START: ")
    assert "stack size" in run.stdout


def test_a_session_that_is_there_is_used_and_not_stopped(spark: object) -> None:
    with session.launch("local[7]", {}) as pending:
        assert pending.session() is spark
    assert spark.range(3).count() == 3  # type: ignore[attr-defined]


def test_workers_are_forked_from_the_warm_process(spark: object) -> None:
    def modules(batches: Iterator[object]) -> Iterator[object]:
        import sys

        import pyarrow as pa

        before = ",".join(name for name in ("pandas", "obstore", "orjson") if name in sys.modules)
        for _ in batches:
            yield pa.record_batch([pa.array([before])], ["seen"])

    frame = spark.range(0, 1, 1, 1).mapInArrow(modules, "seen string")  # type: ignore[attr-defined]
    assert frame.collect()[0]["seen"] == "pandas,obstore,orjson"


def test_cores_follow_the_affinity_and_the_quota_of_a_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr(session, "CGROUP_QUOTA", quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert session.cores("local[*]") == 4
    quota.write_text("200000 100000\n")
    assert session.cores("local[*]") == 2
    quota.write_text("max 100000\n")
    assert session.cores("local[*]") == 4
