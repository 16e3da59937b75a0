import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from eventlake.compute import gateway
from eventlake.compute.runfolder import RunFolder


def spark(folder: Path, core: str, *jars: str) -> Path:
    """A Spark installation: its jars are what counts."""
    (folder / "jars").mkdir(parents=True)
    for name in (f"spark-core_2.13-{core}.jar", *jars):
        (folder / "jars" / name).touch()
    return folder


def own_version() -> str:
    return gateway._core(gateway.spark_home({})).removeprefix("spark-core_2.13-")[:-4]


def test_spark_home_of_another_version_is_passed_over(tmp_path: Path) -> None:
    other = spark(tmp_path, "3.1.2")
    assert gateway.spark_home({"SPARK_HOME": str(other)}) == gateway.spark_home({})


def test_spark_home_of_the_same_version_is_used(tmp_path: Path) -> None:
    same = spark(tmp_path, own_version())
    assert gateway.spark_home({"SPARK_HOME": str(same)}) == same


def test_jars_have_one_order_with_the_busiest_first(tmp_path: Path) -> None:
    home = spark(tmp_path, "4.1.4", "a.jar", "z.jar", "slf4j-api-2.jar", "spark-mllib_2.13-4.jar")
    names = [jar.name for jar in gateway._jars(home)]
    assert names == ["slf4j-api-2.jar", "spark-core_2.13-4.1.4.jar", "a.jar", "z.jar"]


def test_secrets_are_not_put_on_the_command_line() -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": "x", "spark.app.name": "a"}
    assert gateway._arguments(conf) == ["--conf", "spark.app.name=a"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_run_folder_is_private_and_goes_with_the_run(temporary: Path) -> None:
    folder = RunFolder.make()
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.remove()
    assert list(temporary.iterdir()) == []


def test_the_folder_of_a_killed_run_is_swept_and_that_of_a_living_one_is_not(
    temporary: Path,
) -> None:
    dead, living = RunFolder.make(), RunFolder.make()
    os.close(dead.lock)
    third = RunFolder.make()
    assert not dead.path.exists()
    assert living.path.exists()
    living.remove()
    third.remove()


def test_the_lock_of_a_run_lasts_as_long_as_one_of_its_processes(temporary: Path) -> None:
    folder = RunFolder.make()
    inherited = os.dup(folder.lock)
    os.close(folder.lock)
    with (folder.path / "lock").open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(inherited)
