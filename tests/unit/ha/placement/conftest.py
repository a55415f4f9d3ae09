"""A group of three roots."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.ha.placement.roots import Roots


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[Roots]:
    made = Roots(tmp_path)
    yield made
    made.close()
