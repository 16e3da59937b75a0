"""These tests make and remove thousands of files: in memory, where the system has room for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.lake_of_faults import in_memory


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder of the test's own, removed after it."""
    with in_memory() as folder:
        yield folder
