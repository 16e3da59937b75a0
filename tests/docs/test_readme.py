"""The README's start works as printed, and every link between our pages leads somewhere."""

import re
from pathlib import Path

import pytest

from docs.shell import ROOT, blocks, run

README = ROOT / "README.md"
PAGES = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
EVENT = '{"type":"track","event":"Order Completed","userId":"ada"}'


@pytest.mark.slow
def test_the_real_start_works_as_printed(tmp_path: Path) -> None:
    scripts = [block.text for block in blocks(README) if block.language == "sh"]
    made = f"echo '{EVENT}' > events.ndjson\n"
    printed = run([made, *scripts], tmp_path)
    assert re.search(r"Order Completed │ +1 ", printed[-1]), printed[-1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = [link.replace("\n", "") for link in _LINK.findall(page.read_text("utf-8"))]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_is_one_page() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 70


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_are_written_in_our_style(page: Path) -> None:
    words = re.findall(r"\b(simply|just|easily)\b", page.read_text("utf-8"), re.IGNORECASE)
    assert words == []
