"""Fixtures of the protocol's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.leader.faulty import Place, opened
from tests.unit.leader.grants import Grants
from tests.unit.leader.owned import STORES, Owned, on


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A root directory for jobs, with faults on demand."""
    yield from opened(tmp_path / "jobs")


@pytest.fixture
def hurt(place: Place) -> Owned:
    """A job in its first epoch, with faults on demand."""
    return Owned(place.direct, place.files)


@pytest.fixture(params=STORES)
def owned(request: pytest.FixtureRequest) -> Iterator[Owned]:
    """A job in its first epoch, on each of the stores."""
    made = on(request.param, request)
    yield made
    made.direct.delete("orders", recursive=True)
    made.direct.close()
    made.files.close()


@pytest.fixture
def grants(place: Place) -> Grants:
    return Grants(place)
