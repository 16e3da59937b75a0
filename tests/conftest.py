"""What the whole suite shares: one Spark session, one S3 server, and a word on what was skipped."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

import cluster
import services
from eventlake.compute import session
from services import ROOT, S3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A failing example is short enough to be read as it is; making it shorter takes minutes. In CI the
# examples are always the same ones: what lands must not depend on luck.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
settings.register_profile("eventlake", deadline=None, phases=PHASES)
settings.register_profile("ci", deadline=None, phases=PHASES, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "eventlake")

# Not the user's: `make clean` removes it, and no test depends on what was run before.
os.environ.setdefault("EVENTLAKE_CACHE_DIR", str(ROOT / ".services" / "cache"))


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The session that all tests of a process share."""
    conf = {"spark.sql.shuffle.partitions": "2"}
    with session.launch("local[2]", conf) as pending:
        yield pending.session()


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """A real S3 server; `versitygw.bucket()` makes a bucket."""
    with services.versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield server


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Spark standalone master with a worker."""
    with cluster.standalone(tmp_path_factory.mktemp("cluster")) as url:
        yield url


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps tests that share a session in one process when the suite runs in several."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names what the machine lacks, so that a green run does not look like a whole one."""
    for line in services.missing(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line, yellow=True)
