"""Nobody there, or nobody who makes sense: everything stays bounded."""

import socket
import threading
from typing import Any

import pytest

from store import errors
from store.clock import now
from store.zookeeper import Connection, Delete, Exists, Get, Sync, ZooKeeper, driver, handler
from store.zookeeper.dispatcher import Dispatcher
from store.zookeeper.security import Security
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until
from tests.unit.store.zookeeper.helpers import ASKED_S, LOST, Heard, submit


def test_never_started() -> None:
    zookeeper = ZooKeeper("127.0.0.1:1", session_timeout=ASKED_S)
    assert (zookeeper.state, zookeeper.session) == (LOST, None)
    with pytest.raises(errors.NotSent):
        zookeeper.call(Get("/x"), 1)
    assert isinstance(submit(zookeeper, Get("/x"), 1).error, errors.NotSent)
    zookeeper.close()
    zookeeper.close()
    zookeeper.start()
    assert zookeeper.state is LOST


def test_nobody_there() -> None:
    before = threading.active_count()
    zookeeper = ZooKeeper("127.0.0.1:1,does-not-exist.invalid:1", session_timeout=ASKED_S)
    started = now()
    zookeeper.start()
    zookeeper.start()
    with pytest.raises(errors.NotSent, match="no connection"):
        zookeeper.call(Get("/x"), PATIENCE_S)
    assert isinstance(submit(zookeeper, Get("/x"), PATIENCE_S).error, errors.NotSent)
    assert now() - started < PATIENCE_S / 2, "refused at once"
    assert zookeeper.wait(0.3) is LOST
    zookeeper.close()
    wait_until(lambda: threading.active_count() <= before)


def test_the_hook_is_told_of_every_operation_once() -> None:
    told: list[tuple[str, bool]] = []
    zookeeper = ZooKeeper(
        "127.0.0.1:1", session_timeout=ASKED_S, on_call=lambda name, outcome: told.append((name, outcome.refused))
    )
    started = [zookeeper.started]
    with pytest.raises(errors.NotSent):
        zookeeper.call(Get("/x"), 1)
    submit(zookeeper, Sync("/x"), 1)
    zookeeper.start()
    started.append(zookeeper.started)
    with pytest.raises(errors.NotSent):
        zookeeper.call(Delete("/x", -1), 1)
    submit(zookeeper, Exists("/x"), 1)
    zookeeper.close()
    assert told == [("Get", True), ("Sync", True), ("Delete", True), ("Exists", True)]
    assert started == [False, True]


def test_a_hook_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: str, __: object) -> None:
        raise RuntimeError("broken on purpose")

    zookeeper = ZooKeeper("127.0.0.1:1", session_timeout=ASKED_S, on_call=fail)
    with pytest.raises(errors.NotSent):
        zookeeper.call(Get("/x"), 1)
    assert isinstance(submit(zookeeper, Get("/x"), 1).error, errors.NotSent)
    assert caplog.text.count("The hook for ZooKeeper's operations failed.") == 2


def test_attempts_to_connect_are_bounded(black_hole: int) -> None:
    bounded = handler.Handler(Dispatcher("never started"), 0.2, Security())
    for options in ({"timeout": 10 * PATIENCE_S}, {}):  # the second is how kazoo looks for a writable server
        started = now()
        with pytest.raises(OSError, match="timed out"):
            bounded.create_connection(("127.0.0.1", black_hole), **options)
        assert 0.2 <= now() - started < PATIENCE_S


@pytest.mark.timed
@pytest.mark.slow
def test_close_is_bounded_while_connecting(black_hole: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "CONNECT_TIMEOUT_S", 4.0)
    before = threading.active_count()
    zookeeper = ZooKeeper(f"127.0.0.1:{black_hole}", session_timeout=60)
    zookeeper.start()
    started = now()
    zookeeper.close(timeout=0.1)
    assert now() - started < 3
    wait_until(lambda: threading.active_count() <= before)  # once its own bound has passed


def test_a_name_that_the_resolver_is_slow_to_deny_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """R70 of the reports: one dead name of three, and each connection took eleven seconds."""
    denied, resolve = threading.Event(), socket.getaddrinfo

    def slow(host: str, *rest: Any, **options: Any) -> Any:
        if host == "dead.invalid":
            denied.wait(PATIENCE_S)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        zookeeper = ZooKeeper(f"dead.invalid:1,localhost:{listener.getsockname()[1]}", session_timeout=ASKED_S)
        zookeeper.start()
        listener.settimeout(PATIENCE_S / 2)
        for _ in range(2):
            listener.accept()[0].close()
        denied.set()
        zookeeper.close()


def test_a_server_that_talks_nonsense_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        zookeeper = ZooKeeper(f"127.0.0.1:{listener.getsockname()[1]}", session_timeout=ASKED_S)
        zookeeper.start()
        for answer in (b"\0\0\0\1x", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff\xff\xff\xff", b""):
            listener.settimeout(PATIENCE_S)
            accepted, _ = listener.accept()
            with accepted:
                accepted.sendall(answer)
        assert zookeeper.state is Connection.LOST, "nonsense is no session"
        zookeeper.close()


def test_an_exception_inside_kazoo_does_not_end_the_connection_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Heard()

    def fail(*_arguments: Any) -> None:
        tried(None)
        raise RuntimeError("Invalid error code")

    monkeypatch.setattr(driver._Connection, "_connect", fail)
    zookeeper = ZooKeeper("127.0.0.1:1", session_timeout=ASKED_S)
    zookeeper.start()
    tried.wait(3)
    assert len(tried.all) >= 3, "it goes on trying"
    zookeeper.close()


def test_wakeups_never_block() -> None:
    wakeup = handler.Wakeup()
    for _ in range(100_000):  # a socket pair is full after 278
        wakeup.send(b"\0")
    assert wakeup.recv(1) == b"\0"
    wakeup.close()
    wakeup.close()
    with pytest.raises(OSError, match="descriptor"):
        wakeup.send(b"\0")
    empty = handler.Wakeup()
    assert empty.recv(1) == b""
    empty.close()
