"""Watches, on the shared server: they go off once, and never in silence."""

import pytest

from store import errors
from store.zookeeper import Children, Create, Delete, Event, Exists, Get, Kind, Set, Sync, ZooKeeper
from tests.patience import PATIENCE_S
from tests.unit.store.zookeeper.helpers import CONNECTED, Heard, submit


@pytest.mark.zookeeper
def test_watches_go_off_once(zookeeper: ZooKeeper) -> None:
    heard = Heard()
    zookeeper.call(Exists("/w", watch=heard), 5)
    zookeeper.call(Exists("/w", watch=heard), 5)  # the same again is the same watch
    zookeeper.call(Create("/w"), 5)
    assert heard.wait(1) == [Event(Kind.CREATED, "/w")]
    zookeeper.call(Get("/w", watch=heard), 5)
    zookeeper.call(Set("/w", b"1", -1), 5)
    zookeeper.call(Set("/w", b"2", -1), 5)
    assert heard.wait(2)[1:] == [Event(Kind.CHANGED, "/w")]
    zookeeper.call(Children("/w", watch=heard), 5)
    zookeeper.call(Create("/w/child"), 5)
    assert heard.wait(3)[2:] == [Event(Kind.CHILDREN, "/w")]
    zookeeper.call(Exists("/w/child", watch=heard), 5)
    zookeeper.call(Delete("/w/child", -1), 5)
    assert heard.wait(4)[3:] == [Event(Kind.DELETED, "/w/child")]
    submit(zookeeper, Sync("/"), 5)  # whatever else had come would have come before this
    assert len(heard.all) == 4


@pytest.mark.zookeeper
def test_watches_of_what_is_not_there(zookeeper: ZooKeeper) -> None:
    heard, none = Heard(), Heard()
    with pytest.raises(errors.NotFound):
        zookeeper.call(Get("/w", watch=heard), 5)
    with pytest.raises(errors.NotFound):
        zookeeper.call(Children("/w", watch=none), 5)
    zookeeper.call(Create("/w"), 5)
    submit(zookeeper, Sync("/"), 5)
    assert heard.all == [Event(Kind.CREATED, "/w")]
    assert none.all == []


@pytest.mark.zookeeper
def test_watches_are_lost_with_the_connection(zookeeper: ZooKeeper) -> None:
    heard = Heard()
    zookeeper.call(Exists("/none", watch=heard), 5)
    zookeeper.call(Children("/", watch=heard), 5)
    zookeeper._here()._kazoo.cut()
    assert set(heard.wait(2)) == {Event(Kind.LOST, "/none"), Event(Kind.LOST, "/")}
    assert zookeeper.wait(PATIENCE_S, CONNECTED) is CONNECTED
    zookeeper.call(Create("/none"), 5)
    submit(zookeeper, Sync("/"), 5)
    assert len(heard.all) == 2
