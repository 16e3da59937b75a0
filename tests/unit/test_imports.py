"""Imports point downwards only (design §7), and what is confined stays where it is."""

import ast
from pathlib import Path

import pytest

import eventlake

PACKAGE = Path(eventlake.__file__).parent
# A folder knows the layers left of its own, and those beside it that are named below.
LAYERS = (
    {"model"},
    {"profiles", "stage", "ledger", "catalog", "compute"},
    {"intake", "sync", "report"},
    {"console", "cli"},
)
BESIDE = {("ledger", "profiles"), ("catalog", "ledger"), ("sync", "report"), ("sync", "intake")}
# For everybody. `settings_tree.py` and the like are parts of the file they are named after.
SHARED = {
    "errors": set[str](),
    "settings": {"errors"},
    "store": {"errors", "settings"},
}
# Who may name an engine or a vendor. Spark's actions (collect, count, write) are where Spark is.
CONFINED = {
    "pyspark": {"sync/run.py", "compute/bridge.py", "compute/session.py"},
    "obstore": {"store.py", "store_errors.py", "stage/send.py"},
    "duckdb": {"catalog/query.py", "cli/commands/query.py"},
}


def modules() -> list[str]:
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def imports(module: str) -> set[str]:
    """All that a file imports, at its top or in a function, `from a import b` as `a.b`."""
    found = set()
    for node in ast.walk(ast.parse((PACKAGE / module).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            here = ["eventlake", *Path(module).parent.parts]
            base = here[: len(here) - node.level + 1] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            found |= {f"{origin}.{name.name}" for name in node.names}
    return found


def ours(module: str) -> set[str]:
    """The folders and shared files of the package that a file imports from, but for its own."""
    names = {name.split(".")[1] for name in imports(module) if name.startswith("eventlake.")}
    return {shared(name) for name in names} - {home(module), "__version__"}


def home(module: str) -> str:
    return shared(module.split("/", maxsplit=1)[0].removesuffix(".py"))


def shared(name: str) -> str:
    return "store" if name == "aws" else next((s for s in SHARED if name.startswith(f"{s}_")), name)


def allowed(name: str) -> set[str]:
    if name in SHARED:
        return SHARED[name]
    if name == "model":
        return {"errors"}
    level = next(n for n, layer in enumerate(LAYERS) if name in layer)
    beside = {to for origin, to in BESIDE if origin == name}
    return set().union(*LAYERS[:level], beside, SHARED)


@pytest.mark.parametrize("module", [m for m in modules() if not m.startswith("__")])
def test_imports_point_downwards(module: str) -> None:
    assert ours(module) <= allowed(home(module))


@pytest.mark.parametrize("vendor", CONFINED)
def test_a_vendor_is_named_only_where_it_is_at_home(vendor: str) -> None:
    users = {m for m in modules() if any(i.split(".")[0] == vendor for i in imports(m))}
    assert users <= CONFINED[vendor]


def test_the_reader_of_imports_sees_relative_ones_and_those_inside_functions() -> None:
    assert "sync" in ours("cli/commands/sync.py")
    assert ours("sync/read.py") >= {"stage", "store"}
