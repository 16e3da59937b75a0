"""The folder of one run's temporary files: private, locked while in use, swept after a kill."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A folder whose lock says that its run lives. Processes of the run inherit the lock."""

    path: Path
    lock: int

    @staticmethod
    def make() -> RunFolder:
        """A new folder under the system's one for temporary files; removes those of dead runs."""
        base = Path(tempfile.gettempdir())
        prefix = f"eventlake-{os.getuid()}-"
        _sweep(base, prefix)
        # Gets its name once it is locked: until then a sweep would take it for a dead one.
        unlocked = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=base))
        lock = os.open(unlocked / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = unlocked.with_name(unlocked.name.removeprefix("."))
        unlocked.rename(path)
        return RunFolder(path, lock)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def _sweep(base: Path, prefix: str) -> None:
    for lock in base.glob(f"{prefix}*/lock"):
        with contextlib.suppress(OSError), lock.open("r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
