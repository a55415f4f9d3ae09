"""What holds of every record that somebody may have written, in ZooKeeper or on this host: each takes any bytes."""

import ipaddress
import math
from contextlib import suppress

from ha.agent import wire
from ha.agent.wire import MAX_SNAPSHOT_BYTES, Origin
from ha.belief import FARTHEST, BeliefReader
from ha.spark.moved import at
from leader import checkpoint_state, information, results, whereabouts
from leader.checkpoint import MAX_ID
from leader.information import MAX_RECORD_BYTES, MAX_VERSION, Record, endpoint_entries
from leader.lease import Lease, Mode
from leader.names import MAX_EPOCH, LeaderDirectory, is_session_id
from leader.nodes import SESSIONS, CreateNode, Node, NodeCommand, ReadNode, WriteNode
from leader.session import SessionKeeper
from leader.whereabouts import GREETING_BYTES, MAX_PORT, Whereabouts, greeted_by
from store.clock import now
from store.errors import Invalid
from store.outcome import Outcome
from store.zookeeper.address import check_path
from tests.hostile.properties.names import OWNER
from tests.hostile.properties.scratch import file_of


def leader_record(data: bytes) -> None:
    """The copy of the leader information: what is believed could have been published as names."""
    found = information.decode(data, "orders")
    if found is None:
        return
    assert len(data) <= MAX_RECORD_BYTES
    assert (found.job, is_session_id(found.session_id)) == ("orders", True)
    assert 0 < found.epoch <= MAX_EPOCH
    assert 0 < found.version <= MAX_VERSION
    assert information.decode(information.encode(found), "orders") == found
    directory = LeaderDirectory(found.epoch, found.session_id)
    entries = [entry.name for entry in endpoint_entries(found)]
    assert Record.parse(entries).published("orders", directory) == found
    assert information.decode(data, "payments") is None


def checkpoints_record(data: bytes) -> None:
    """The copy of the checkpoints."""
    found = checkpoint_state.decode(data, "orders")
    if found is None:
        return
    assert len(data) <= MAX_RECORD_BYTES
    assert (found.job, is_session_id(found.session_id)) == ("orders", True)
    assert 0 < found.epoch <= MAX_EPOCH
    assert 0 < found.next_id <= MAX_ID
    assert all(0 <= batch <= MAX_ID for batch in found.queries.values())
    assert all(0 < each.id <= MAX_ID for each in found.latest.values())
    written = checkpoint_state.encode(found)
    assert written is not None
    again = checkpoint_state.decode(written, "orders")
    assert again is not None
    assert (again.next_id, again.queries) == (found.next_id, found.queries)
    assert checkpoint_state.decode(data, "payments") is None


def incarnation(data: bytes) -> None:
    """The data of the sessions' node: another word is put there, or a lease can name the token made of it."""
    keeper = SessionKeeper(drift=0.01, reserve=1.0, new_incarnation=lambda: "cafe0123", about=b"")
    asked = keeper.connected(-1, 10.0, 0.0)
    assert asked == ReadNode(SESSIONS)
    asked = _answer(keeper, asked, Node(data, 0, 3))
    if isinstance(asked, WriteNode):
        assert asked == WriteNode(SESSIONS, b"cafe0123", 3)
        return
    assert isinstance(asked, CreateNode)
    check_path(asked.path)
    word, _, session = asked.path.removeprefix(f"{SESSIONS}/").partition("-")
    assert (word.encode(), session) == (data, "f" * 16)
    named = Lease(1, Mode.ZOOKEEPER, 60_000, OWNER, f"{word}-{session}", "a")
    assert Lease.parse(named.name) == named


def _answer(keeper: SessionKeeper, asked: NodeCommand, node: Node) -> NodeCommand | None:
    return keeper.answered(asked, Outcome(node, None, 0.0, 0.0), 0.0)


def belief(data: bytes) -> None:
    """The belief: nothing but what a sidecar may have written makes anybody a leader, and no guard waits for ever."""
    with suppress(OSError):
        reader = BeliefReader(file_of("belief", data))
        for until in reader.read():
            assert not math.isnan(until)
            assert until <= now() + FARTHEST
        assert reader.is_leader() == (reader.read()[0] > now())


ORIGIN = Origin("0123456789abcdef", "12345678-aaaa-bbbb-cccc-0123456789ab.4026531834")
AUDIT = 30.0


def snapshot(data: bytes) -> None:
    """What an agent was told: what is believed could have been published, and is in time for a while at most.

    As it is, and under a right checksum: else nothing but the checksum would be tried.
    """
    for each in (data, wire._sealed(data)):
        found = wire.decode(each, "orders", ORIGIN, AUDIT)
        if found is None:
            continue
        assert len(each) <= MAX_SNAPSHOT_BYTES
        assert 0 <= found.at <= found.good_until <= found.at + AUDIT
        assert (found.epoch == 0) == (found.session_id == "")
        assert (found.job, 0 <= found.epoch <= MAX_EPOCH) == ("orders", True)
        if found.information is not None:
            told = found.information
            assert (told.epoch, told.session_id) == (found.epoch, found.session_id)
            assert information.decode(information.encode(told), "orders") == told
        assert wire.decode(wire.encode(found, ORIGIN, AUDIT), "orders", ORIGIN, AUDIT) == found
        assert wire.decode(each, "payments", ORIGIN, AUDIT) is None
        assert wire.decode(each, "orders", Origin(ORIGIN.cluster, "another"), AUDIT) is None
        assert wire.decode(each, "orders", Origin("another", ORIGIN.boot), AUDIT) is None


def beat(data: bytes) -> None:
    """That there is an agent: a time, or never; a time without end is one that no reader waits for."""
    for each in (data, wire._sealed(data)):
        assert isinstance(wire.decode_beat(each, ORIGIN), float)
        assert wire.decode_beat(each, Origin("another", ORIGIN.boot)) == -math.inf


def session_about(data: bytes) -> None:
    """The data of a session's node: what is taken can be connected to without asking a name server, and be written."""
    found = whereabouts.decode(data)
    if found is None:
        return
    ipaddress.ip_address(found.host)
    assert 0 < found.port <= MAX_PORT
    contender = data.split(b" ")[0].decode()
    assert whereabouts.encode(contender, found) == data
    assert greeted_by(found.greeting) == found.process


def greeting(data: bytes) -> None:
    """What somebody says who is connected to: one text alone is a process's."""
    process = greeted_by(data)
    assert process is None or Whereabouts("::1", 1, process).greeting == data
    assert process is None or len(data) == GREETING_BYTES


def result(data: bytes) -> None:
    """How something has ended: for good, or it cannot be read."""
    with suppress(Invalid):
        found = results.decode(data, dirty=True)
        assert found.status.globally_terminal
        assert results.decode(results.encode(found), dirty=True) == found


def operator_metadata(data: bytes) -> None:
    """What Spark has noted of an operator of a query: it is moved once, and then it is there."""
    with suppress(Invalid):
        moved = at("hdfs://n:1/ha/orders/x/spark/daily", data)
        assert at("hdfs://n:1/ha/orders/x/spark/daily", moved) == moved


ALL = (
    *(leader_record, checkpoints_record, incarnation, belief, snapshot, beat, session_about, greeting),
    *(result, operator_metadata),
)
