"""With a server of our own, to be hurt: stopped, wiped, paused, overrun."""

import contextlib
import threading
from typing import Any

import pytest
from kazoo import exceptions as kazoo_errors
from kazoo.handlers.threading import KazooTimeoutError

from store import errors
from store.clock import now
from store.zookeeper import Children, Create, Delete, Event, Exists, Get, Kind, Operation, Set, Sync
from store.zookeeper.calls import MAX_OUTSTANDING
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until
from tests.unit.store.zookeeper.helpers import (
    ASKED_S,
    CONNECTED,
    LOST,
    SUSPENDED,
    Heard,
    Server,
    bare,
    connected,
    submit,
)


@pytest.mark.zookeeper
def test_negotiated_session_timeout(server: Server) -> None:
    """Pins how we get at a number that kazoo keeps to itself."""
    for asked, granted in ((0.9, 1.0), (ASKED_S, ASKED_S), (600, 7.0)):
        with connected(server.hosts, asked) as zookeeper:
            assert zookeeper.session is not None
            assert zookeeper.session.timeout == granted


@pytest.mark.timed
@pytest.mark.zookeeper
def test_stopped_server(server: Server) -> None:
    with connected(server.hosts) as zookeeper:
        heard, lost = Heard(), Heard()
        zookeeper.add_listener(heard)
        zookeeper.call(Exists("/x", watch=lost), 5)
        server.kill()
        assert heard.wait(1) == [SUSPENDED]
        suspended = now()
        assert lost.wait(1) == [Event(Kind.LOST, "/x")]
        started = now()
        with pytest.raises(errors.NotSent):
            zookeeper.call(Get("/"), PATIENCE_S)
        late = zookeeper._here()._kazoo.create_async("/late")  # as one that slips in while the connection breaks
        assert now() - started < ASKED_S / 2, "nobody waited for the server"
        kept = zookeeper.session
        assert kept is not None
        assert heard.wait(2) == [SUSPENDED, LOST]  # with nobody there to say so
        assert ASKED_S - 1 < now() - suspended < ASKED_S + PATIENCE_S / 2
        assert zookeeper.session is None
        server.up()
        assert heard.wait(3) == [SUSPENDED, LOST, CONNECTED]
        assert isinstance(late.exception, kazoo_errors.ConnectionLoss)
        assert zookeeper.call(Exists("/late"), 5) is None


@pytest.mark.zookeeper
def test_wiped_server(server: Server) -> None:
    """A server refuses clients that have seen more than it has: without our own clock that would be for ever."""
    with connected(server.hosts + "/wiped") as zookeeper:
        for _ in range(10):
            zookeeper.call(Create("/x"), 5)
            zookeeper.call(Delete("/x", -1), 5)
        heard, first = Heard(), zookeeper.session
        zookeeper.add_listener(heard)
        server.kill()
        server.wipe()
        server.up()
        assert heard.wait(3) == [SUSPENDED, LOST, CONNECTED]
        assert zookeeper.session != first
        assert zookeeper.call(Children("/"), 5) == []  # the chroot has been made again


@pytest.mark.timed
@pytest.mark.zookeeper
def test_paused_server(server: Server) -> None:
    with connected(server.hosts) as zookeeper:
        zookeeper.call(Exists("/"), 5)
        heard = Heard()
        zookeeper.add_listener(heard)
        server.pause()
        operations: list[Operation[Any]] = [Get("/"), Create("/a/b", make_parents=True), Sync("/")]
        for operation in operations:
            started = now()
            with pytest.raises(errors.DeadlineExceeded):
                zookeeper.call(operation, 0.1)
            outcome = submit(zookeeper, operation, 0.1)
            assert now() - started < 2
            assert isinstance(outcome.error, errors.DeadlineExceeded)
            assert 0.1 <= outcome.ended - outcome.started < 1.5
        # Bare kazoo never finds out as long as it is asked every now and then.
        while zookeeper.state is CONNECTED:
            with contextlib.suppress(errors.StoreError):
                zookeeper.call(Get("/"), 0.1)
            assert now() - started < ASKED_S + PATIENCE_S / 2
        assert heard.wait(2) == [SUSPENDED, LOST]
        server.resume()
        assert heard.wait(3)[2] is CONNECTED
        zookeeper.call(Get("/"), 5)


