"""One dead name among ZooKeeper's servers holds up no connection to the others."""

import socket
import threading
from collections.abc import Iterator, Sequence

import pytest

from store.clock import now
from store.zookeeper import names
from store.zookeeper.names import Address, Names, Server
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

DEAD, ALIVE = ("dead", 1), ("alive", 2)
FOUND: Address = ("alive", "10.0.0.2", 2)


class Resolver:
    """Answers of one name come when the test lets them."""

    def __init__(self) -> None:
        self.asked: list[Server] = []
        self.let = threading.Event()
        self.error: OSError | None = None

    def __call__(self, server: Server) -> Sequence[Address]:
        self.asked.append(server)
        if server == DEAD:
            assert self.let.wait(PATIENCE_S)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if self.error is not None:
            raise self.error
        return [FOUND]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_NONE_S", PATIENCE_S)


@pytest.fixture
def resolver() -> Iterator[Resolver]:
    made = Resolver()
    yield made
    made.let.set()


def test_a_name_that_takes_long_is_left_out_and_not_asked_for_twice(resolver: Resolver) -> None:
    found = Names(resolver)
    assert found.addresses([DEAD, ALIVE]) == [FOUND]
    for _ in range(3):
        began = now()
        assert found.addresses([DEAD, ALIVE]) == [FOUND]
        assert now() - began < names.WAIT_S + PATIENCE_S
    assert resolver.asked.count(DEAD) == 1
    resolver.let.set()
    wait_until(lambda: not found._asked)
    assert found.addresses([DEAD, ALIVE]) == [FOUND]
    assert resolver.asked.count(DEAD) == 2


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), [FOUND]),
        (OSError("no resolver"), [FOUND]),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), []),
    ],
)
def test_a_resolver_that_does_not_know_takes_no_address_away(
    resolver: Resolver, error: OSError, left: list[Address]
) -> None:
    found = Names(resolver)
    assert found.addresses([ALIVE]) == [FOUND]
    resolver.error = error
    assert found.addresses([ALIVE]) == left


def test_an_address_needs_no_resolver_and_no_thread(monkeypatch: pytest.MonkeyPatch, resolver: Resolver) -> None:
    monkeypatch.setattr(threading.Thread, "start", _no_thread)
    found = Names(resolver)
    assert sorted(found.addresses([("127.0.0.1", 1), ("::1", 2)])) == [("127.0.0.1", "127.0.0.1", 1), ("::1", "::1", 2)]
    assert not resolver.asked
    assert found.addresses([ALIVE]) == [FOUND], "without a thread it is asked for here"


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_name_is_asked_of_the_real_resolver() -> None:
    assert ("localhost", "127.0.0.1", 7) in Names().addresses([("localhost", 7)])
