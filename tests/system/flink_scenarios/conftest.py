"""Fixtures of Flink's scenarios: jobs in a test's own directory."""

from pathlib import Path

import pytest

from leader.layout.information import Record
from leader.layout.names import LeaderDirectory, newest
from store.local import LocalFiles
from tests.unit.leader.conftest import arena, ids, led, place, pytest_generate_tests

__all__ = ["arena", "ids", "led", "place", "pytest_generate_tests"]

QUICK = {
    "HA_SHORT_TTL": "10",
    "HA_LONG_TTL": "60",
    "HA_SESSION_TIMEOUT": "12",
    "HA_HAND_OVER": "0.2",
    "HA_STOP_GRACE": "20",
}


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this process leases that outlive a stall, and jobs in a directory of the test's own; returns that."""
    for name, value in {**QUICK, "HA_FILES": (tmp_path / "jobs").as_uri()}.items():
        monkeypatch.setenv(name, value)
    for name in ("HA_CONFIG", "HA_ZOOKEEPER", "HA_JOB", "HA_BELIEF", "HA_CONTENDER", "HA_LISTEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "jobs"


def record(jobs: Path) -> tuple[LeaderDirectory, Record]:
    files = LocalFiles(jobs)
    directory = newest([entry.name for entry in files.list("orders")])
    assert directory is not None
    return directory, Record.parse(entry.name for entry in files.list(f"orders/{directory.name}/record"))


def mode(jobs: Path) -> str:
    lease = record(jobs)[1].lease
    return lease.mode.value if lease else ""
