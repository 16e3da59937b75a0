"""A few kills and duels of real syncs; `make torture` runs many (EVENTLAKE_TORTURE=full)."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from services import S3
from torture.torture import Torture, run

FULL = os.environ.get("EVENTLAKE_TORTURE") == "full"
LOCAL = (800, 160) if FULL else (22, 7)
ON_S3 = (200, 40) if FULL else (8, 3)

pytestmark = [pytest.mark.torture, pytest.mark.slow]


def test_on_a_folder(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run(Torture(str(lake), tmp_path, seed_of(tmp_path), lake, print), *LOCAL)


def test_on_s3(versitygw: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in versitygw.env.items():
        monkeypatch.setenv(name, value)
    url = versitygw.bucket()
    on_disk = versitygw.folder / url.removeprefix("s3://")
    run(Torture(url, tmp_path, seed_of(tmp_path), on_disk, print), *ON_S3)


def seed_of(folder: Path) -> int:
    """A seed that differs from run to run; the lake's report of a failure shows it."""
    return zlib.crc32(str(folder).encode()) ^ os.getpid()
