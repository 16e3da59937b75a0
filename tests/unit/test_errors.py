"""Errors keep code, message, hint and object, also across processes."""

import ast
import pickle
from pathlib import Path

import pytest

import eventlake
from eventlake.errors import (
    ERRORS,
    Error,
    InputError,
    SetupError,
    StateError,
    TransientError,
    UsageError,
)

CLASSES = {
    kind.__name__: kind for kind in (UsageError, SetupError, InputError, TransientError, StateError)
}


def test_an_error_survives_pickling_whole() -> None:
    error = SetupError("BUCKET_NOT_FOUND", "cannot read", "create it", "key")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is SetupError
    assert (copy.code, copy.message, copy.hint, copy.on) == (
        "BUCKET_NOT_FOUND",
        "cannot read",
        "create it",
        "key",
    )


def test_an_error_can_be_built_from_keywords() -> None:
    assert str(Error(code="X", message="what", on="key")) == "X: what (key)"


def test_only_wrong_use_exits_2() -> None:
    assert {name: kind.exit_code for name, kind in CLASSES.items()} == {
        "UsageError": 2,
        "SetupError": 1,
        "InputError": 1,
        "TransientError": 1,
        "StateError": 1,
    }


@pytest.mark.parametrize("code", ERRORS)
def test_every_code_is_explained_in_a_sentence(code: str) -> None:
    kind, meaning = ERRORS[code]
    assert kind is not Error
    assert issubclass(kind, Error)
    assert meaning.endswith(".")


def test_every_code_raised_in_the_package_is_in_the_table_with_its_class() -> None:
    wrong = []
    for file in Path(eventlake.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            raised = _raised(node)
            if raised and (raised[1] not in ERRORS or ERRORS[raised[1]][0] is not raised[0]):
                wrong.append((file.name, raised))
    assert wrong == []


def _raised(node: ast.AST) -> tuple[type[Error], str] | None:
    """The class and code of a call such as `SetupError("CODE", …)` or `SetupError(code="CODE")`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    given = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "code")]
    if node.func.id not in CLASSES or not given or not isinstance(given[0], ast.Constant):
        return None
    return CLASSES[node.func.id], str(given[0].value)
