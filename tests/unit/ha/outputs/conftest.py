"""An output of a job that this process leads."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.ha.outputs.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    for each in made.opened:
        each.close()
