"""Contenders of both baselines, on the sandbox's real ZooKeeper."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.benchmarks.contenders import MODULES, Contenders


@pytest.fixture(params=sorted(MODULES))
def contenders(request: pytest.FixtureRequest, zookeeper_hosts: str, tmp_path: Path) -> Iterator[Contenders]:
    with Contenders(request.param, zookeeper_hosts, tmp_path) as made:
        yield made
    for log in sorted(tmp_path.glob("*.log")):
        sys.stdout.write(f"--- {log.name}\n{log.read_text()[-3000:]}\n")
