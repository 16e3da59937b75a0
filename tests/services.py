"""Real servers for tests: found on this machine and started once, or named as missing.

A test that asks for one that is missing is skipped, and the end of the run says so; with
EVENTLAKE_REQUIRE_SERVICES=1 it fails. Each server listens on a free loopback port.
"""

import os
import shutil
import socket
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
START_TIMEOUT_S = 20
MISSING = "needs the service "
# How a person gets each service.
SOURCES = {"versitygw": "`make services` installs it, with Go"}


@dataclass(frozen=True)
class S3:
    """A running S3 server whose buckets are folders."""

    endpoint: str
    folder: Path
    access_key: str = "test-access"
    secret_key: str = "test-secret"
    region: str = "us-east-1"

    def bucket(self, name: str = "") -> str:
        """The URL of a new, empty bucket."""
        name = name or f"test-{uuid.uuid4().hex[:12]}"
        (self.folder / name).mkdir()
        return f"s3://{name}"

    @property
    def env(self) -> dict[str, str]:
        """What the AWS conventions call it: all that a client needs beside the URL."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
        }


def program(name: str) -> str:
    """The path of a service's program; skips the test, or fails it, where there is none."""
    own = ROOT / ".services" / "bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    if found:
        return found
    reason = f"{MISSING}{name}: {SOURCES[name]}"
    if os.environ.get("EVENTLAKE_REQUIRE_SERVICES"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@contextmanager
def versitygw(folder: Path) -> Iterator[S3]:
    """Runs the S3 server over a folder."""
    server = S3(f"http://127.0.0.1:{free_port()}", folder / "buckets")
    server.folder.mkdir()
    log = folder / "versitygw.log"
    address = server.endpoint.removeprefix("http://")
    command = [program("versitygw"), "--port", address, "--quiet", "posix", *_metadata(folder)]
    env = os.environ | {"ROOT_ACCESS_KEY": server.access_key, "ROOT_SECRET_KEY": server.secret_key}
    with log.open("wb") as out:
        process = subprocess.Popen([*command, server.folder], env=env, stdout=out, stderr=out)
    try:
        _wait_for(address, process, log)
        yield server
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def missing(reports: list[pytest.TestReport]) -> list[str]:
    """A line for each missing service: how many tests were skipped for it, how to get it."""
    reasons = [report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple)]
    wanted = Counter(r.partition(MISSING)[2] for r in reasons if MISSING in r)
    return [f"{count} tests skipped for want of {how}" for how, count in sorted(wanted.items())]


def _metadata(folder: Path) -> list[str]:
    """Where object metadata goes: attributes of the files, where the file system has them."""
    try:
        os.setxattr(folder, "user.eventlake", b"")
    except (OSError, AttributeError):
        (folder / "metadata").mkdir()
        return ["--sidecar", str(folder / "metadata")]
    return []


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    pytest.fail(f"{address} did not start: {log.read_text()[-2000:]}", pytrace=False)
