"""The reference says what the code says, and names everything that the code can say."""

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from docs.shell import ROOT
from eventlake import errors
from eventlake.settings import known_keys, render_reference

SOURCE = ROOT / "src" / "eventlake"
REFERENCE = ROOT / "docs" / "reference"
CLASSES = {"SetupError", "InputError", "TransientError", "StateError", "UsageError"}
# Reasons are literals in these files; a new one fails the test below until it is described.
READERS = ("sync/parse.py", "sync/reader.py", "sync/read.py")


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def literals(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and type(n.value) is str}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if path == SOURCE / "errors.py":
            continue
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text("utf-8"))


def codes_in(tree: ast.Module) -> set[str]:
    """The code of every error that is made, and of every (class, code, …) in a table of them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            named = node.func.id in CLASSES and node.args
            found |= literals(node.args[0]) if named else set()
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1:
            first, second = node.elts[:2]
            if isinstance(first, ast.Name) and first.id in CLASSES:
                found |= literals(second)
    return found


def test_the_pages_are_fresh(generate: ModuleType) -> None:
    assert generate.stale() == []


def test_the_check_says_which_page_is_stale(
    generate: ModuleType, tmp_path: object, monkeypatch: pytest.MonkeyPatch, capsys: object
) -> None:
    monkeypatch.setattr(generate, "FOLDER", tmp_path)
    assert generate.main(["--check"]) == 1
    assert "cli.md is stale" in capsys.readouterr().err  # type: ignore[attr-defined]
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_every_setting_is_documented_and_in_the_file_that_init_writes() -> None:
    page, file = (REFERENCE / "settings.md").read_text("utf-8"), render_reference()
    for dotted, item in known_keys():
        assert f"`{dotted}`" in page
        assert f"# {item.metadata['help']}\n" in file


def test_every_command_is_documented_with_an_example() -> None:
    page = (REFERENCE / "cli.md").read_text("utf-8")
    sections = page.split("\n## ")[1:]
    assert len(sections) >= 19
    for section in sections:
        assert "Example: eventlake" in section, section.partition("\n")[0]


def test_every_error_code_in_the_code_is_listed_and_documented() -> None:
    used = {code for _, tree in trees() for code in codes_in(tree)}
    page = (REFERENCE / "errors.md").read_text("utf-8")
    assert used - set(errors.ERRORS) == set()
    assert [code for code in errors.ERRORS if f"`{code}`" not in page] == []


def test_every_error_code_that_is_listed_is_used() -> None:
    words = {text for _, tree in trees() for text in literals(tree)}
    assert set(errors.ERRORS) - words == set()


def test_every_reason_of_a_rejected_line_is_documented(generate: ModuleType) -> None:
    names = {name for path, tree in trees() if path in READERS for name in literals(tree)}
    assert set(generate.REASONS) <= names
    look_alike = {
        name for name in names if name.startswith(("not_", "too_", "unknown_", "missing_"))
    }
    assert look_alike <= set(generate.REASONS)


def test_the_script_runs_by_itself() -> None:
    script = str(ROOT / "docs" / "generate.py")
    done = subprocess.run([sys.executable, script, "--check"], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
