"""Tests of the life cycle of a real sandbox with one ZooKeeper and one NameNode."""

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from kazoo.client import KazooClient

from ha.sandbox import Sandbox, SandboxError
from ha.sandbox.server_process import condition, send, spawn, wait_gone
from ha.sandbox.state import Directory
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

NAMES = ["zookeeper-1", "namenode-1", "datanode-1"]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    box = Sandbox(tmp_path_factory.mktemp("own"))
    yield box
    box.down(wipe=True)


@pytest.fixture
def box(own: Sandbox) -> Sandbox:
    own.up()
    return own


def states(box: Sandbox) -> dict[str, str]:
    return {server.name: server.state for server in box.status()}


@contextlib.contextmanager
def connected(box: Sandbox) -> Iterator[KazooClient]:
    client = KazooClient(hosts=box.environment()["HA_ZOOKEEPER"], timeout=10.0)
    client.start(timeout=PATIENCE_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_up_tells_its_steps_and_then_that_nothing_is_to_do(own: Sandbox) -> None:
    own.down(wipe=True)
    steps: list[str] = []
    assert own.up(progress=steps.append)
    assert "Starting zookeeper-1, namenode-1, datanode-1" in steps
    assert "Waiting until everything serves" in steps
    steps.clear()
    assert not own.up(progress=steps.append)
    assert steps == []


def test_status_tells_what_each_server_is(box: Sandbox) -> None:
    roles = [("zookeeper-1", "up", "standalone"), ("namenode-1", "up", "active"), ("datanode-1", "up", None)]
    wait_until(lambda: [(server.name, server.state, server.role) for server in box.status()] == roles)
    assert box.names() == NAMES
    assert box.active_namenode() == "namenode-1"


def test_the_environment_leads_to_it(box: Sandbox) -> None:
    environment = box.environment()
    assert set(environment) == {
        *("HA_FILES", "HA_ZOOKEEPER", "HADOOP_CONF_DIR", "HADOOP_USER_NAME", "HA_SANDBOX_WEBHDFS")
    }
    assert environment["HA_FILES"].startswith("hdfs://127.0.0.1:")
    assert {path.name for path in Path(environment["HADOOP_CONF_DIR"]).iterdir()} == {"core-site.xml", "hdfs-site.xml"}
    with connected(box) as client:
        assert client.create("/short", b"", ephemeral=True) == "/short"


def test_up_repairs_what_was_killed_paused_or_put_in_safe_mode(box: Sandbox) -> None:
    box.kill("datanode-1")
    box.pause("zookeeper-1")
    box.safe_mode(on=True)
    wait_until(lambda: states(box) == {"zookeeper-1": "paused", "namenode-1": "up", "datanode-1": "down"})
    steps: list[str] = []
    assert box.up(progress=steps.append)
    assert {"Resuming zookeeper-1", "Starting datanode-1", "Leaving safe mode"} <= set(steps)
    wait_until(lambda: set(states(box).values()) == {"up"})


def test_a_server_comes_back_on_its_port_and_data(box: Sandbox) -> None:
    before = {server.name: server.port for server in box.status()}
    with connected(box) as client:
        client.ensure_path("/kept")
    for name in NAMES:
        box.kill(name)
        wait_until(lambda name=name: states(box)[name] == "down")  # type: ignore[misc]
        box.start(name)
        with pytest.raises(SandboxError, match=f"{name} is running already"):
            box.start(name)
        box.wait_ready(name, PATIENCE_S)
    assert {server.name: server.port for server in box.status()} == before
    with connected(box) as client:
        assert client.exists("/kept") is not None


def test_a_wiped_zookeeper_is_empty(box: Sandbox) -> None:
    with connected(box) as client:
        client.ensure_path("/gone")
    box.wipe_zookeeper()
    # A new client: one that saw the old server knows later transactions, and is refused for good.
    with connected(box) as client:
        assert client.exists("/gone") is None


def test_safe_mode_refuses_writes_until_it_is_left(box: Sandbox) -> None:
    box.safe_mode(on=True)
    with pytest.raises(SandboxError, match="namenode-1 is not ready after 0 seconds: it is in safe mode"):
        box.wait_ready("namenode-1", 0.1)
    box.safe_mode(on=False)
    box.wait_ready("namenode-1", PATIENCE_S)


def test_waiting_for_a_paused_or_dead_server_ends(box: Sandbox) -> None:
    box.pause("zookeeper-1")
    with pytest.raises(
        SandboxError, match=r"(?s)zookeeper-1 is not ready after .*the last lines of .*zookeeper-1\.log"
    ):
        box.wait_ready("zookeeper-1", 0.1)
    box.resume("zookeeper-1")
    box.wait_ready("zookeeper-1", PATIENCE_S)
    box.stop("zookeeper-1")
    with pytest.raises(SandboxError, match=r"(?s)zookeeper-1 has ended; the last lines of .*zookeeper-1\.log"):
        box.wait_ready("zookeeper-1", PATIENCE_S)
    for act in (box.pause, box.resume):
        with pytest.raises(SandboxError, match="zookeeper-1 is down"):
            act("zookeeper-1")


def test_a_port_that_was_taken_meanwhile_is_told(box: Sandbox) -> None:
    port = next(server.port for server in box.status() if server.name == "zookeeper-1")
    box.kill("zookeeper-1")
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(SandboxError, match=rf"Port {port} \(client of zookeeper-1\) is taken by another process"):
            box.start("zookeeper-1")
        with pytest.raises(SandboxError, match=f"Port {port}"):
            box.up()
    assert box.up()


def test_a_pid_that_belongs_to_another_process_now_is_not_touched(box: Sandbox, tmp_path: Path) -> None:
    stranger = spawn([sys.executable, "-c", "import time; time.sleep(600)"], os.environ, tmp_path / "log")
    box.kill("datanode-1")
    directory = Directory(box.directory)
    state = directory.load()
    assert state is not None
    server = state.named("datanode-1")
    assert server.process is not None
    server.process = msgspec.structs.replace(server.process, pid=stranger.pid)
    directory.save(state)
    try:
        assert states(box)["datanode-1"] == "down"
        for end in (box.stop, box.kill):
            end("datanode-1")
        box.down()
        assert box.up()
        assert condition(stranger) == "up"
    finally:
        send(stranger, signal.SIGKILL)
        assert wait_gone(stranger, 10)


def test_a_server_that_cannot_start_shows_its_log(box: Sandbox) -> None:
    box.kill("namenode-1")
    version = box.directory / "data" / "namenode-1" / "name" / "current" / "VERSION"
    content = version.read_text()
    version.write_text("damaged")
    with pytest.raises(SandboxError, match=r"(?s)namenode-1 has ended; the last lines of .*namenode-1\.log.*Exiting"):
        box.up()
    version.write_text(content)
    assert box.up()


def test_another_size_is_refused(box: Sandbox) -> None:
    with pytest.raises(SandboxError, match=r"has 1 ZooKeeper server\(s\), not 3: take it down with --wipe first"):
        box.up(zookeepers=3)
    with pytest.raises(SandboxError, match=r"has 1 NameNode\(s\), not 2"):
        box.up(namenodes=2)
    with pytest.raises(SandboxError, match="namenode-1 is not one of two NameNodes"):
        box.failover("namenode-1")


def test_down_keeps_the_data_and_wipe_does_not(box: Sandbox) -> None:
    assert box.down()
    assert set(states(box).values()) == {"down"}
    assert not box.down()
    assert json.loads((box.directory / "sandbox.json").read_text())["formatted"]
    assert not box.down(wipe=True)
    assert not box.directory.exists()
