"""The liveness socket over real sockets: a process, the standbys that watch it, and faults on both sides."""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.config.settings import Settings
from ha.daemon import liveness_socket
from ha.daemon.liveness_socket import LivenessSocket, open_liveness_socket
from ha.sandbox.ports import free_ports
from leader.contender.runtime import Runtime
from leader.election.ports import Heard, ProbeEvent
from leader.election.suspicion import Suspicion
from leader.errors import InvalidSettings
from leader.layout.contact import GREETING_BYTES, ContactAddress, ContactEntry, ReleaseNotice
from leader.layout.lease import Lease, Mode
from leader.layout.tree import NOBODY
from leader.timing import Timing
from store.open import open_files
from tests.limits import HANGS_S, at_most
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

ON = Settings.of(zookeeper="127.0.0.1:2181")
SERVERS = (("127.0.0.1", 2181),)
RELEASED = Lease(8, Mode.RELEASED, 0, NOBODY, "", "a")

STANDS_BY = """
import signal, socket, sys
from ha.daemon.liveness_socket import LivenessSocket
made = LivenessSocket(socket.create_server(("127.0.0.1", int(sys.argv[1]))), "127.0.0.1", 0)
print(made.contact.port, made.contact.process, flush=True)
signal.pause()
"""


class Process:
    def __init__(self, listen: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", STANDS_BY, str(listen)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[4]
        )
        assert self._process.stdout is not None
        with at_most(HANGS_S, self._process.kill):  # its line then ends
            port, process = self._process.stdout.readline().decode().split()
        self.contact = ContactAddress("127.0.0.1", int(port), process)

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def end(self) -> None:
        self._process.kill()
        self._process.wait(HANGS_S)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Standby:
    """A runtime that watches processes; records those that it found gone, in order."""

    def __init__(self, folder: Path) -> None:
        files = open_files(folder.as_uri())
        self._runtime = Runtime("b", Timing(), files, None)
        self._suspicion = Suspicion(self._runtime, Timing().session_timeout, lambda: 0.5)
        self.gone: queue.SimpleQueue[ContactAddress] = queue.SimpleQueue()
        self._files = files

    def close(self) -> None:
        self._runtime.close()
        self._files.close()

    def watch(self, contact: ContactAddress) -> None:
        """Watch a process from now on; returns once it is connected."""
        self._runtime.ask(lambda: self._suspicion.follow(contact, self.gone.put), PATIENCE_S)
        wait_until(lambda: self._runtime.ask(lambda: self._suspicion._monitors[contact]._met, PATIENCE_S))

    def meet(self, where: ContactAddress) -> Heard:
        heard = queue.SimpleQueue[Heard]()
        self._runtime.post(lambda: self._runtime.probe(where, heard.put))
        return heard.get(timeout=PATIENCE_S)


@pytest.fixture
def standby(tmp_path: Path) -> Iterator[Standby]:
    made = Standby(tmp_path)
    yield made
    made.close()


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    made: list[Process] = []
    yield made
    for each in made:
        each.end()


def test_a_process_that_is_killed_is_gone(standby: Standby, processes: list[Process]) -> None:
    processes.append(Process())
    standby.watch(processes[0].contact)
    processes[0].signal(signal.SIGKILL)
    assert standby.gone.get(timeout=PATIENCE_S) == processes[0].contact


def test_a_process_that_is_stopped_is_not_gone(standby: Standby, processes: list[Process]) -> None:
    """A second process is killed later: when that is noticed, a stopped one would have been noticed too."""
    processes += [Process(), Process()]
    stopped, killed = processes[0].contact, processes[1].contact
    for contact in (stopped, killed):
        standby.watch(contact)
    processes[0].signal(signal.SIGSTOP)
    processes[1].signal(signal.SIGKILL)
    assert standby.gone.get(timeout=PATIENCE_S) == killed
    assert standby.gone.empty()
    processes[0].signal(signal.SIGKILL)
    assert standby.gone.get(timeout=PATIENCE_S) == stopped


def test_a_port_that_another_process_has_by_then(standby: Standby) -> None:
    """The socket passes from one process to the next, so that no connection is refused."""
    with socket.create_server(("127.0.0.1", 0)) as shared:
        first = LivenessSocket(shared.dup(), "127.0.0.1", 0)
        standby.watch(first.contact)
        first.close()
        second = LivenessSocket(shared.dup(), "127.0.0.1", 0)
        assert standby.gone.get(timeout=PATIENCE_S) == first.contact
        assert standby.meet(first.contact) is ProbeEvent.ANOTHER_PROCESS
        assert standby.meet(second.contact) is ProbeEvent.GREETED
        second.close()


