"""Starts the driver's JVM without Spark's launch scripts, and makes sure that it ends.

`spark-submit` runs a shell, a JVM that prints a command line, and the driver after them; this is
the driver alone, from a class archive. Knows processes and files, nothing of sessions.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shlex
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eventlake.compute import archive
from eventlake.compute.java import JavaHome
from eventlake.compute.runfolder import RunFolder
from eventlake.errors import SetupError

# What Spark's JavaModuleOptions asks for (3.5 to 4.2) but for `--add-modules=jdk.incubator.vector`:
# only its machine-learning code uses that module, some builds lack it, and it costs a warning.
PACKAGES = (
    *("java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect"),
    *("java.base/java.io", "java.base/java.net", "java.base/java.nio", "java.base/java.util"),
    *("java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic"),
    *("java.base/jdk.internal.ref", "java.base/sun.nio.ch", "java.base/sun.nio.cs"),
    *("java.base/sun.security.action", "java.base/sun.util.calendar"),
    "java.security.jgss/sun.security.krb5",
)
OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in PACKAGES),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "-Dderby.connection.requireAuthentication=false",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    # The JVM plans and shuffles, Python does the work: C1 alone needs 5 s less CPU at the start.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
)
# Most classes come from these. First on the path they are found without asking 280 other jars;
# writing the archive is 1.5 × faster for it. slf4j-api leads as in Spark's own class path.
HOT = (
    *("slf4j-api", "spark-catalyst", "scala-library", "spark-core", "spark-sql-api"),
    *("scala-reflect", "spark-sql_", "log4j-core", "jackson-databind"),
    *("hadoop-client-api", "arrow-vector", "spark-network-common", "hadoop-client-runtime"),
    *("netty-common", "netty-transport", "spark-common-utils", "jackson-module-scala"),
    *("jackson-core", "log4j-api", "antlr4-runtime", "netty-buffer", "jackson-annotations"),
    *("py4j", "json4s-ast"),
)
# Its session extension reflects on Scala types and makes Spark read its 5,000 error messages, at
# every start, for functions we do not use: 0.25 s.
UNUSED = "spark-mllib_"
# Never on a command line, where every user of the machine can read it.
SECRET = re.compile(r"(?i)secret|password|token|access\.?key|credential")
# A cold disk needs 20 s; more is a hang.
START_TIMEOUT_S = 180
# Writing the class archive takes 6 s of one core, and there may be many who want that core.
EXIT_TIMEOUT_S = 180


@dataclass(slots=True)
class Driver:
    """A running driver JVM. It ends by itself when this process does: its stdin closes."""

    process: subprocess.Popen[bytes]
    folder: RunFolder
    archive: archive.Archive

    def address(self) -> tuple[int, str]:
        """Port and secret of its Py4J server, once it is up.

        Raises:
            SetupError: SPARK_START, with the end of the JVM's log.
        """
        info = self.folder.path / "gateway"
        deadline = time.monotonic() + START_TIMEOUT_S
        # Spark writes a temporary file and renames it, so what exists is whole.
        while not info.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise self.failure("Spark's JVM did not start")
            time.sleep(0.005)
        port, size = struct.unpack_from("!ii", content := info.read_bytes())
        return port, content[8 : 8 + size].decode()

    def failure(self, what: str) -> SetupError:
        lines = (self.folder.path / "jvm.log").read_text("utf-8", "replace").strip().splitlines()
        return SetupError(
            "SPARK_START",
            f"{what}: " + ("\n".join(lines[-20:]) or "it said nothing"),
            hint="Check spark.master, spark.driver_memory and spark.conf, and the Java in use.",
        )

    def finish(self) -> None:
        """Lets the JVM end in order, which writes the archive where it should."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.process.wait(EXIT_TIMEOUT_S) == 0 and self.archive.writes:
                self.archive.keep()

    def kill(self) -> None:
        """Ends the JVM at once."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()

    def remove(self) -> None:
        """Removes what the ended JVM leaves."""
        self.archive.release()
        self.folder.remove()


def boot(
    java: JavaHome, home: Path, conf: Mapping[str, str], env: Mapping[str, str], folder: RunFolder
) -> Driver:
    """Starts a driver for these Spark settings; returns before it is up."""
    folders = _configuration_folders(home, env)
    extra = [Path(p) for p in conf.get("spark.driver.extraClassPath", "").split(":") if p]
    jars = [*_jars(home), *extra]
    options = [
        f"-Xmx{conf['spark.driver.memory']}",
        *OPTIONS,
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        *shlex.split(conf.get("spark.driver.extraJavaOptions", "")),
    ]
    # The JVM refuses to archive with folders on the class path; clusters have them, laptops not.
    plain = not folders and all(jar.is_file() for jar in jars)
    name = archive.key(java, jars, options) if plain else ""
    chosen = archive.choose(archive.folder(env) if plain else None, name, java)
    command = [
        *(str(java.executable), *chosen.flags, *options, f"-Djava.io.tmpdir={folder.path}"),
        *("-cp", ":".join(map(str, [*jars, *folders]))),
        *("org.apache.spark.deploy.SparkSubmit", *_arguments(conf), "pyspark-shell"),
    ]
    own = {"SPARK_HOME": str(home), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder.path / "gateway")}
    with (folder.path / "jvm.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env={**env, **own, "SPARK_CONNECT_MODE": "0"},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            # A Ctrl-C in the terminal is for this process, which then ends the JVM itself.
            process_group=0,
            pass_fds=[lock for lock in (folder.lock, chosen.lock) if lock is not None],
        )
    return Driver(process, folder, chosen)


def spark_home(env: Mapping[str, str]) -> Path:
    """The Spark whose jars to run: SPARK_HOME where it is PySpark's own version, else PySpark.

    Raises:
        SetupError: MISSING_DEPENDENCY, when PySpark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError(
            "MISSING_DEPENDENCY",
            "Spark's Python package is not installed",
            hint="Run `pip install 'pyspark>=3.5,<4.3'`.",
        )
    own = Path(spec.origin).parent
    set_home = Path(env.get("SPARK_HOME") or own)
    return set_home if _core(set_home) and _core(set_home) == _core(own) else own


def _core(home: Path) -> str:
    return next((jar.name for jar in (home / "jars").glob("spark-core_*.jar")), "")


def _jars(home: Path) -> list[Path]:
    """All jars in a stable order, because an archive is only valid for one order."""

    def rank(jar: Path) -> int:
        return next((i for i, hot in enumerate(HOT) if jar.name.startswith(hot)), len(HOT))

    jars = (jar for jar in (home / "jars").glob("*.jar") if not jar.name.startswith(UNUSED))
    return sorted(sorted(jars), key=rank)


def _configuration_folders(home: Path, env: Mapping[str, str]) -> list[Path]:
    named = (
        env.get("SPARK_CONF_DIR") or home / "conf",
        env.get("HADOOP_CONF_DIR"),
        env.get("YARN_CONF_DIR"),
    )
    return [Path(p) for p in named if p and Path(p).is_dir()]


def _arguments(conf: Mapping[str, str]) -> Sequence[str]:
    shown = [f"{key}={value}" for key, value in conf.items() if not SECRET.search(key)]
    return [part for setting in shown for part in ("--conf", setting)]
