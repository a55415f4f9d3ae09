"""The guard of a sidecar that was killed: it waits for a successor, and for no longer than it may."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.program.deadline_file import DeadlineWriter
from ha.sidecar.command.guarded_command import Door, GuardedCommand
from store.clock import now
from tests.patience import PATIENCE_S
from tests.unit.ha.programs import alive
from tests.unit.ha.sidecar.command.test_guard import POLITE, STAYS, TELL, Children
from tests.unit.ha.waiting import wait_until

pytestmark = pytest.mark.programs

LONG = 3600.0


class Left:
    def __init__(self, directory: Path) -> None:
        self.children = Children(directory)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door.bind(str(directory / "guard.socket"))
        self.door.listen(8)

    @property
    def belief(self) -> DeadlineWriter:
        return self.children.belief

    def start(self, source: str, within: float = LONG, grant: Path | None = None) -> GuardedCommand:
        environment = {"PLACE": str(self.children.directory), "HA_SPARK_JVM": self.children.jvm_file}
        door = Door(self.door.fileno(), within)
        command = [sys.executable, "-c", source]
        child = GuardedCommand(command, environment, self.belief.path, [self.listener.fileno()], grant, None, door)
        self.children.started.append(child)
        return child

    def pid(self) -> int:
        return self.children.pid("pid")

    def connect(self) -> tuple[socket.socket, str, list[int]]:
        """Connect as a successor does; returns the connection, the greeting, and what is handed over."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(PATIENCE_S)
        connection.connect(str(self.children.directory / "guard.socket"))
        said, handed, _, _ = socket.recv_fds(connection, 100, 4)
        return connection, said.decode(), list(handed)

    def successor(self) -> socket.socket:
        """Connect, and close what is handed over."""
        connection, _, handed = self.connect()
        os.close(handed[0])
        return connection

    def end(self) -> None:
        self.belief.write(0.0, 0.0)
        self.children.end()
        self.listener.close()
        self.door.close()


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Left]:
    made = Left(tmp_path)
    yield made
    made.end()


def test_a_successor_gets_the_listener_and_gives_the_orders(left: Left) -> None:
    child = left.start(STAYS)
    pid = left.pid()
    child.abandon()
    connection, said, handed = left.connect()
    with connection, socket.socket(fileno=handed[0]) as listener:
        assert said == f"hybrid-ha-guard 1 {child.pid}\n"
        assert listener.getsockname() == left.listener.getsockname()
        assert alive(pid)
        connection.send(b"T")
        assert connection.recv(2) == bytes([128 + signal.SIGTERM])
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert child.wait() == 128 + signal.SIGTERM
    assert not alive(pid)


def test_nobody_is_let_in_while_there_is_a_sidecar(left: Left) -> None:
    child = left.start(STAYS)
    left.pid()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as early:
        early.settimeout(0.3)  # longer than a look of the guard
        early.connect(str(left.children.directory / "guard.socket"))
        with pytest.raises(TimeoutError):
            early.recv(1)
        child.kill()
        child.wait()


def test_a_command_that_ends_without_a_sidecar_tells_its_code_to_the_successor(left: Left) -> None:
    child = left.start(TELL + "tell('pid', os.getpid())\nwhile not os.path.exists(os.environ['PLACE'] + '/end'): "
                       "time.sleep(0.01)\nsys.exit(3)")  # fmt: skip
    pid = left.pid()
    child.abandon()
    (left.children.directory / "end").touch()
    wait_until(lambda: not alive(pid))
    with left.successor() as connection:
        assert select.select([connection], [], [], PATIENCE_S)[0]
        with pytest.raises(subprocess.TimeoutExpired):  # its lock keeps the directory until the successor has its own
            child._guard.wait(0.3)
        assert connection.recv(2) == b"\x03"
    assert child.wait() == 3


def test_a_sidecar_may_be_lost_twice(left: Left) -> None:
    child = left.start(STAYS)
    pid = left.pid()
    child.abandon()
    for _ in range(2):
        left.successor().close()
    with left.successor() as connection:
        assert alive(pid)
        connection.send(b"K")
        assert connection.recv(2) == bytes([128 + signal.SIGKILL])
    assert not alive(pid)


def test_a_command_that_was_asked_to_end_has_not_finished_whoever_hears_of_it(left: Left) -> None:
    child = left.start(POLITE)
    left.pid()
    child.terminate()
    child.abandon()
    with left.successor() as connection:
        assert connection.recv(2) == bytes([128 + signal.SIGTERM])


def test_without_a_successor_it_is_killed_in_time(left: Left, capfd: pytest.CaptureFixture[str]) -> None:
    child = left.start(STAYS, within=0.3)
    pid = left.pid()
    began = now()
    child.abandon()
    assert child.wait() == 128 + signal.SIGKILL
    assert now() - began >= 0.3
    assert not alive(pid)
    assert "ha: the sidecar is gone and no other came: the command is killed." in capfd.readouterr().err
    left.door.close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as late, pytest.raises(ConnectionRefusedError):
        late.connect(str(left.children.directory / "guard.socket"))


@pytest.mark.parametrize("connects", [False, True])
def test_the_deadline_counts_however_long_a_successor_may_take(left: Left, *, connects: bool) -> None:
    child = left.start(STAYS, within=LONG)
    pid = left.pid()
    left.belief.write(now() + 0.2, now() + 0.4)
    child.abandon()
    if connects:  # and then hangs
        with left.successor() as connection:
            assert connection.recv(2) == bytes([128 + signal.SIGKILL])
    assert child.wait() == 128 + signal.SIGKILL
    assert not alive(pid)


def test_a_successor_that_is_there_has_until_the_deadline(left: Left) -> None:
    """The time for its coming does not count any more."""
    child = left.start(STAYS, within=0.5)
    pid = left.pid()
    child.abandon()
    with left.successor():
        end = now() + 1.0
        wait_until(lambda: now() > end)
        assert alive(pid)


def test_a_command_that_warms_up_waits_for_no_successor(left: Left) -> None:
    child = left.start(STAYS, grant=left.children.directory / "grant")
    pid = left.pid()
    child.abandon()
    assert child.wait() == 128 + signal.SIGKILL
    assert not alive(pid)


def test_a_warm_command_that_was_granted_the_job_waits_for_one(left: Left) -> None:
    grant = left.children.directory / "grant"
    child = left.start(STAYS, grant=grant)
    pid = left.pid()
    grant.touch()
    child.abandon()
    with left.successor():
        assert alive(pid)


def test_the_listener_stays_open_until_the_command_is_gone(left: Left) -> None:
    """Or a standby would take the process for gone, and seize the lease."""
    child = left.start(STAYS, within=LONG)
    left.pid()
    address = left.listener.getsockname()
    left.listener.close()
    child.abandon()
    socket.create_connection(address).close()
    left.belief.write(0.0, 0.0)
    child.wait()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
