"""Fixtures of the protocol's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leader.job.checkpoints import Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.layout import tree
from leader.layout.names import LeaderDirectory
from tests.unit.leader.arena import Arena
from tests.unit.leader.faulty import Place, opened
from tests.unit.leader.grants import Grants
from tests.unit.leader.owned import HOME, STORES, Owned, on
from tests.unit.leader.samples import A


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield from opened(tmp_path / "jobs")


@pytest.fixture
def hurt(place: Place) -> Owned:
    """A job in its first epoch, with faults on demand; something was staged there before."""
    made = Owned(place.direct, place.files)
    place.direct.make_directory(f"{HOME}/staged")
    return made


@pytest.fixture(params=STORES)
def owned(request: pytest.FixtureRequest) -> Iterator[Owned]:
    made = on(request.param, request)
    yield made
    made.direct.delete("orders", recursive=True)
    made.direct.close()
    made.files.close()


@pytest.fixture
def led(place: Place) -> Place:
    tree.create(place.direct, "orders")
    place.direct.rename(f"orders/{LeaderDirectory(0, tree.NOBODY).name}", f"orders/{LeaderDirectory(1, A).name}")
    return place


@pytest.fixture
def ids(led: Place) -> Checkpoints:
    return Checkpoints(FencedDirectory(led.files, "orders", LeaderDirectory(1, A), 10.0))


@pytest.fixture
def arena(request: pytest.FixtureRequest) -> Arena:
    """Contenders of one job: the usual ones, or each of the module's ``ARENAS``."""
    return Arena(**getattr(request, "param", {}))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test of a module with ``ARENAS`` each of them."""
    if "arena" in metafunc.fixturenames and (made := getattr(metafunc.module, "ARENAS", None)):
        metafunc.parametrize("arena", [*made.values()], indirect=True, ids=[*made])


@pytest.fixture
def grants(place: Place) -> Grants:
    return Grants(place)
