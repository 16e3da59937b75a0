"""The module Spark runs to fork Python workers: hands the task to the process that is ready.

Spark starts its Python daemon with the first Python task, and a worker then needs 1 s to import
pandas, pyarrow and the rest. `warm.py` has begun that while the JVM was booting. This process
gives it Spark's pipes and settings and waits for it; without one (a cluster's executor) it warms
up itself. Imports nothing heavy, because the JVM waits for it.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def main() -> None:
    """Serves Spark until it closes our stdin."""
    path = os.environ.get("EVENTLAKE_WARM", "")
    with socket.socket(socket.AF_UNIX) as warm:
        try:
            warm.connect(path)
        except OSError:
            path = ""
        if path:
            settings = json.dumps({"env": dict(os.environ), "argv": sys.argv}).encode()
            socket.send_fds(warm, [len(settings).to_bytes(4, "big")], [0, 1, 2])
            warm.sendall(settings)
            # Ours would keep Spark's pipes open after the daemon has gone.
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            # Nothing ever comes: the end of the connection is the end of the daemon.
            warm.recv(1)
            return
    from eventlake.compute import warm as here

    here.preload()
    here.serve(dict(os.environ), sys.argv)


if __name__ == "__main__":
    main()