@pytest.mark.zookeeper
def test_the_hook_hears_each_end_once(server: Server) -> None:
    told = Heard()
    with connected(server.hosts, on_call=lambda name, outcome: told((name, outcome))) as zookeeper:
        zookeeper.call(Exists("/x"), PATIENCE_S)
        with pytest.raises(errors.NotFound):
            zookeeper.call(Get("/x"), PATIENCE_S)
        done = submit(zookeeper, Exists("/x"), PATIENCE_S)
        server.pause()
        with pytest.raises(errors.DeadlineExceeded):
            zookeeper.call(Sync("/"), 0.1)
        late = submit(zookeeper, Create("/x"), 0.1)
        server.resume()
        heard = told.wait(5)
        assert [name for name, _ in heard] == ["Exists", "Get", "Exists", "Sync", "Create"]
        assert [(each.done, each.refused, each.unknown) for _, each in heard] == [
            (True, False, False),
            (False, True, False),
            (True, False, False),
            (False, False, True),
            (False, False, True),
        ]
        assert (heard[2][1], heard[4][1]) == (done, late)
        assert all(0 <= each.ended - each.started < PATIENCE_S for _, each in heard)
        assert heard[3][1].ended - heard[3][1].started >= 0.1
        wait_until(lambda: zookeeper.state is CONNECTED)
    assert len(told.all) == 5, "what came back late is not told again"


@pytest.mark.zookeeper
def test_bare_kazoo_does_not_notice_a_paused_server_that_it_keeps_asking(server: Server) -> None:
    """The canary: when this fails, kazoo has been mended, and ``Calls.too_late`` can be simpler."""
    with bare(server.hosts) as client:
        server.pause()
        deadline = now() + 2 * ASKED_S
        while now() < deadline:
            with contextlib.suppress(KazooTimeoutError):
                client.get_async("/").get(timeout=0.2)
        still = client.connected
        server.resume()
    assert still


@pytest.mark.timed
@pytest.mark.zookeeper
def test_close_is_bounded_while_the_server_is_paused(server: Server) -> None:
    before = threading.active_count()
    with connected(server.hosts) as zookeeper:
        server.pause()
        heard = Heard()
        zookeeper.submit(Get("/"), PATIENCE_S, heard)
        started = now()
        zookeeper.close(timeout=0.2)
        assert now() - started < 2.5
        assert len(heard.wait(1)) == 1
        assert heard.all[0].unknown
    wait_until(lambda: threading.active_count() <= before)


@pytest.mark.zookeeper
def test_abandoned_requests_are_bounded_and_nobody_blocks(server: Server) -> None:
    with connected(server.hosts, 7.0) as zookeeper:
        zookeeper.call(Create("/big", make_parents=True), 5)
        server.pause()
        heard, started = Heard(), now()
        data = b"x" * 20_000  # together far more than the sockets' buffers take
        for _ in range(MAX_OUTSTANDING):
            zookeeper.submit(Set("/big", data, -1), PATIENCE_S, heard)
        with pytest.raises(errors.NotSent, match="1000 earlier"):
            zookeeper.call(Get("/big"), PATIENCE_S)
        assert now() - started < PATIENCE_S / 2
        server.resume()
        outcomes = heard.wait(MAX_OUTSTANDING)
        assert all(outcome.done or outcome.unknown for outcome in outcomes)
        wait_until(lambda: submit(zookeeper, Set("/big", b"", -1), 1).done)
        assert len(heard.all) == MAX_OUTSTANDING
