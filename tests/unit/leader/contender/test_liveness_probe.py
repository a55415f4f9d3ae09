"""Liveness probes over real sockets on loopback: every event that a probe can report."""

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from leader.contender import liveness_probe
from leader.contender.liveness_probe import LivenessProbes
from leader.election.ports import Heard, ProbeEvent
from leader.layout.contact import MOST_NOTICE_BYTES, ContactAddress, ReleaseNotice
from leader.layout.lease import Lease, Mode
from store.clock import now
from tests.unit.leader.samples import A

WHERE = ContactAddress("127.0.0.1", 1, "5eed" * 8)
RELEASED = Lease(8, Mode.RELEASED, 0, A, "", "a")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


class Ear:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.probes = LivenessProbes(loop)
        self.signs: list[Heard] = []

    def call(self, where: ContactAddress) -> "liveness_probe._TcpProbe":
        line = self.probes.probe(where, self.signs.append)
        assert self.signs == [], "nothing is heard before the call returns"
        return line

    def hear(self, count: int) -> list[Heard]:
        self.until(lambda: len(self.signs) >= count)
        return self.signs

    def until(self, heard: Callable[[], bool]) -> None:
        end = now() + 20
        while not heard():
            assert now() < end, self.signs
            self.loop.run_until_complete(asyncio.sleep(0))

    def turn(self) -> None:
        for _ in range(5):
            self.loop.run_until_complete(asyncio.sleep(0))


@pytest.fixture
def ear(loop: asyncio.AbstractEventLoop) -> Iterator[Ear]:
    made = Ear(loop)
    yield made
    made.probes.close()
    assert made.probes._open == set()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(20)
        yield made


@pytest.fixture
def where(listening: socket.socket) -> ContactAddress:
    return replace(WHERE, port=listening.getsockname()[1])


def test_a_process_that_greets_and_ends(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    ear.call(where)
    with listening.accept()[0] as theirs:
        theirs.send(where.greeting)
        assert ear.hear(1) == [ProbeEvent.GREETED]
    assert ear.hear(2) == [ProbeEvent.GREETED, ProbeEvent.BROKEN]


def test_a_greeting_that_comes_in_pieces(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    ear.call(where)
    with listening.accept()[0] as theirs:
        for each in where.greeting:
            assert ear.signs == []
            theirs.send(bytes([each]))
            ear.turn()
        assert ear.hear(1) == [ProbeEvent.GREETED]


def test_a_reset_is_an_end(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    ear.call(where)
    theirs = listening.accept()[0]
    theirs.send(where.greeting)
    ear.hear(1)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    theirs.close()
    assert ear.hear(2) == [ProbeEvent.GREETED, ProbeEvent.BROKEN]


def test_another_process_at_that_port(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    ear.call(where)
    with listening.accept()[0] as theirs:
        theirs.send(replace(where, process="0" * 32).greeting)
        assert ear.hear(1) == [ProbeEvent.ANOTHER_PROCESS]
        assert theirs.recv(1) == b"", "who is somebody else is not kept waiting"


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and so on", b"\0" * 43, b"x" * 100_000])
def test_another_greeting_is_no_process(ear: Ear, listening: socket.socket, where: ContactAddress, said: bytes) -> None:
    ear.call(where)
    with listening.accept()[0] as theirs:
        theirs.send(said)
        assert ear.hear(1) == [ProbeEvent.SILENT]


@pytest.mark.parametrize("said", [b"!\n", b"released orders\n", b"released orders " + b"x" * MOST_NOTICE_BYTES])
def test_one_that_talks_on_is_left(ear: Ear, listening: socket.socket, where: ContactAddress, said: bytes) -> None:
    ear.call(where)
    with listening.accept()[0] as theirs:
        theirs.send(where.greeting)
        ear.hear(1)
        theirs.send(said)
        assert ear.hear(2) == [ProbeEvent.GREETED, ProbeEvent.SILENT]


def test_notices_follow_the_greeting_in_pieces(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    ear.call(where)
    notices = [ReleaseNotice(job, RELEASED) for job in ("orders", "payments", "orders")]
    said = b"".join(each.line for each in notices)
    with listening.accept()[0] as theirs:
        theirs.send(where.greeting + said[:20])
        ear.hear(1)
        theirs.send(said[20:-1])
        assert ear.hear(3) == [ProbeEvent.GREETED, *notices[:2]]
        theirs.send(said[-1:])
        assert ear.hear(4) == [ProbeEvent.GREETED, *notices]
    assert ear.hear(5)[4] is ProbeEvent.BROKEN


def test_a_probe_closed_by_a_notice_reports_no_other(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    line = ear.call(where)
    notice = ReleaseNotice("orders", RELEASED)

    def heard(sign: Heard) -> None:
        ear.signs.append(sign)
        if sign == notice:
            line.close()

    line._on_event = heard
    with listening.accept()[0] as theirs:
        theirs.send(where.greeting)
        ear.hear(1)
        theirs.send(notice.line * 2)
        ear.hear(2)
        assert theirs.recv(1) == b"", "it is closed"
    assert ear.signs == [ProbeEvent.GREETED, notice]


def test_a_closed_port_is_refused(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    listening.close()
    ear.call(where)
    assert ear.hear(1) == [ProbeEvent.REFUSED]


def test_a_listener_without_greeting_is_awaited(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    """A stopped process looks like this: the kernel takes the connection, and then nothing ever comes."""
    ear.call(where)
    with listening.accept()[0] as theirs:
        ear.until(lambda: all(line._timer is None for line in ear.probes._open))
        ear.turn()
        assert ear.signs == []
        theirs.send(where.greeting)
        assert ear.hear(1) == [ProbeEvent.GREETED]


def test_a_socket_that_ends_early_breaks_what_waits(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    ear.call(where)
    ear.until(lambda: all(line._timer is None for line in ear.probes._open))
    listening.close()
    assert ear.hear(1) == [ProbeEvent.BROKEN]


def test_a_host_that_does_not_answer_at_all(ear: Ear, where: ContactAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue is full: the kernel drops further connections, as a cut network does."""
    monkeypatch.setattr(liveness_probe, "CONNECT_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.create_connection(full.getsockname()):
        ear.call(replace(where, port=full.getsockname()[1]))
        assert ear.hear(1) == [ProbeEvent.SILENT]


@pytest.mark.parametrize("host", ["255.255.255.255", "224.0.0.1", "ff02::1"])
def test_an_impossible_address_is_silent(ear: Ear, where: ContactAddress, host: str) -> None:
    ear.call(replace(where, host=host))
    assert ear.hear(1) == [ProbeEvent.SILENT]


def test_no_descriptor_left(ear: Ear, where: ContactAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(liveness_probe.socket, "socket", none_left)  # type: ignore[attr-defined]
    ear.call(where)
    assert ear.hear(1) == [ProbeEvent.SILENT]


def test_nothing_is_heard_once_it_is_closed(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    for close in (lambda probe: probe.close(), lambda _: ear.probes.close()):
        line = ear.call(where)
        with listening.accept()[0] as theirs:
            close(line)
            assert theirs.recv(1) == b""
        ear.turn()
        assert ear.signs == []
    refused = ear.call(replace(where, port=1))
    refused.close()
    ear.turn()
    assert ear.signs == []


def test_it_sends_nothing_and_never_probes(ear: Ear, listening: socket.socket, where: ContactAddress) -> None:
    line = ear.call(where)
    with listening.accept()[0] as theirs:
        theirs.send(where.greeting)
        ear.hear(1)
        assert line._socket is not None
        assert line._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
        line.close()
        assert theirs.recv(1) == b"", "the end, and not a byte before it"
