"""Fixtures of Flink's scenarios: jobs in a test's own directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.leader.faulty import Place, opened

QUICK = {
    "HA_SHORT_TTL": "4",
    "HA_LONG_TTL": "20",
    "HA_SESSION_TIMEOUT": "4",
    "HA_HAND_OVER": "0.2",
    "HA_STOP_GRACE": "20",
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A root directory for jobs, with faults on demand."""
    yield from opened(tmp_path / "jobs")


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings of this very process: small timings, jobs in a directory of the test's own. Returns the directory."""
    for name, value in {**QUICK, "HA_FILES": (tmp_path / "jobs").as_uri()}.items():
        monkeypatch.setenv(name, value)
    for name in ("HA_CONFIG", "HA_ZOOKEEPER", "HA_JOB", "HA_BELIEF", "HA_CONTENDER", "HA_LISTEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "jobs"
