"""The golden cases hold for the oracle too, so that neither can drift from the other."""

import pytest

from .compare import same_json
from .golden import load, names, outcome, pretty
from .jsontext import parse


@pytest.mark.parametrize("name", names())
def test_the_oracle_gives_what_the_case_expects(name: str) -> None:
    case = load(name)
    found = parse(pretty(outcome(case)))
    assert same_json(case.expected, found), pretty(found)
