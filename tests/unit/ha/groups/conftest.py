"""A group of three roots, and a job at one of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leader.layout import tree
from tests.unit.ha.groups.moves import FILES, JOB, NAMES, claim
from tests.unit.ha.groups.roots import Roots


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[Roots]:
    made = Roots(tmp_path)
    yield made
    made.close()


@pytest.fixture
def source(roots: Roots) -> str:
    """A job with a checkpoint, at its home."""
    uri = roots.home(JOB)
    driver = roots.drivers[uri]
    tree.create(driver, JOB)
    home = driver.path / JOB / claim(driver, "h1").name
    for name in NAMES:
        (home / name).mkdir(parents=True, exist_ok=True)
    for name, data in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(data)
    return uri
