"""A process with everything a worker needs imported, from which Spark's Python daemons fork.

Started beside the JVM, it is ready when the first Python task is. Ends when its stdin closes,
so it never outlives the command that started it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Imported once, shared by all workers of the machine. What is missing is left out: a worker that
# needs it says so itself.
MODULES = (
    *("pyarrow", "pandas", "numpy", "orjson", "obstore", "zstandard", "isal.isal_zlib"),
    # The first `pa.array` of a process imports these.
    *("pyarrow.compute", "pyarrow.parquet", "pyarrow.pandas_compat"),
    *("pyspark.worker", "pyspark.daemon", "pyspark.sql.pandas.types"),
    *("eventlake.sync.read", "eventlake.sync.dedupe", "eventlake.sync.write"),
)


def start(python: str, path: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Starts the process that will answer at a socket; returns before it does."""
    return subprocess.Popen(
        [python, "-m", __name__, str(path)],
        # As Spark starts its own: hashes equal in all workers, one thread for each.
        env={**env, "PYTHONHASHSEED": env.get("PYTHONHASHSEED", "0"), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )


def preload() -> None:
    """Imports what workers need and keeps the garbage collector from touching it.

    An untouched page stays shared between the forked workers.
    """
    gc.disable()
    for module in MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    gc.freeze()
    gc.enable()


def serve(env: dict[str, str], argv: Sequence[str]) -> None:
    """Becomes Spark's own daemon, on stdin and stdout, with the settings Spark gave."""
    os.environ.clear()
    os.environ.update(env)
    sys.argv[:] = argv
    daemon = importlib.import_module("pyspark.daemon")
    daemon.manager()


def main(path: str) -> None:
    """Answers every daemon that connects with a fork of this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        # A daemon that connects while the imports run waits here.
        door.listen()
        preload()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            ready, _, _ = select.select([0, door.fileno()], [], [])
            if 0 in ready:
                return
            caller, _ = door.accept()
            with caller:
                if os.fork() == 0:
                    door.close()
                    _become(caller)


def _become(caller: socket.socket) -> None:
    """Takes over the caller's pipes and settings. `caller` stays open: it says that we live."""
    head, pipes, _, _ = socket.recv_fds(caller, 4, 3)
    with caller.makefile("rb") as stream:
        settings = json.loads(stream.read(int.from_bytes(head, "big")))
    for target, pipe in enumerate(pipes):
        os.dup2(pipe, target)
        os.close(pipe)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        serve(settings["env"], settings["argv"])
    finally:
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
