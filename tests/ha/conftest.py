"""Fixtures for tests of what people run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ha.noting import Notes
from tests.ha.programs import QUICK, Workplace


@pytest.fixture
def workplace(tmp_path: Path) -> Iterator[Workplace]:
    """Where real processes contend, on files of this host alone."""
    made = Workplace(tmp_path)
    yield made
    made.end()


@pytest.fixture
def notes(workplace: Workplace) -> Notes:
    """What commands note there."""
    return Notes(workplace)


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings of this very process: small timings, jobs in a directory of the test's own. Returns the directory."""
    for name, value in {**QUICK, "HA_FILES": (tmp_path / "jobs").as_uri()}.items():
        monkeypatch.setenv(name, value)
    for name in ("HA_CONFIG", "HA_ZOOKEEPER", "HA_JOB", "HA_BELIEF", "HA_CONTENDER", "HA_LISTEN", "HA_HISTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "jobs"
