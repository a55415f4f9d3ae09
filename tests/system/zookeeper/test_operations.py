"""The operations of ZooKeeper, on the shared server."""

from typing import Any

import pytest
from kazoo.security import make_digest_acl

from store import errors
from store.clock import now
from store.zookeeper import Children, Create, Delete, Event, Exists, Get, Kind, Operation, Set, Stat, Sync, ZooKeeper
from tests.unit.store.zookeeper.helpers import CONNECTED, LOST, SUSPENDED, Heard, bare, connected, submit


@pytest.mark.zookeeper
def test_operations(zookeeper: ZooKeeper) -> None:
    assert zookeeper.call(Exists("/a"), 5) is None
    made = zookeeper.call(Create("/a/b", b"first", make_parents=True), 5)
    assert made.version == 0
    assert made.ephemeral_owner == 0
    assert made.data_length == 5
    assert zookeeper.call(Get("/a/b"), 5) == (b"first", made)
    changed = zookeeper.call(Set("/a/b", b"", 0), 5)
    assert changed.version == 1
    assert changed.created_zxid == made.created_zxid
    assert changed.modified_ms >= made.modified_ms > 1_600_000_000_000
    assert zookeeper.call(Exists("/a/b"), 5) == changed
    zookeeper.call(Create("/a/c"), 5)
    assert zookeeper.call(Children("/a"), 5) == ["b", "c"]
    assert zookeeper.call(Children("/"), 5) == ["a"]
    zookeeper.call(Sync("/"), 5)
    zookeeper.call(Sync("/a/b"), 5)
    zookeeper.call(Delete("/a/b", 1), 5)
    assert zookeeper.call(Exists("/a/b"), 5) is None


@pytest.mark.zookeeper
def test_ephemeral_node_belongs_to_the_session_and_ends_with_it(zookeeper: ZooKeeper, hosts: str) -> None:
    with connected(hosts) as other:
        made = other.call(Create("/mine", ephemeral=True), 5)
        assert other.session is not None
        assert made.ephemeral_owner == other.session.id
        gone = Heard()
        zookeeper.call(Sync("/"), 5)
        assert zookeeper.call(Exists("/mine", watch=gone), 5) == made
        other.close()
        assert gone.wait(1, timeout=2) == [Event(Kind.DELETED, "/mine")]  # much sooner than its time-out
    assert other.state is LOST
    assert other.session is None


@pytest.mark.zookeeper
def test_outcomes_of_submit(zookeeper: ZooKeeper) -> None:
    before = now()
    outcome = submit(zookeeper, Create("/a", b"x"), 5)
    assert outcome.done
    assert isinstance(outcome.result(), Stat)
    assert before <= outcome.started <= outcome.ended <= now()
    refused = submit(zookeeper, Create("/a", b"x"), 5)
    assert refused.refused
    assert isinstance(refused.error, errors.AlreadyExists)
    assert isinstance(submit(zookeeper, Get("not absolute"), 5).error, errors.Invalid)
    assert isinstance(submit(zookeeper, Get("/a"), 0).error, errors.NotSent)


@pytest.mark.zookeeper
def test_a_failing_callback_harms_nobody(zookeeper: ZooKeeper, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_outcome: object) -> None:
        raise ZeroDivisionError

    zookeeper.submit(Get("/"), 5, fail)
    assert submit(zookeeper, Get("/"), 5).done
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Get("/none"), errors.NotFound),
        (Children("/none"), errors.NotFound),
        (Set("/none", b"", -1), errors.NotFound),
        (Delete("/none", -1), errors.NotFound),
        (Create("/none/x"), errors.NotFound),
        (Create("/node"), errors.AlreadyExists),
        (Set("/node", b"", 7), errors.Conflict),
        (Delete("/node/child", 7), errors.Conflict),
        (Delete("/node", -1), errors.NotEmpty),
        (Create("/fleeting/x"), errors.Invalid),
        (Create("/fleeting/x", make_parents=True), errors.Invalid),
        (Get("/locked"), errors.PermissionDenied),
        (Set("/locked", b"", -1), errors.PermissionDenied),
        (Create("/locked/x"), errors.PermissionDenied),
        (Create("/locked/x/y", make_parents=True), errors.NotFound),
        (Get("/a/../b"), errors.Invalid),
        (Set("/node", b"", -2), errors.Invalid),
        (Delete("/node", 2**31), errors.Invalid),
        (Set("/node", b"x" * 1_000_000, -1), errors.Invalid),
        (Create("/x", "text"), errors.Invalid),  # type: ignore[arg-type]  # on purpose
    ],
    ids=str,
)
def test_refusals(zookeeper: ZooKeeper, hosts: str, operation: Operation[Any], error: type[errors.Refused]) -> None:
    zookeeper.call(Create("/node"), 5)
    zookeeper.call(Create("/node/child"), 5)
    zookeeper.call(Create("/fleeting", ephemeral=True), 5)
    with bare(hosts) as client:
        client.create("/locked", acl=[make_digest_acl("somebody", "else", all=True)])
    with pytest.raises(error) as caught:
        zookeeper.call(operation, 5)
    assert type(caught.value) is error
    assert type(submit(zookeeper, operation, 5).error) is error
    assert zookeeper.state is CONNECTED


@pytest.mark.zookeeper
def test_the_most_that_zookeeper_takes(zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"x" * 999_998
    zookeeper.call(Create("/x", data), 10)
    assert zookeeper.call(Get("/x"), 10)[0] == data
    heard, session = Heard(), zookeeper.session
    zookeeper.add_listener(heard)
    # This is why more is not even sent: the server cuts the connection, and everybody who uses it is suspended.
    monkeypatch.setattr("store.zookeeper.operations.MAX_REQUEST_BYTES", 10_000_000)
    with pytest.raises(errors.ConnectionLost):
        zookeeper.call(Set("/x", b"x" * 2_000_000, -1), 10)
    assert heard.wait(2) == [SUSPENDED, CONNECTED]
    assert zookeeper.session == session


@pytest.mark.zookeeper
def test_the_chroot_comes_back_with_make_parents(zookeeper: ZooKeeper, hosts: str, zookeeper_hosts: str) -> None:
    with bare(zookeeper_hosts) as client:
        client.delete("/" + hosts.rpartition("/")[2])
    with pytest.raises(errors.NotFound):
        zookeeper.call(Create("/x"), 5)
    zookeeper.call(Create("/x/y", make_parents=True), 5)
    assert zookeeper.call(Children("/"), 5) == ["x"]


@pytest.mark.zookeeper
def test_without_a_chroot(zookeeper_hosts: str) -> None:
    with connected(zookeeper_hosts + "/") as zookeeper:
        assert zookeeper.chroot == ""
        assert "zookeeper" in zookeeper.call(Children("/"), 5)
        zookeeper.call(Sync("/"), 5)
    with connected(zookeeper_hosts) as zookeeper:
        assert zookeeper.chroot == "/hybrid-ha"
        zookeeper.call(Exists("/"), 5)
