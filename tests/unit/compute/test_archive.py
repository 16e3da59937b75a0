import os
from pathlib import Path

import pytest

from eventlake.compute import archive
from eventlake.compute.java import JavaHome

JAVA = JavaHome(Path("/no/such/java"), "17.0.1", "as built")


def test_the_first_who_asks_writes_and_the_second_goes_without(tmp_path: Path) -> None:
    first, second = archive.choose(tmp_path, "key", JAVA), archive.choose(tmp_path, "key", JAVA)
    assert first.writes
    assert not second.writes
    assert second.flags == ()
    first.release()


def test_what_was_written_is_used_from_then_on(tmp_path: Path) -> None:
    writer = archive.choose(tmp_path, "key", JAVA)
    writer.partial.write_bytes(b"classes")
    writer.keep()
    writer.release()
    reader = archive.choose(tmp_path, "key", JAVA)
    assert not reader.writes
    assert reader.flags == (f"-XX:SharedArchiveFile={tmp_path / 'spark-key.jsa'}",)
    assert not writer.partial.exists()


def test_a_writer_that_gives_up_leaves_nothing_and_lets_the_next_one_try(tmp_path: Path) -> None:
    writer = archive.choose(tmp_path, "key", JAVA)
    writer.partial.write_bytes(b"half")
    writer.release()
    assert not list(tmp_path.glob("*.partial"))
    again = archive.choose(tmp_path, "key", JAVA)
    assert again.writes
    again.release()


def test_a_jvm_that_cannot_archive_is_asked_once(tmp_path: Path) -> None:
    writer = archive.choose(tmp_path, "key", JAVA)
    writer.keep()
    writer.release()
    assert not list(tmp_path.glob("*.jsa"))
    assert not archive.choose(tmp_path, "key", JAVA).writes


def test_a_java_without_an_archive_of_its_own_gets_one_under_ours(tmp_path: Path) -> None:
    script = tmp_path / "java" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text('#!/bin/sh\nfor last; do :; done\necho classes >"${last#*=}"\n')
    script.chmod(0o755)
    bare = JavaHome(tmp_path / "java", "21.0.8", "")
    writer = archive.choose(tmp_path / "cache", "key", bare)
    base, path = tmp_path / "cache" / "spark-key.base", tmp_path / "cache" / "spark-key.jsa"
    assert writer.flags[0] == f"-XX:SharedArchiveFile={base}"
    writer.partial.write_bytes(b"more classes")
    writer.keep()
    writer.release()
    reader = archive.choose(tmp_path / "cache", "key", bare)
    assert reader.flags == (f"-XX:SharedArchiveFile={base}:{path}",)


def test_the_least_recently_used_archives_are_dropped(tmp_path: Path) -> None:
    for age in range(5):
        old = tmp_path / f"spark-old{age}.jsa"
        old.touch()
        os.utime(old, (1000 - age, 1000 - age))
    writer = archive.choose(tmp_path, "new", JAVA)
    writer.partial.write_bytes(b"classes")
    writer.keep()
    writer.release()
    kept = {path.name for path in tmp_path.glob("*.jsa")}
    assert kept == {"spark-new.jsa", "spark-old0.jsa", "spark-old1.jsa"}


def test_no_place_to_write_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert archive.choose(tmp_path / "file" / "cache", "key", JAVA).flags == ()


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"HOME": "/h"}, Path("/h/.cache/eventlake")),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, Path("/x/eventlake")),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x", "EVENTLAKE_CACHE_DIR": "/e"}, Path("/e")),
        ({"HOME": "/h", "EVENTLAKE_NO_CDS": "1"}, None),
        ({}, None),
    ],
)
def test_the_cache_follows_the_conventions(env: dict[str, str], expected: Path | None) -> None:
    assert archive.folder(env) == expected


def test_another_java_jar_or_option_is_another_archive(tmp_path: Path) -> None:
    jar = tmp_path / "spark.jar"
    jar.write_bytes(b"1")
    keys = {archive.key(JAVA, [jar], ["-Xmx1g"]), archive.key(JAVA, [jar], ["-Xmx2g"])}
    keys.add(archive.key(JavaHome(JAVA.path, "17.0.2", "17.0.2"), [jar], ["-Xmx1g"]))
    jar.write_bytes(b"12")
    keys.add(archive.key(JAVA, [jar], ["-Xmx1g"]))
    assert len(keys) == 4
