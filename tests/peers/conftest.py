"""Fixtures of the peers' scenarios: jobs in a directory of the test's own, and a ZooKeeper server to be hurt."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.leader.faulty import Place, opened
from tests.store.zookeeper.helpers import Server, free_ports

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


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("zookeeper"), [(free_ports(1)[0], 0, 0)])
    yield made
    made.kill()


@pytest.fixture
def server(own_server: Server) -> Server:
    """A ZooKeeper server that may be hurt; it is up, or on its way."""
    own_server.up()
    return own_server
