"""PySpark's and Py4J's process-wide state: joined, left, and as it was before.

PySpark keeps one gateway, one context and one session per process, and reads where they are from
the environment. All that touches this is here.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def exists(master: str) -> bool:
    """Whether somebody else has a session for us: then it is theirs to configure and to stop."""
    if {"PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION"} & set(os.environ):
        return True
    if master.startswith("sc://"):
        return True
    # Where nobody has imported PySpark there is no session, and asking would import it.
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # A session is active only in the thread that started it; its context is so in all.
    started = vars(SparkContext)["_active_spark_context"] is not None
    return started or SparkSession.getActiveSession() is not None


def attach(master: str) -> SparkSession:
    """The session that `exists` saw."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    if master.startswith("sc://"):
        builder = builder.remote(master)
    return builder.getOrCreate()


def connect(port: int, secret: str, python: str, conf: Mapping[str, str]) -> SparkSession:
    """The session of a driver JVM that listens at a port."""
    from pyspark.sql import SparkSession

    ours = {
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": secret,
        "PYSPARK_PYTHON": python,
    }
    with _environment(ours):
        return SparkSession.builder.config(map=dict(conf)).getOrCreate()


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Sets variables while PySpark reads them: to leave them would say that a session is there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def quiet() -> None:
    """Stops Py4J's log of broken connections and of Ctrl-C; the errors reach the caller anyway."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # Some of it goes to the root logger, which prints it where nobody has set up logging.
    root = logging.getLogger()
    if _not_py4j not in root.filters:
        root.addFilter(_not_py4j)


def _not_py4j(record: logging.LogRecord) -> bool:
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def let_go(session: SparkSession) -> None:
    """Ends the threads that talk to the JVM, so that none of them notices its death and says so."""
    py4j: Any = session.sparkContext._gateway  # noqa: SLF001 - PySpark has no public way
    client = py4j._gateway_client  # noqa: SLF001
    client.is_connected = False
    for worker in filter(None, (getattr(client, "finalizer_deque", None),)):
        worker.appendleft(importlib.import_module("py4j.clientserver").SHUTDOWN_FINALIZER_WORKER)
    with contextlib.suppress(Exception):
        client.close()
    updates = getattr(session.sparkContext, "_accumulatorServer", None)
    if updates is not None:
        updates.handle_error = lambda *_: None
        # Takes half a second to notice; nothing waits for it.
        threading.Thread(target=updates.shutdown, daemon=True).start()


def forget() -> None:
    """Makes PySpark's globals as they were before, so that a later launch starts afresh."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    for name in ("_active_spark_context", "_gateway", "_jvm"):
        setattr(SparkContext, name, None)
    for name in ("_instantiatedSession", "_activeSession"):
        setattr(SparkSession, name, None)
