"""An API over the jobs of a directory of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.ha.api.serving import OPERATE, Served


@pytest.fixture
def served(quick: Path, tmp_path: Path) -> Iterator[Served]:
    del quick
    (tmp_path / "operate").write_text(OPERATE)
    made = Served(str(tmp_path / "operate"))
    yield made
    made.close()


@pytest.fixture
def untokened(quick: Path) -> Iterator[Served]:
    del quick
    made = Served()
    yield made
    made.close()