def test_as_long_as_somebody_holds_the_socket_nobody_is_gone(standby: Standby) -> None:
    """The guard of a command holds the socket in the same way."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        made = LivenessSocket(held.dup(), "127.0.0.1", 0)
        standby.watch(made.contact)
        made.close()
        held.setblocking(True)
        held.settimeout(PATIENCE_S)
        with held.accept()[0]:  # the standby has called again by now, and nobody greets it
            assert standby.gone.empty()
    assert standby.gone.get(timeout=PATIENCE_S) == made.contact


def test_a_port_that_is_asked_for_can_be_had_again_at_once(standby: Standby, processes: list[Process]) -> None:
    processes.append(Process())
    where = processes[0].contact
    standby.watch(processes[0].contact)
    processes[0].end()
    assert standby.gone.get(timeout=PATIENCE_S) == processes[0].contact
    again = open_liveness_socket(Settings.of(zookeeper="x", suspicion_address=f"127.0.0.1:{where.port}"), SERVERS)
    assert again is not None
    assert standby.meet(again.contact) is ProbeEvent.GREETED
    again.close()


@pytest.fixture
def made() -> Iterator[LivenessSocket]:
    opened = open_liveness_socket(ON, SERVERS)
    assert opened is not None
    yield opened
    opened.close()


def connect(to: LivenessSocket) -> socket.socket:
    connection = socket.create_connection((to.contact.host, to.contact.port))
    connection.settimeout(PATIENCE_S)
    return connection


def read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        assert more, "it is closed"
        found += more
    return found


def test_everybody_is_greeted_and_no_more_is_said_to_who_speaks(made: LivenessSocket) -> None:
    with connect(made) as one, connect(made) as other:
        for each in (one, other):
            assert each.recv(1000) == made.contact.greeting
        one.send(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert one.recv(1000) == b"", "who says something is let go"
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.recv(1000)


def test_all_that_are_connected_are_told_of_a_release(made: LivenessSocket) -> None:
    notices = [ReleaseNotice(job, RELEASED) for job in ("orders", "payments")]
    with connect(made) as one, connect(made) as other:
        for each in (one, other):
            assert each.recv(1000) == made.contact.greeting
        for notice in notices:
            made.tell(notice)
        for each in (one, other):
            assert read(each, sum(len(notice.line) for notice in notices)) == b"".join(each.line for each in notices)


def test_what_was_told_is_sent_before_the_end() -> None:
    opened = open_liveness_socket(ON, SERVERS)
    assert opened is not None
    with connect(opened) as one:
        assert one.recv(1000) == opened.contact.greeting
        opened.tell(ReleaseNotice("orders", RELEASED))
        opened.close()
        assert one.recv(1000) == ReleaseNotice("orders", RELEASED).line
        opened.tell(ReleaseNotice("orders", RELEASED))  # too late, and no error


def test_who_does_not_read_is_let_go_and_the_others_are_told(made: LivenessSocket) -> None:
    line = ReleaseNotice("orders", RELEASED)
    with connect(made) as deaf, connect(made) as other:
        for each in (deaf, other):
            assert each.recv(1000) == made.contact.greeting
        wait_until(lambda: len(made._known) == 2)  # a connection is greeted before it is noted
        told = 0
        while len(made._known) == 2:  # until the buffers of the one that does not read are full
            for _ in range(100):
                made.tell(line)
            told += 100 * len(line.line)
            assert read(other, 100 * len(line.line)) == 100 * line.line
        assert told > len(line.line)


def open_with(most: int, monkeypatch: pytest.MonkeyPatch) -> LivenessSocket:
    monkeypatch.setattr(liveness_socket, "most_connections", lambda: most)
    opened = open_liveness_socket(ON, SERVERS)
    assert opened is not None
    return opened


def test_whoever_is_too_many_is_greeted_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = open_with(2, monkeypatch)
    with connect(made) as first, connect(made) as second:
        for each in (first, second):
            assert each.recv(GREETING_BYTES) == made.contact.greeting
        with connect(made) as third:
            assert third.recv(GREETING_BYTES) == made.contact.greeting
            assert third.recv(1) == b""
        for each in (first, second):
            each.setblocking(False)
            with pytest.raises(BlockingIOError):
                each.recv(1)
    made.close()


def test_a_connection_that_has_lasted_goes_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness_socket, "SPARED_S", 0.0)
    made = open_with(1, monkeypatch)
    with connect(made) as first, connect(made) as second:
        assert first.recv(1000) == second.recv(1000) == made.contact.greeting
        assert first.recv(1) == b""
    made.close()


def test_a_standby_whose_connection_is_one_too_many_suspects_nothing(
    standby: Standby, processes: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed later is noticed first."""
    made = open_with(0, monkeypatch)
    processes.append(Process())
    standby.watch(made.contact)
    standby.watch(processes[0].contact)
    with connect(made) as another:
        assert another.recv(GREETING_BYTES) == made.contact.greeting
    processes[0].signal(signal.SIGKILL)
    assert standby.gone.get(timeout=PATIENCE_S) == processes[0].contact
    assert standby.gone.empty()
    made.close()


