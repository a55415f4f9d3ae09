"""Tests of two real NameNodes with a shared journal: one takes over from the other with all data."""

from collections.abc import Iterator

import pytest
from hdfs.client import InsecureClient
from hdfs_native import Client

from ha.sandbox import Sandbox
from ha.sandbox.state import Directory
from tests.limits import HANGS_S
from tests.unit.ha.waiting import wait_until

pytestmark = [pytest.mark.hdfs, pytest.mark.slow]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path_factory.mktemp("namenodes"))
    made.up(namenodes=2)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME"):
            patch.setenv(name, made.environment()[name])
        yield made
    made.down(wipe=True)


def roles(box: Sandbox) -> dict[str, str | None]:
    """Ask until all running NameNodes have answered: a busy one may take longer than ``status`` waits."""

    def answered() -> dict[str, str | None]:
        found = [server for server in box.status() if server.kind == "namenode"]
        all_have = all(server.role for server in found if server.state == "up")
        return {server.name: server.role for server in found} if all_have else {}

    return wait_until(answered, HANGS_S)


def write(box: Sandbox, path: str) -> None:
    """Write over WebHDFS through the active NameNode: a paused one would let HdfsCLI wait without end."""
    state = Directory(box.directory).load()
    assert state is not None
    active = wait_until(box.active_namenode, HANGS_S)  # its answer may be slow
    assert active is not None
    port = state.named(active).ports["http"]
    client = InsecureClient(f"http://127.0.0.1:{port}", user=box.environment()["HADOOP_USER_NAME"], timeout=30)
    client.write(path, data=path.encode())


def names(box: Sandbox) -> set[str]:
    client = Client(box.environment()["HA_FILES"].removesuffix("/ha"))
    return {status.path for status in client.list_status("/", recursive=False)}


def test_it_fails_over_when_asked_and_back_when_the_active_one_is_killed_or_paused(box: Sandbox) -> None:
    assert box.environment()["HA_FILES"] == "hdfs://sandbox/ha"
    assert box.environment()["HA_SANDBOX_WEBHDFS"] == "webhdfs://sandbox/ha"
    assert roles(box) == {"namenode-1": "active", "namenode-2": "standby"}
    write(box, "/first")

    box.failover("namenode-2")
    assert roles(box) == {"namenode-1": "standby", "namenode-2": "active"}
    assert "/first" in names(box)
    write(box, "/second")

    box.kill("namenode-2")
    box.failover("namenode-1")
    assert roles(box) == {"namenode-1": "active", "namenode-2": None}
    assert {"/first", "/second"} <= names(box)
    box.start("namenode-2")
    box.wait_ready("namenode-2", 60)

    box.pause("namenode-1")
    box.failover("namenode-2")
    assert box.active_namenode() == "namenode-2"
    write(box, "/third")
    assert box.up()
    assert set(roles(box).values()) == {"active", "standby"}
    assert {"/first", "/second", "/third"} <= names(box)


def test_down_and_up_keep_the_data(box: Sandbox) -> None:
    write(box, "/kept")
    box.down()
    assert box.up()
    assert set(roles(box).values()) == {"active", "standby"}
    assert "/kept" in names(box)
