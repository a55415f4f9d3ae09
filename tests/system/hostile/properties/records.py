"""Properties of every record in ZooKeeper or on this host. Each function takes any bytes."""

import math
from contextlib import suppress

from ha.agent import snapshots as wire
from ha.agent.snapshots import MAX_SNAPSHOT_BYTES, Origin
from ha.program.deadline_file import FARTHEST_S, DeadlineReader
from ha.spark.stored.locations import relocated
from leader.election.attestation import SessionAttestor
from leader.job import results
from leader.layout import checkpoint_state, information
from leader.layout.checkpoint import MAX_ID
from leader.layout.contact import GREETING_BYTES, ContactAddress, greeted_by
from leader.layout.information import MAX_RECORD_BYTES, MAX_VERSION, Record, endpoint_entries
from leader.layout.lease import Lease, Mode
from leader.layout.names import MAX_EPOCH, LeaderDirectory, is_session_id
from leader.layout.znodes import SESSIONS, CreateNode, Node, NodeCommand, ReadNode, WriteNode
from store.clock import now
from store.errors import Invalid
from store.outcome import Outcome
from store.zookeeper.address import check_path
from tests.system.hostile.properties.names import OWNER
from tests.system.hostile.properties.scratch import file_of


def leader_record(data: bytes) -> None:
    """The copy of the leader information: accepted information could have been published as names."""
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
    """The data of the sessions' node: it is replaced, or a lease can name the token that is made of it."""
    attestor = SessionAttestor(drift=0.01, reserve=1.0, new_incarnation=lambda: "cafe0123", data=b"")
    asked = attestor.connected(-1, 10.0, 0.0)
    assert asked == ReadNode(SESSIONS)
    asked = _answer(attestor, asked, Node(data, 0, 3))
    if isinstance(asked, WriteNode):
        assert asked == WriteNode(SESSIONS, b"cafe0123", 3)
        return
    assert isinstance(asked, CreateNode)
    check_path(asked.path)
    word, _, session = asked.path.removeprefix(f"{SESSIONS}/").partition("-")
    assert (word.encode(), session) == (data, "f" * 16)
    named = Lease(1, Mode.ZOOKEEPER, 60_000, OWNER, f"{word}-{session}", "a")
    assert Lease.parse(named.name) == named


def _answer(attestor: SessionAttestor, asked: NodeCommand, node: Node) -> NodeCommand | None:
    return attestor.answered(asked, Outcome(node, None, 0.0, 0.0), 0.0)


def belief(data: bytes) -> None:
    """The deadline file: only what a sidecar may have written makes a leader, and no guard waits for ever."""
    with suppress(OSError):
        reader = DeadlineReader(file_of("belief", data))
        for until in reader.read():
            assert not math.isnan(until)
            assert until <= now() + FARTHEST_S
        before, leads, after = now(), reader.is_leader(), now()
        assert leads <= (reader.read()[0] > before)
        assert leads >= (reader.read()[0] > after)


ORIGIN = Origin("0123456789abcdef", "12345678-aaaa-bbbb-cccc-0123456789ab.4026531834")
AUDIT = 30.0


def snapshot(data: bytes) -> None:
    """A snapshot of an agent: accepted answers could have been published, and are fresh for a limited time.

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
    """The file that announces an agent: a time, or never; no reader waits for an infinite time."""
    for each in (data, wire._sealed(data)):
        assert isinstance(wire.decode_beat(each, ORIGIN), float)
        assert wire.decode_beat(each, Origin("another", ORIGIN.boot)) == -math.inf


def greeting(data: bytes) -> None:
    """The greeting on a liveness connection: only one text is the expected process's."""
    process = greeted_by(data)
    assert process is None or ContactAddress("::1", 1, process).greeting == data
    assert process is None or len(data) == GREETING_BYTES


def result(data: bytes) -> None:
    """The end of a job: a final status, or an error."""
    with suppress(Invalid):
        found = results.decode(data, dirty=True)
        assert found.status.globally_terminal
        assert results.decode(results.encode(found), dirty=True) == found


def operator_metadata(data: bytes) -> None:
    """Spark's metadata of an operator: its path is corrected once, and is correct then."""
    with suppress(Invalid):
        moved = relocated("hdfs://n:1/ha/orders/x/spark/daily", data)
        assert relocated("hdfs://n:1/ha/orders/x/spark/daily", moved) == moved


ALL = (
    *(leader_record, checkpoints_record, incarnation, belief, snapshot, beat, greeting),
    *(result, operator_metadata),
)