@pytest.mark.usefixtures("unthrottled")
def test_when_no_descriptor_is_left_a_standby_is_greeted_and_closed(
    made: LivenessSocket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(liveness_socket, "ACCEPT_PAUSE_S", 0.0)
    accept, failures = socket.socket.accept, [OSError(24, "Too many open files"), ConnectionAbortedError()]

    def scarce(self: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", scarce)
    with connect(made) as one:
        assert one.recv(GREETING_BYTES) == made.contact.greeting
        assert one.recv(1) == b""
    assert [record.message for record in caplog.records] == [
        "No other process can watch this one: Too many open files. Raise `ulimit -n`."
    ]


def test_it_listens_where_zookeeper_is_reached_from() -> None:
    for servers in (SERVERS, (("no-such-host.invalid", 1), *SERVERS)):
        made = open_liveness_socket(ON, servers)
        assert made is not None
        assert made.contact.host == "127.0.0.1"
        made.close()


def test_an_address_that_other_hosts_can_use_comes_first() -> None:
    own = liveness_socket._source_address("192.0.2.1", 9)  # nobody has that address, and nothing is sent
    if not own or own.startswith("127."):
        pytest.skip("This host has no other address.")
    made = open_liveness_socket(ON, (("127.0.0.1", 9), ("192.0.2.1", 9)))
    assert made is not None
    assert made.contact.host == own
    made.close()


def test_nowhere_without_zookeeper_or_when_it_is_off(caplog: pytest.LogCaptureFixture) -> None:
    assert open_liveness_socket(Settings(), ()) is None
    assert open_liveness_socket(Settings.of(zookeeper="127.0.0.1:2181", suspicion=False), SERVERS) is None
    assert caplog.records == []
    assert open_liveness_socket(ON, (("no-such-host.invalid", 1),)) is None
    assert "set suspicion_address" in caplog.text


def test_what_others_connect_to_can_be_another_address_than_what_is_listened_on() -> None:
    (free,) = free_ports(1)
    for address, host, port in (
        ("127.0.0.9:0", "127.0.0.9", None),
        (f"localhost:{free}", "127.0.0.1", free),
        (f"192.0.2.1:{free}", "0.0.0.0", free),  # noqa: S104
        (f"0.0.0.0:{free}", "127.0.0.1", free),
    ):
        made = open_liveness_socket(Settings.of(zookeeper="x", suspicion_address=address), SERVERS)
        assert made is not None
        told = made.contact
        assert made._socket.getsockname()[0] == host
        assert told.port == (port or made._socket.getsockname()[1])
        assert ContactEntry.parse(ContactEntry(1, NOBODY, told).name) == ContactEntry(1, NOBODY, told)
        made.close()


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("suspicion_address", "host", "suspicion_address is 'host': it must be host:port"),
        ("suspicion_address", "no-such-host.invalid:1", "which is not a known host"),
        ("suspicion_address", "fe80::1%lo:1", "which has only link-local addresses"),
    ],
)
def test_wrong_addresses(setting: str, value: str, sentence: str) -> None:
    with pytest.raises(InvalidSettings, match=sentence):
        open_liveness_socket(ON.replace(**{setting: value}), SERVERS)
