"""A Spark session for one command: started in the background, stopped for certain.

`launch` returns at once, so that the caller lists and plans while Java starts. A session that is
there already (a notebook, spark-submit, a Databricks job) is used as it is and never stopped.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from eventlake.compute import bridge, gateway, java, warm
from eventlake.compute import conf as settings
from eventlake.compute.runfolder import RunFolder
from eventlake.errors import Error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The folder that holds our package: what a worker needs on its path.
PACKAGE = Path(__file__).parents[2]
# Linux takes 107 bytes for a socket's path, macOS 103.
SOCKET_PATH_BYTES = 103
# What starting a session and its first job import: 0.5 s, spent while the JVM boots.
DRIVER_MODULES = (
    *("pyspark.sql", "pyspark.core.context", "pyspark.sql.classic.dataframe"),
    *("pandas", "pyspark.sql.pandas.map_ops", "pyspark.sql.pandas.types"),
)
CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class Pending(Protocol):
    """A session on its way. Closing ends what was started for it, and nothing else."""

    def session(self) -> SparkSession:
        """Waits for the session.

        Raises:
            SetupError: SPARK_START, with what Spark said.
        """

    def close(self, *, orderly: bool = False) -> None:
        """Ends it, also while it starts; can be repeated."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Closes."""


def launch(
    master: str,
    conf: Mapping[str, str],
    *,
    driver_memory: str = "1g",
    java_home: str = "",
    python: str = "",
) -> Pending:
    """Begins to start a session, or finds the one that is there.

    Raises:
        SetupError: NO_JAVA, MISSING_DEPENDENCY.
    """
    if bridge.exists(master):
        return Found(master)
    home = gateway.spark_home(os.environ)
    found = java.find(java_home, os.environ)
    folder = RunFolder.make()
    chosen = settings.effective(
        master,
        conf,
        usable=usable_cores(),
        driver_memory=driver_memory,
        package=PACKAGE,
        folder=folder.path,
    )
    local = settings.is_local(master)
    worker = python or (not local and os.environ.get("PYSPARK_PYTHON")) or sys.executable
    env = settings.MEMORY | os.environ
    socket = folder.path / "warm"
    prefork = None
    if local:
        # A machine whose own name does not resolve would wait for its name server.
        env.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    if local and len(os.fsencode(socket)) <= SOCKET_PATH_BYTES:
        # First, because it needs as long as the JVM and the JVM starts its work later.
        env["EVENTLAKE_WARM"] = str(socket)
        paths = filter(None, (chosen.get("spark.executorEnv.PYTHONPATH"), env.get("PYTHONPATH")))
        prefork = warm.start(worker, socket, {**env, "PYTHONPATH": os.pathsep.join(paths)})
    driver = gateway.boot(found, home, chosen, env, folder)
    return Launched(driver, prefork, chosen, worker)


def cores(master: str) -> int:
    """Tasks this master runs at once here; 0 for a cluster, which has to be asked."""
    return settings.cores(master, usable_cores())


def usable_cores() -> int:
    """Cores this process may use, which in a container are fewer than the machine has."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with contextlib.suppress(OSError, ValueError):
        quota, period = map(int, CGROUP_QUOTA.read_text().split())
        return max(1, min(known or 1, round(quota / period)))
    return known or 1


class Launched:
    """A session of our own: a driver JVM, warm Python workers, and a thread that connects."""

    def __init__(
        self,
        driver: gateway.Driver,
        prefork: subprocess.Popen[bytes] | None,
        conf: Mapping[str, str],
        python: str,
    ) -> None:
        self._driver = driver
        self._prefork = prefork
        self._conf = conf
        self._python = python
        self._session: SparkSession | None = None
        self._failure: Error | None = None
        self._open = True
        bridge.quiet()
        self._thread = threading.Thread(target=self._connect, daemon=True)
        self._thread.start()

    @property
    def writes_archive(self) -> bool:
        """Whether this is the run that makes the next ones start fast."""
        return self._driver.archive.writes

    def session(self) -> SparkSession:
        self._thread.join()
        if self._failure:
            raise self._failure
        assert self._session is not None
        return self._session

    def close(self, *, orderly: bool = False) -> None:
        if not self._open:
            return
        self._open = False
        try:
            if self._session:
                if orderly and self._must_end_in_order():
                    self._end_in_order(self._session)
                bridge.let_go(self._session)
        finally:
            self._driver.kill()
            if self._prefork:
                _end(self._prefork)
            # It notices at once, and reads the JVM's log for the reason.
            self._thread.join()
            self._driver.remove()
            bridge.forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close(orderly=kind is None)

    def _connect(self) -> None:
        try:
            for module in DRIVER_MODULES:
                with contextlib.suppress(ImportError):
                    importlib.import_module(module)
            port, secret = self._driver.address()
            self._session = bridge.connect(port, secret, self._python, self._conf)
        except Error as error:
            self._failure = error
        except Exception as error:
            self._failure = self._driver.failure(f"Spark did not start ({error})")
            self._failure.__cause__ = error

    def _must_end_in_order(self) -> bool:
        """Only where something outside the JVM waits for its last word; else a kill is 1 s faster.

        That is a cluster, an event log, a metastore or an archive to write.
        """
        return (
            not settings.is_local(self._conf["spark.master"])
            or self._conf.get("spark.eventLog.enabled") == "true"
            or self._conf.get("spark.sql.catalogImplementation") == "hive"
            or self.writes_archive
        )

    def _end_in_order(self, session: SparkSession) -> None:
        if self.writes_archive and sys.stderr.isatty():
            sys.stderr.write("Preparing faster starts: once, about 6 s\n")
        session.stop()
        self._driver.finish()


class Found:
    """A session that somebody else started and will stop."""

    def __init__(self, master: str) -> None:
        self._master = master

    def session(self) -> SparkSession:
        return bridge.attach(self._master)

    def close(self, *, orderly: bool = False) -> None:
        """Leaves it alone."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Leaves it alone."""


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin:
        process.stdin.close()
