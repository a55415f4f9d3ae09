"""Fixtures: teams of real participants on the sandbox's real stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.sandbox import Sandbox
from tests.system.integration.participants import QUICK, Team, new_job


@pytest.fixture(scope="session")
def stores(hdfs_uri: str, zookeeper_hosts: str) -> dict[str, str]:
    return {"files": f"{hdfs_uri}/integration", "zookeeper": f"{zookeeper_hosts}/integration"}


@pytest.fixture
def job() -> str:
    return new_job()


@pytest.fixture
def durations() -> dict[str, str]:
    """The settings of a team that are in seconds; a test that waits for no expiry has ``lasting`` ones."""
    return QUICK


@pytest.fixture
def team(job: str, tmp_path: Path, stores: dict[str, str], durations: dict[str, str]) -> Iterator[Team]:
    with Team(job, tmp_path, {**durations, **stores}) as made:
        yield made


@pytest.fixture
def healed(sandbox: Sandbox) -> Iterator[Sandbox]:
    """The sandbox, for tests that break it: afterwards all its servers run again."""
    yield sandbox
    sandbox.up()
