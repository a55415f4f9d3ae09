"""Stacks of a real JVM, here that of a ZooKeeper server: the sidecar asks the JVM itself, without starting another."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.sandbox.ports import free_ports
from ha.sidecar.command import thread_dumps
from tests.unit.ha.waiting import wait_until
from tests.unit.store.zookeeper.helpers import Server

pytestmark = pytest.mark.zookeeper

NOWHERE = Path("nowhere")


def pid_of(server: Server) -> int:
    """Return the process id of a server that serves: earlier, the JVM may not handle signals."""

    def serves() -> bool:
        host, _, port = server.hosts.rpartition(":")
        with socket.socket() as trying:
            return trying.connect_ex((host, int(port))) == 0

    wait_until(serves)
    assert server._process is not None
    return server._process.pid


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path, [(free_ports(1)[0], 0, 0)])
    made.properties.append("-XX:+DisableAttachMechanism")
    made.up()
    yield made
    made.kill()


def test_a_jvm_tells_its_stacks_again_and_again_and_none_while_it_is_stopped(server: Server) -> None:
    pid = pid_of(server)
    for _ in range(2):
        found = thread_dumps.thread_dumps(0, pid, NOWHERE)
        assert f"JVM, process {pid}:" in found
        assert '"main"' in found
        assert "QuorumPeerMain" in found
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: thread_dumps._state(pid) == "T")
    try:
        found = thread_dumps.thread_dumps(0, pid, NOWHERE)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert f"JVM: process {pid} is stopped" in found


def test_a_jvm_that_may_not_be_asked_writes_its_stacks_to_its_output(
    closed: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_dumps, "DUMP_S", 0.2)
    log, pid = closed.home / "log", pid_of(closed)
    found = thread_dumps.thread_dumps(0, pid, NOWHERE)
    assert "no stacks within 0.2 s; perhaps they are in the command's output" in found
    wait_until(lambda: b"Full thread dump" in log.read_bytes())
    assert not Path(f"/proc/{pid}/cwd/.attach_pid{pid}").exists()
