"""The session's clock, without threads and without a server."""

from store.zookeeper import Session
from store.zookeeper.session import SessionClock
from tests.unit.store.zookeeper.helpers import CONNECTED, LOST, READ_ONLY, SUSPENDED


def test_clock_runs_out_while_suspended() -> None:
    clock = SessionClock()
    assert clock.connected(Session(1, 4.0)) == [CONNECTED]
    assert clock.suspended(10.0) == [SUSPENDED]
    assert clock.suspended(12.0) == []
    assert clock.tick(13.9) == []
    kept = clock.session
    assert kept == Session(1, 4.0)
    assert clock.tick(14.0) == [LOST]
    assert clock.session is None
    assert clock.lost() == []
    assert clock.connected(Session(1, 4.0)) == [CONNECTED]


def test_clock_stops_at_the_reconnect() -> None:
    clock = SessionClock()
    clock.connected(Session(1, 4.0))
    clock.suspended(10.0)
    assert clock.connected(Session(1, 4.0)) == [CONNECTED]
    assert clock.tick(99.0) == []


def test_another_session_means_that_the_first_was_lost() -> None:
    clock = SessionClock()
    clock.connected(Session(1, 4.0))
    clock.suspended(10.0)
    assert clock.connected(Session(2, 4.0)) == [LOST, CONNECTED]


def test_clock_goes_on_while_read_only() -> None:
    clock = SessionClock()
    clock.connected(Session(1, 4.0))
    clock.suspended(10.0)
    assert clock.read_only() == [READ_ONLY]
    assert clock.suspended(11.0) == [SUSPENDED]
    assert clock.read_only() == [READ_ONLY]
    assert clock.tick(14.0) == [LOST, READ_ONLY]
    assert clock.suspended(15.0) == [LOST]


def test_session_id_as_zookeeper_writes_it() -> None:
    assert Session(0x100002137B00000, 1.0).hex == "0x100002137b00000"
    assert Session(-1, 1.0).hex == "0xffffffffffffffff"
