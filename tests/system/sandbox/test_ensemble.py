"""Tests of three real ZooKeeper servers that lose their quorum and get it back."""

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import KeeperState

from ha.sandbox import Sandbox
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path_factory.mktemp("ensemble"))
    made.up(zookeepers=3)
    yield made
    made.down(wipe=True)


def roles(box: Sandbox) -> dict[str, str | None]:
    return {server.name: server.role for server in box.status() if server.kind == "zookeeper"}


def complete(box: Sandbox) -> dict[str, str | None]:
    """Return who has which role, once all have one: a server that is slow has none for a moment."""
    found = roles(box)
    return found if sorted(filter(None, found.values())) == ["follower", "follower", "leader"] else {}


def test_a_server_without_quorum_only_serves_reads_until_it_has_one_again(box: Sandbox) -> None:
    before = wait_until(lambda: complete(box))
    client = KazooClient(hosts=box.environment()["HA_ZOOKEEPER"])
    client.start(timeout=PATIENCE_S)
    client.create("/kept", b"value")
    client.stop()
    client.close()

    survivor, *lost = sorted(before)
    for name in lost:
        box.kill(name)
    wait_until(lambda: roles(box)[survivor] == "read-only", what="the survivor is read-only")

    reader = KazooClient(hosts=box.environment()["HA_ZOOKEEPER"], read_only=True)
    reader.start(timeout=PATIENCE_S)
    assert reader.client_state == KeeperState.CONNECTED_RO
    assert reader.get("/kept")[0] == b"value"
    reader.stop()
    reader.close()

    for name in lost:
        box.start(name)
    for name in before:
        box.wait_ready(name, PATIENCE_S)
    wait_until(lambda: complete(box))
    writer = KazooClient(hosts=box.environment()["HA_ZOOKEEPER"])
    writer.start(timeout=PATIENCE_S)
    writer.delete("/kept")
    writer.stop()
    writer.close()


def test_a_wiped_ensemble_serves_again(box: Sandbox) -> None:
    box.wipe_zookeeper()
    wait_until(lambda: complete(box))
