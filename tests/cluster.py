"""A real Spark standalone cluster of one master and one worker, from PySpark's own wheel."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from eventlake.compute import gateway, java
from services import free_port

START_TIMEOUT_S = 60
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """Runs the cluster; gives its master URL."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    home = gateway.spark_home(os.environ)
    env = os.environ | {
        "JAVA_HOME": str(java.wrapped(java.find("", os.environ), folder / "java")),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        # Otherwise its executors run whatever python3 is first on the path.
        "PYSPARK_PYTHON": sys.executable,
    }
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as running:
        for name, *arguments in (
            (MASTER, *here, "--port", str(port)),
            (WORKER, *here, "--cores", "2", "--memory", "1g", url),
        ):
            log = folder / f"{name.rpartition('.')[2]}.log"
            command = [home / "bin" / "spark-class", name, *arguments]
            running.enter_context(_server(command, env, log))
        _wait_for(folder / "Master.log", "Registering worker")
        yield url


@contextmanager
def _server(command: list[object], env: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen([str(c) for c in command], env=env, stdout=out, stderr=out)
    try:
        yield
    finally:
        # In order, because a worker ends its executors only then.
        process.terminate()
        process.wait(30)


def _wait_for(log: Path, line: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while line not in log.read_text("utf-8", "replace"):
        if time.monotonic() > deadline:
            pytest.fail(f"the cluster did not start: {log.read_text()[-2000:]}", pytrace=False)
        time.sleep(0.05)
