"""Sessions and the connection under them, on the shared server: expiry, listeners, close, fork."""

import contextlib
import os

import pytest

from store import errors
from store.zookeeper import Connection, Create, Exists, Get, Session, Sync, ZooKeeper
from store.zookeeper.session_client import SessionClient
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until
from tests.unit.store.zookeeper.helpers import CONNECTED, LOST, SUSPENDED, Heard, bare, connected, submit


@pytest.mark.zookeeper
def test_session_expired_by_somebody_else(zookeeper: ZooKeeper, hosts: str) -> None:
    heard, first = Heard(), zookeeper.session
    zookeeper.call(Create("/mine", ephemeral=True), 5)
    zookeeper.add_listener(heard)
    with bare(hosts, client_id=zookeeper._here()._kazoo.client_id):
        pass
    wait_until(lambda: heard.all[-1:] == [CONNECTED] and LOST in heard.all)
    # The two may have taken the session from each other a few times before it was closed.
    assert [state for state in heard.all if state is not SUSPENDED][-2:] == [LOST, CONNECTED]
    assert heard.all[0] is SUSPENDED
    assert zookeeper.session is not None
    assert zookeeper.session != first
    assert zookeeper.call(Exists("/mine"), 5) is None


@pytest.mark.zookeeper
def test_a_listener_may_fail_and_may_leave(zookeeper: ZooKeeper, caplog: pytest.LogCaptureFixture) -> None:
    left, heard = Heard(), Heard()

    def fail(_state: Connection) -> None:
        raise ZeroDivisionError

    zookeeper.add_listener(left)
    zookeeper.add_listener(fail)
    zookeeper.add_listener(heard)
    zookeeper.remove_listener(left)
    zookeeper._here()._kazoo.cut()
    assert heard.wait(2) == [SUSPENDED, CONNECTED]
    assert left.all == []
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.zookeeper
def test_close_from_a_callback_and_with_calls_under_way(hosts: str) -> None:
    with connected(hosts) as zookeeper:
        outcomes, closed = Heard(), Heard()

        def close(_outcome: object) -> None:
            zookeeper.close()
            closed(None)

        zookeeper.submit(Get("/"), 5, close)
        for _ in range(50):
            zookeeper.submit(Get("/"), 5, outcomes)
        closed.wait(1)
        assert len(outcomes.wait(50)) == 50
        assert isinstance(submit(zookeeper, Get("/"), 5).error, errors.NotSent)
        with pytest.raises(errors.NotSent):
            zookeeper.call(Get("/"), 5)


@pytest.mark.zookeeper
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork(zookeeper: ZooKeeper) -> None:
    zookeeper.call(Create("/mine", b"parent", ephemeral=True), 5)
    heard, session = Heard(), zookeeper.session
    zookeeper.add_listener(heard)
    reader, writer = os.pipe()
    link = zookeeper._here()
    # The worst case: every lock that a thread of ours might hold is held when the child is made.
    with link._lock, link.calls._lock, link._kazoo._connection._write_sock._lock:
        child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.write(writer, _in_the_child(zookeeper, session, link).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        assert pipe.read() == "ok"
    os.waitpid(child, 0)
    zookeeper.call(Sync("/"), 5)
    assert zookeeper.call(Get("/mine"), 5)[0] == b"parent"
    assert zookeeper.session == session
    assert heard.all == []  # the connection did not even flicker


def _in_the_child(zookeeper: ZooKeeper, session: Session | None, parents: SessionClient) -> str:
    inherited = parents._kazoo._connection._socket
    with contextlib.suppress(errors.NotSent):
        zookeeper.call(Get("/mine"), 5)  # starts the child's own client
        return "answered without a connection"
    if zookeeper.wait(PATIENCE_S) is not CONNECTED or inherited.fileno() != -1:
        return f"not connected: {zookeeper.state}"
    data, stat = zookeeper.call(Get("/mine"), 5)
    if data != b"parent" or session is None or stat.ephemeral_owner != session.id:
        return f"read {data!r} {stat}"
    if zookeeper.session is None or zookeeper.session.id == session.id:
        return "shares the parent's session"
    zookeeper.call(Create("/child", ephemeral=True), 5)
    zookeeper.close()
    return "ok"
