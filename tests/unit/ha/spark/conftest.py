"""Fixtures of the tests of ``ha.spark``: a job's leader directory on each of the stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import ha
from ha.leadership.leadership import Leadership
from tests.unit.leader.conftest import owned

__all__ = ["owned"]


@pytest.fixture
def leadership(tmp_path: Path) -> Iterator[Leadership]:
    with ha.lead("orders", {"jobmaster": "here:1"}, files=(tmp_path / "jobs").as_uri(), zookeeper="") as leadership:
        yield leadership
