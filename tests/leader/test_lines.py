"""Connections to other processes over real sockets on loopback: each of the things that can be learnt by one."""

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from leader import lines
from leader.environment import Sign
from leader.lines import Lines
from leader.whereabouts import Whereabouts
from store.clock import now

WHERE = Whereabouts("127.0.0.1", 1, "5eed" * 8)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


class Ear:
    """Hears what is learnt, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.lines = Lines(loop)
        self.signs: list[Sign] = []

    def call(self, where: Whereabouts) -> "lines._Line":
        line = self.lines.call(where, self.signs.append)
        assert self.signs == [], "nothing is heard before the call returns"
        return line

    def hear(self, count: int) -> list[Sign]:
        """Wait until so much was heard."""
        self.until(lambda: len(self.signs) >= count)
        return self.signs

    def until(self, heard: Callable[[], bool]) -> None:
        end = now() + 20
        while not heard():
            assert now() < end, self.signs
            self.loop.run_until_complete(asyncio.sleep(0))

    def turn(self) -> None:
        """Let the loop do all that it can do now, more than once."""
        for _ in range(5):
            self.loop.run_until_complete(asyncio.sleep(0))


@pytest.fixture
def ear(loop: asyncio.AbstractEventLoop) -> Iterator[Ear]:
    made = Ear(loop)
    yield made
    made.lines.close()
    assert made.lines._open == set()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(20)
        yield made


@pytest.fixture
def where(listening: socket.socket) -> Whereabouts:
    return replace(WHERE, port=listening.getsockname()[1])


def test_a_process_that_greets_and_ends(ear: Ear, listening: socket.socket, where: Whereabouts) -> None:
    ear.call(where)
    with listening.accept()[0] as theirs:
        theirs.send(where.greeting)
        assert ear.hear(1) == [Sign.ITSELF]
    assert ear.hear(2) == [Sign.ITSELF, Sign.BROKEN]


def test_a_greeting_that_comes_in_pieces(ear: Ear, listening: socket.socket, where: Whereabouts) -> None:
    ear.call(where)
    with listening.accept()[0] as theirs:
        for each in where.greeting:
            assert ear.signs == []
            theirs.send(bytes([each]))
            ear.turn()
        assert ear.hear(1) == [Sign.ITSELF]


def test_a_reset_is_an_end(ear: Ear, listening: socket.socket, where: Whereabouts) -> None:
    ear.call(where)
    theirs = listening.accept()[0]
    theirs.send(where.greeting)
    ear.hear(1)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    theirs.close()
    assert ear.hear(2) == [Sign.ITSELF, Sign.BROKEN]


def test_another_process_at_that_port(ear: Ear, listening: socket.socket, where: Whereabouts) -> None:
    ear.call(where)
    with listening.accept()[0] as theirs:
        theirs.send(replace(where, process="0" * 32).greeting)
        assert ear.hear(1) == [Sign.ANOTHER]
        assert theirs.recv(1) == b"", "who is somebody else is not kept waiting"


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and so on", b"\0" * 43, b"x" * 100_000])
def test_who_says_something_else_is_nobody(ear: Ear, listening: socket.socket, where: Whereabouts, said: bytes) -> None:
    ear.call(where)
    with listening.accept()[0] as theirs:
        theirs.send(said)
        assert ear.hear(1) == [Sign.NOTHING]


def test_who_goes_on_talking_is_left(ear: Ear, listening: socket.socket, where: Whereabouts) -> None:
    ear.call(where)
    with listening.accept()[0] as theirs:
        theirs.send(where.greeting)
        ear.hear(1)
        theirs.send(b"!")
        assert ear.hear(2) == [Sign.ITSELF, Sign.NOTHING]


def test_nobody_listens(ear: Ear, listening: socket.socket, where: Whereabouts) -> None:
    listening.close()
    ear.call(where)
    assert ear.hear(1) == [Sign.REFUSED]


def test_who_listens_and_does_not_greet_is_waited_for(ear: Ear, listening: socket.socket, where: Whereabouts) -> None:
    """As a process does that is stopped: the kernel takes the connection. From then on silence has no end."""
    ear.call(where)
    with listening.accept()[0] as theirs:
        ear.until(lambda: all(line._timer is None for line in ear.lines._open))
        ear.turn()
        assert ear.signs == []
        theirs.send(where.greeting)
        assert ear.hear(1) == [Sign.ITSELF]


def test_a_socket_that_ends_before_it_is_accepted_breaks_what_waits(
    ear: Ear, listening: socket.socket, where: Whereabouts
) -> None:
    ear.call(where)
    ear.until(lambda: all(line._timer is None for line in ear.lines._open))
    listening.close()
    assert ear.hear(1) == [Sign.BROKEN]


def test_a_host_that_does_not_answer_at_all(ear: Ear, where: Whereabouts, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue that is full: the kernel drops what more comes, as a network does that is cut."""
    monkeypatch.setattr(lines, "CONNECTED_WITHIN", 0.05)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        with socket.create_connection(full.getsockname()):
            ear.call(replace(where, port=full.getsockname()[1]))
            assert ear.hear(1) == [Sign.NOTHING]


@pytest.mark.parametrize("host", ["255.255.255.255", "224.0.0.1", "ff02::1"])
def test_an_address_that_nobody_can_have(ear: Ear, where: Whereabouts, host: str) -> None:
    ear.call(replace(where, host=host))
    assert ear.hear(1) == [Sign.NOTHING]


def test_no_descriptor_left(ear: Ear, where: Whereabouts, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(lines.socket, "socket", none_left)  # type: ignore[attr-defined]
    ear.call(where)
    assert ear.hear(1) == [Sign.NOTHING]


def test_nothing_is_heard_once_it_is_closed(ear: Ear, listening: socket.socket, where: Whereabouts) -> None:
    for close in (lambda line: line.close(), lambda _: ear.lines.close()):
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


def test_it_sends_nothing_and_never_probes(ear: Ear, listening: socket.socket, where: Whereabouts) -> None:
    line = ear.call(where)
    with listening.accept()[0] as theirs:
        theirs.send(where.greeting)
        ear.hear(1)
        assert line._socket is not None
        assert line._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
        line.close()
        assert theirs.recv(1) == b"", "the end, and not a byte before it"
