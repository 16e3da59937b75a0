"""The tutorial is run, word for word, and prints what it shows."""

import pytest

from docs.shell import ROOT, blocks, run, same

PAGE = ROOT / "docs" / "tutorial.md"


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    scripts = [block.text for block in blocks(PAGE) if block.language == "sh"]
    return run(scripts, tmp_path_factory.mktemp("tutorial"))


@pytest.mark.slow
def test_every_output_the_tutorial_shows_is_what_its_commands_print(printed: list[str]) -> None:
    number = -1
    compared = 0
    for block in blocks(PAGE):
        number += block.language == "sh"
        if block.is_output:
            assert same(block.text, printed[number]), printed[number]
            compared += 1
    assert compared >= 9


def test_an_ellipsis_stands_for_anything_within_one_line() -> None:
    assert same("took … s\nend", "took 1.2 s\nend\n")
    assert not same("took … s", "took 1.2 s\nmore")
    assert not same("a…c", "ab")
