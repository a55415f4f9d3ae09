"""A group of three roots, and a job at one of them."""

import pytest

from leader.layout import tree
from tests.unit.ha.groups.moves import FILES, JOB, NAMES, claim
from tests.unit.ha.placement.conftest import roots
from tests.unit.ha.placement.roots import Roots

__all__ = ["roots"]


@pytest.fixture
def source(roots: Roots) -> str:
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


@pytest.fixture
def target(roots: Roots) -> str:
    return roots.others(JOB)[0]
