"""Fixtures for tests of the processes that people run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.listening.throttle import THROTTLE
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.led import Led
from tests.unit.ha.noting import Notes
from tests.unit.ha.programs import QUICK, SHORT_LEASES, Workplace


@pytest.fixture
def workplace(tmp_path: Path) -> Iterator[Workplace]:
    made = Workplace(tmp_path)
    yield made
    made.end()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that start programs: `make unit` leaves them out."""
    if "workplace" in getattr(item, "fixturenames", ()):
        item.add_marker("programs")


@pytest.fixture
def short_leases(workplace: Workplace) -> None:
    """Have leases end soon that nobody renews."""
    workplace.environment.update(SHORT_LEASES)


@pytest.fixture
def notes(workplace: Workplace) -> Notes:
    return Notes(workplace)


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this process short timings and a directory of its own for the jobs; returns the directory."""
    return hurried(tmp_path, monkeypatch)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def led(quick: Path) -> Led:
    return Led(quick)


@pytest.fixture(scope="module")
def quick_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        yield hurried(tmp_path_factory.mktemp("quick"), patch)


def hurried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {**QUICK, "HA_FILES": (tmp_path / "jobs").as_uri()}.items():
        monkeypatch.setenv(name, value)
    for name in ("HA_CONFIG", "HA_ZOOKEEPER", "HA_JOB", "HA_BELIEF", "HA_CONTENDER", "HA_LISTEN", "HA_HISTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "jobs"


@pytest.fixture
def unthrottled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the log lines of this test as if none had been written before."""
    for name in ("_next", "_left_out"):
        monkeypatch.setattr(THROTTLE, name, {})
