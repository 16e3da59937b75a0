"""What Spark is told: the defaults a sync needs, under the settings the user gave. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

# A task that met a store that was away is tried again, as on a cluster; `local[2]` tries once.
TASK_FAILURES = 4
ALWAYS = {
    "spark.app.name": "eventlake",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # The plan knows sizes and counts already; adapting it costs a job per shuffle.
    "spark.sql.adaptive.enabled": "false",
    "spark.python.daemon.module": "eventlake.compute.daemon",
    # Rows are whole packets of events, so a batch of Spark's 10,000 could be gigabytes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "256",
}
LOCAL = {
    # A sync's plan is one scan and one Python step: to compile it costs 0.2 s and saves nothing.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # No name look-up, no port open to others, nothing to break where a VPN changes the address.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


# Workers make and drop a hundred megabytes many times over: to give them back to the system each
# time costs a tenth of the CPU.
MEMORY = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(512 << 20),
    "MALLOC_TOP_PAD_": str(16 << 20),
}


def is_local(master: str) -> bool:
    """Whether the driver's own JVM runs the tasks (`local-cluster` starts others)."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def cores(master: str, usable: int) -> int:
    """Tasks that run at once: of `usable` cores for a local master; 0 where Spark must say.

    >>> cores("local[*]", 2), cores("local[4,1]", 2), cores("local", 2), cores("yarn", 2)
    (2, 4, 1, 0)
    """
    if not is_local(master):
        return 0
    asked = re.match(r"local\[(\d+)", master)
    return int(asked[1]) if asked else usable if "*" in master else 1


def effective(
    master: str,
    conf: Mapping[str, str],
    *,
    usable: int,
    driver_memory: str,
    package: Path,
    folder: Path,
) -> dict[str, str]:
    """Every Spark setting of a run. What the user gave wins over all defaults.

    `package` is the folder that holds our code, `folder` the run's own for temporary files.
    """
    settings = {**ALWAYS, "spark.driver.memory": driver_memory}
    settings |= {f"spark.executorEnv.{name}": value for name, value in MEMORY.items()}
    if is_local(master):
        settings |= LOCAL
        settings["spark.local.dir"] = str(folder)
        settings["spark.sql.warehouse.dir"] = str(folder / "warehouse")
    if not {"site-packages", "dist-packages"} & set(package.parts):
        # A source checkout, which workers would not find.
        settings["spark.executorEnv.PYTHONPATH"] = str(package)
    return {**settings, **conf, "spark.master": _retrying(master, usable)}


def _retrying(master: str, usable: int) -> str:
    if not is_local(master) or "," in master:
        return master
    return f"local[{cores(master, usable)},{TASK_FAILURES}]"
