"""Quorum loss: two of three real ZooKeeper servers are gone; the third answers, but can decide nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import ha
from ha.sandbox.ports import free_ports
from tests.patience import PATIENCE_S
from tests.system.flink_scenarios.conftest import mode, record
from tests.unit.ha.waiting import wait_until
from tests.unit.store.zookeeper.helpers import Server

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    free = free_ports(9)
    ports = list(zip(free[:3], free[3:6], free[6:], strict=True))
    made = [Server(tmp_path / str(number), ports, number) for number in (1, 2, 3)]
    for each in made:
        each.up()
    yield made
    for each in made:
        each.kill()


def test_a_minority_that_is_left_moves_no_leader_and_fails_no_lookup(jobs: Path, servers: list[Server]) -> None:
    hosts = ",".join(each.hosts for each in servers)
    revoked: list[str] = []
    with (
        ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S, zookeeper=hosts) as leadership,
        ha.connect(zookeeper=hosts) as client,
    ):
        leadership.on_revoked(lambda: revoked.append("revoked"))
        wait_until(lambda: mode(jobs) == "zookeeper")
        wait_until(lambda: client.leader("orders", PATIENCE_S).source.value == "zookeeper")
        before = record(jobs)[0]

        for each in servers[:2]:
            each.kill()
        wait_until(lambda: mode(jobs) == "hdfs")
        wait_until(lambda: client.leader("orders", PATIENCE_S).source.value == "hdfs")
        assert leadership.is_leader()
        leadership.confirm({"rest": "a:2"})
        # Not at once: the server that is left may take connections, and answer, until it notices that it is alone.
        wait_until(lambda: dict(client.leader("orders", PATIENCE_S).endpoints) == {"rest": "a:2"})

        for each in servers[:2]:
            each.up()
        wait_until(lambda: mode(jobs) == "zookeeper")
        wait_until(lambda: client.leader("orders", PATIENCE_S).source.value == "zookeeper")
        wait_until(lambda: dict(client.leader("orders", PATIENCE_S).endpoints) == {"rest": "a:2"})
        assert leadership.is_leader()
        assert (record(jobs)[0], revoked) == (before, [])
