"""A process that can be seen to end, over real sockets: it, whoever watches it, and what happens to both."""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ha import listener
from ha.listener import Listener, open_listener
from ha.settings import Settings
from leader import whereabouts
from leader.environment import Sign
from leader.errors import InvalidSettings
from leader.runtime import Runtime
from leader.suspicion import Suspicion
from leader.timing import Timing
from leader.whereabouts import GREETING_BYTES, Whereabouts
from store.opening import open_files
from tests.ha.waiting import wait_until

WITHIN = 20.0
"""Seconds for what takes milliseconds, on a machine that does other things."""

ON = Settings(zookeeper="127.0.0.1:2181")
SERVERS = (("127.0.0.1", 2181),)

STANDS_BY = """
import signal, socket, sys
from ha.listener import Listener
from leader import whereabouts
made = Listener(socket.create_server(("127.0.0.1", int(sys.argv[1]))), "127.0.0.1", 0)
print(whereabouts.encode("a", made.whereabouts).decode(), flush=True)
signal.pause()
"""


class Process:
    """A process of its own that listens."""

    def __init__(self, port: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", STANDS_BY, str(port)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        assert self._process.stdout is not None
        self.about = self._process.stdout.readline().strip()

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Standby:
    """A runtime that watches processes, and the names of those that it has found to be gone, in order."""

    def __init__(self, folder: Path) -> None:
        files = open_files(folder.as_uri())
        self._runtime = Runtime("b", Timing(), files, None)
        self._suspicion = Suspicion(self._runtime, Timing().session_timeout, lambda: 0.5)
        self.gone: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._files = files

    def close(self) -> None:
        self._runtime.close()
        self._files.close()

    def watch(self, name: str, about: bytes) -> None:
        """Watch it from now on; returns when it has been met."""
        where = whereabouts.decode(about)
        assert where is not None
        self._runtime.ask(lambda: self._suspicion.follow(name, about, self.gone.put), WITHIN)
        wait_until(lambda: self._runtime.ask(lambda: self._suspicion._watches[name]._met, WITHIN))

    def meet(self, where: Whereabouts) -> Sign:
        """What another connection to it says first."""
        heard = queue.SimpleQueue[Sign]()
        self._runtime.post(lambda: self._runtime.call(where, heard.put))
        return heard.get(timeout=WITHIN)


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
    standby.watch("a", processes[0].about)
    processes[0].signal(signal.SIGKILL)
    assert standby.gone.get(timeout=WITHIN) == "a"


def test_a_process_that_is_stopped_is_not_gone(standby: Standby, processes: list[Process]) -> None:
    """Another one is killed after it, so that it is known when the stopped one would have been found out."""
    processes += [Process(), Process()]
    for name, process in zip(("stopped", "killed"), processes, strict=True):
        standby.watch(name, process.about)
    processes[0].signal(signal.SIGSTOP)
    processes[1].signal(signal.SIGKILL)
    assert standby.gone.get(timeout=WITHIN) == "killed"
    assert standby.gone.empty()
    processes[0].signal(signal.SIGKILL)
    assert standby.gone.get(timeout=WITHIN) == "stopped"


def test_a_port_that_another_process_has_by_then(standby: Standby) -> None:
    """The socket is handed from one to the other, so that nobody is ever refused."""
    with socket.create_server(("127.0.0.1", 0)) as shared:
        first = Listener(shared.dup(), "127.0.0.1", 0)
        standby.watch("first", whereabouts.encode("a", first.whereabouts))
        first.close()
        second = Listener(shared.dup(), "127.0.0.1", 0)
        assert standby.gone.get(timeout=WITHIN) == "first"
        assert standby.meet(first.whereabouts) is Sign.ANOTHER
        assert standby.meet(second.whereabouts) is Sign.ITSELF
        second.close()


def test_as_long_as_somebody_holds_the_socket_nobody_is_gone(standby: Standby) -> None:
    """That is what the guard of a command does."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        made = Listener(held.dup(), "127.0.0.1", 0)
        standby.watch("a", whereabouts.encode("a", made.whereabouts))
        made.close()
        held.setblocking(True)
        held.settimeout(WITHIN)
        with held.accept()[0]:  # the standby has called again by now, and nobody greets it
            assert standby.gone.empty()
    assert standby.gone.get(timeout=WITHIN) == "a"


def test_a_port_that_is_asked_for_can_be_had_again_at_once(standby: Standby, processes: list[Process]) -> None:
    processes.append(Process())
    where = whereabouts.decode(processes[0].about)
    assert where is not None
    standby.watch("a", processes[0].about)
    processes[0].end()
    assert standby.gone.get(timeout=WITHIN) == "a"
    again = open_listener(Settings(zookeeper="x", suspicion_listen=f"127.0.0.1:{where.port}"), SERVERS)
    assert again is not None
    assert standby.meet(again.whereabouts) is Sign.ITSELF
    again.close()


# --- who connects


@pytest.fixture
def made() -> Iterator[Listener]:
    opened = open_listener(ON, SERVERS)
    assert opened is not None
    yield opened
    opened.close()


def connect(to: Listener) -> socket.socket:
    connection = socket.create_connection((to.whereabouts.host, to.whereabouts.port))
    connection.settimeout(WITHIN)
    return connection


def test_everybody_is_greeted_and_told_nothing_else(made: Listener) -> None:
    with connect(made) as one, connect(made) as other:
        for each in (one, other):
            assert each.recv(1000) == made.whereabouts.greeting
        one.send(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert one.recv(1000) == b"", "who says something is let go"
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.recv(1000)


def test_more_than_so_many_wait_until_somebody_goes(made: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST_CONNECTIONS", 2)
    first, second = connect(made), connect(made)
    assert [each.recv(GREETING_BYTES) for each in (first, second)] == [made.whereabouts.greeting] * 2
    with connect(made) as third, connect(made) as fourth:
        for each in (third, fourth):
            each.setblocking(False)
            with pytest.raises(BlockingIOError):
                each.recv(1)
            each.settimeout(WITHIN)
        first.close()
        assert third.recv(GREETING_BYTES) == made.whereabouts.greeting
        second.close()
        assert fourth.recv(GREETING_BYTES) == made.whereabouts.greeting


def test_when_no_descriptor_is_left_it_goes_on_later(
    made: Listener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener, "PAUSE", 0.0)
    accept, failures = socket.socket.accept, [OSError(24, "Too many open files"), ConnectionAbortedError()]

    def scarce(self: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop(0)
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", scarce)
    with connect(made) as one:
        assert one.recv(GREETING_BYTES) == made.whereabouts.greeting
    assert [record.message for record in caplog.records] == ["A standby cannot be greeted: Too many open files."]


# --- where it listens


def test_it_listens_where_zookeeper_is_reached_from() -> None:
    for servers in (SERVERS, (("no-such-host.invalid", 1), *SERVERS)):
        made = open_listener(ON, servers)
        assert made is not None
        assert made.whereabouts.host == "127.0.0.1"
        made.close()


def test_an_address_that_other_hosts_can_use_comes_first() -> None:
    own = listener._source("192.0.2.1", 9)  # nobody has that address, and nothing is sent
    if not own or own.startswith("127."):
        pytest.skip("This host has no other address.")
    made = open_listener(ON, (("127.0.0.1", 9), ("192.0.2.1", 9)))
    assert made is not None
    assert made.whereabouts.host == own
    made.close()


def test_nowhere_without_zookeeper_or_when_it_is_off(caplog: pytest.LogCaptureFixture) -> None:
    assert open_listener(Settings(), ()) is None
    assert open_listener(Settings(zookeeper="127.0.0.1:2181", suspicion="off"), SERVERS) is None
    assert caplog.records == []
    assert open_listener(ON, (("no-such-host.invalid", 1),)) is None
    assert "set suspicion_address" in caplog.text


def test_what_others_connect_to_can_be_another_address_than_what_is_listened_on() -> None:
    for address, port in (("127.0.0.9:0", None), ("127.0.0.9:4711", 4711), ("localhost:4711", 4711), ("[::1]:1", 1)):
        made = open_listener(
            Settings(zookeeper="x", suspicion_listen="127.0.0.1:0", suspicion_address=address), SERVERS
        )
        assert made is not None
        told = made.whereabouts
        assert told.port == (port or made._socket.getsockname()[1])
        assert whereabouts.decode(whereabouts.encode("a", told)) == told
        made.close()


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("suspicion_listen", "7000", "suspicion_listen is '7000': it must be host:port"),
        ("suspicion_address", "host", "suspicion_address is 'host': it must be host:port"),
        ("suspicion_address", "no-such-host.invalid:1", "no such host is known"),
        ("suspicion_address", "fe80::1%lo:1", "no address of it is good"),
        ("suspicion_listen", "192.0.2.1:1", "Fast suspicion cannot listen on 192.0.2.1:1"),
    ],
)
def test_wrong_addresses(setting: str, value: str, sentence: str) -> None:
    with pytest.raises(InvalidSettings, match=sentence):
        open_listener(msgspec.structs.replace(ON, **{setting: value}), SERVERS)
