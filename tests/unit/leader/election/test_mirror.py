"""The mirror in ZooKeeper, answer by answer: it is repaired for ever, and never deletes a foreign node."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from leader.election.mirror import FIRST_PAUSE, LONGEST_PAUSE, QUIET, Mirror
from leader.layout.znodes import CreateNode, DeleteNode, Node, NodeCommand, ReadNode, Sync, WriteNode
from leader.timing import NEVER
from store.errors import AlreadyExists, Conflict, ConnectionLost, NotFound, StoreError
from store.outcome import Outcome

PATH = "/jobs/orders/leader"
OURS, THEIRS = 0x1001, 0x2002
LOOK = ReadNode(PATH, watch=True)


class Store:
    """Plays ZooKeeper with one node. It answers at once unless told to wait."""

    def __init__(self, *, observe: bool = False) -> None:
        self.mirror = Mirror(PATH, observe=observe)
        self.now = 0.0
        self.node: Node | None = None
        self.asked: list[NodeCommand] = []
        self.touches: list[bool] = []
        """The finding of each read: whether somebody else was there."""
        self.failing: StoreError | None = None
        self.waiting: NodeCommand | None = None

    def connect(self, session: int = OURS) -> "Store":
        self.serve(self.mirror.connected(session, self.now))
        return self

    def want(self, data: bytes | None) -> "Store":
        self.serve(self.mirror.want(data, self.now))
        return self

    def changed(self, node: Node | None) -> "Store":
        """Change the node as somebody else; the watch fires."""
        self.node = node
        self.serve(self.mirror.changed(self.now))
        return self

    def elapse(self, seconds: float) -> "Store":
        end = self.now + seconds
        while (wake := self.mirror.wake_at(self.now)) <= end:
            self.now = wake
            self.serve(self.mirror.tick(self.now))
        self.now = end
        self.serve(self.mirror.tick(self.now))
        return self

    def serve(self, command: NodeCommand | None) -> None:
        while command is not None:
            self.asked.append(command)
            outcome = self.execute(command)
            self.now += 0.001
            following = self.mirror.answered(command, outcome, self.now)
            if isinstance(command, ReadNode):
                self.touches.append(self.mirror.touched)
            command = following

    def execute(self, command: NodeCommand) -> Outcome[Node | None]:
        error: StoreError | None = self.failing
        value = None
        if error is None:
            try:
                value = self.change(command)
            except StoreError as refused:
                error = refused
        return Outcome(value, error, self.now, self.now)

    def change(self, command: NodeCommand) -> Node | None:
        match command:
            case Sync():
                pass
            case ReadNode():
                if self.node is None:
                    raise NotFound(PATH)
                return self.node
            case CreateNode(_, data, ephemeral):
                if self.node is not None:
                    raise AlreadyExists(PATH)
                self.node = Node(data, OURS if ephemeral else 0, 0)
            case WriteNode(_, data, version):
                self.node = Node(data, self.versioned(version).owner, version + 1)
            case DeleteNode(_, version):
                self.versioned(version)
                self.node = None
        return None

    def versioned(self, version: int) -> Node:
        if self.node is None or self.node.version != version:
            raise Conflict(PATH)
        return self.node

    def deletions(self) -> list[NodeCommand]:
        return [command for command in self.asked if isinstance(command, DeleteNode)]

    def writes(self) -> list[NodeCommand]:
        return [command for command in self.asked if not isinstance(command, ReadNode | Sync)]


@pytest.mark.parametrize("found", [None, Node(b"theirs", THEIRS, 0)], ids=["none", "theirs"])
def test_a_change_that_is_told_before_the_answer_is_read_once_more(found: Node | None) -> None:
    """Seen in a benchmark: a watch event overtook the read that had set the watch, and no later change was heard."""
    mirror = Mirror(PATH, observe=True)
    assert mirror.connected(OURS, 0.0) == LOOK
    assert mirror.changed(0.001) is None, "one command at a time"
    error = None if found is not None else NotFound(PATH)
    assert mirror.answered(LOOK, Outcome(found, error, 0.0, 0.002), 0.002) == LOOK
    assert mirror.answered(LOOK, Outcome(found, error, 0.002, 0.003), 0.003) is None


def test_nothing_is_asked_while_nothing_is_wanted_or_nobody_answers() -> None:
    unwanted = Store().connect()
    assert (unwanted.asked, unwanted.mirror.published) == ([], False)
    alone = Store(observe=True).want(b"1").elapse(100)
    assert alone.asked == []
    alone.connect()
    assert alone.node == Node(b"1", OURS, 0)


def test_an_observed_node_is_read_and_watched_even_then() -> None:
    store = Store(observe=True).connect()
    assert store.asked == [LOOK]
    store.changed(Node(b"theirs", THEIRS, 0))
    assert store.asked == [LOOK, LOOK]
    assert not store.mirror.published


def test_it_looks_before_it_writes_and_after() -> None:
    store = Store().connect().want(b"1")
    assert store.asked == [LOOK, CreateNode(PATH, b"1"), LOOK]
    assert store.mirror.published
    assert store.mirror.repairs == 0
    assert store.want(b"1").elapse(3600).asked == [LOOK, CreateNode(PATH, b"1"), LOOK], "once is enough"


def test_the_node_of_an_earlier_session_is_written_into_then_made_anew_when_it_goes() -> None:
    store = Store()
    store.node = Node(b"old", THEIRS, 7)
    store.connect().want(b"1")
    assert store.node == Node(b"1", THEIRS, 8)
    assert store.deletions() == []
    store.changed(None)
    assert store.node == Node(b"1", OURS, 0)


def test_new_data_is_written_without_a_pause() -> None:
    store = Store().connect()
    for number in range(50):
        before = store.now
        store.want(b"%d" % number)
        assert store.mirror.published
        assert store.now - before < FIRST_PAUSE
    assert store.mirror.repairs == 0


def test_new_data_does_not_wait_for_the_pause_of_a_repair() -> None:
    store = Store().connect().want(b"1")
    for _ in range(5):
        store.changed(Node(b"foreign", THEIRS, 3))
    assert store.mirror.wake_at(store.now) < NEVER
    store.want(b"2")
    assert store.mirror.published


def test_a_foreign_node_is_overwritten_and_one_deleted_is_made_again() -> None:
    store = Store().connect().want(b"1")
    store.changed(Node(b"foreign", THEIRS, 3)).elapse(1)
    assert store.node == Node(b"1", THEIRS, 4)
    store.changed(None).elapse(1)
    assert store.node == Node(b"1", OURS, 0)
    assert store.mirror.repairs == 2
    assert store.deletions() == []


def test_repairs_that_are_undone_pause_ever_longer() -> None:
    store = Store().connect().want(b"1")
    pauses = []
    for number in range(12):
        store.changed(Node(b"foreign", THEIRS, number))
        before = store.now
        while not store.mirror.published:
            wake = store.mirror.wake_at(store.now)
            assert wake < NEVER, "it would never be repaired"
            store.elapse(wake - store.now)
        pauses.append(store.now - before)
    assert pauses[0] < FIRST_PAUSE
    assert all(later > 1.5 * earlier for earlier, later in pairwise(pauses[1:8]))
    assert max(pauses) <= LONGEST_PAUSE + 0.1
    assert max(pauses) > LONGEST_PAUSE - 0.1


def test_after_some_quiet_the_pause_starts_small_again() -> None:
    store = Store().connect().want(b"1")
    for number in range(12):
        store.changed(Node(b"foreign", THEIRS, number)).elapse(LONGEST_PAUSE)
    store.elapse(QUIET + 1)
    before = store.now
    store.changed(None)
    assert store.mirror.published
    assert store.now - before < FIRST_PAUSE


def test_data_no_longer_wanted_is_deleted_if_it_is_ours() -> None:
    store = Store().connect().want(b"1").want(None)
    assert store.node is None
    assert store.deletions() == [DeleteNode(PATH, 0)]
    store.elapse(100)
    assert len(store.deletions()) == 1


def test_a_node_that_another_made_or_wrote_is_never_deleted() -> None:
    for theirs in (Node(b"1", THEIRS, 0), Node(b"1", 0, 0), Node(b"of the next leader", OURS, 4)):
        store = Store().connect().want(b"1")
        store.mirror.changed(store.now)
        store.node = theirs
        store.connect().want(None).elapse(10)
        assert store.node is not None
        assert (store.node.data, store.node.owner) == (theirs.data, theirs.owner)
        assert store.deletions() == []


@pytest.mark.parametrize("owner", [THEIRS, 0], ids=["of another session", "of no session"])
def test_a_leader_that_ends_touches_a_node_that_it_must_not_delete(owner: int) -> None:
    """Otherwise no watch fires, and a standby that the lease was given back for misses its turn."""
    store = Store().connect().want(b"1")
    store.node = Node(b"1", owner, 4)
    store.asked.clear()
    store.want(None)
    assert store.writes() == [WriteNode(PATH, b"1", 4)]
    store.changed(store.node).elapse(100)
    assert store.writes() == [WriteNode(PATH, b"1", 4)], "once"


def test_a_touch_never_overwrites_the_next_leader() -> None:
    store = Store().connect().want(b"1")
    mirror = store.mirror
    store.node = Node(b"1", THEIRS, 4)
    mirror.want(None, store.now)
    mirror.answered(Sync(PATH), Outcome(None, None, 0, 0), store.now)
    touch = mirror.answered(LOOK, Outcome(store.node, None, 0, 0), store.now)
    assert touch == WriteNode(PATH, b"1", 4)
    store.node = Node(b"of the next leader", THEIRS, 5)
    store.serve(touch)
    store.elapse(10)
    assert store.node == Node(b"of the next leader", THEIRS, 5)


def test_a_write_that_was_under_way_when_the_leader_ended_is_no_farewell() -> None:
    store = Store().connect().want(b"1")
    mirror = store.mirror
    write = mirror.want(b"2", store.now)
    assert write == WriteNode(PATH, b"2", 0)
    assert mirror.want(None, store.now) is None
    store.serve(write)
    assert store.node is None, "it is deleted after that"


def test_before_a_deletion_the_node_is_read_from_a_server_that_is_up_to_date() -> None:
    """Found by the simulator: a successor's new node has the version that ours had, which a stranger had deleted."""
    store = Store().connect().want(b"1")
    store.node = Node(b"theirs", THEIRS, 0)  # and the watch has not fired yet
    store.asked.clear()
    store.want(None)
    assert store.asked == [Sync(PATH), LOOK]
    assert store.node == Node(b"theirs", THEIRS, 0)


def test_a_read_from_before_the_deletion_was_wanted_does_not_count() -> None:
    store = Store().connect().want(b"1")
    mirror = store.mirror
    assert mirror.changed(store.now) == LOOK
    assert mirror.want(None, store.now) is None
    assert mirror.answered(LOOK, Outcome(store.node, None, 0, 0), store.now) == Sync(PATH)
    assert mirror.answered(Sync(PATH), Outcome(None, None, 0, 0), store.now) == LOOK


def test_a_deletion_whose_answer_was_lost_is_not_repeated_before_the_server_is_up_to_date() -> None:
    store = Store().connect().want(b"1")
    mirror = store.mirror
    assert mirror.want(None, store.now) == Sync(PATH)
    assert mirror.answered(Sync(PATH), Outcome(None, None, 0, 0), store.now) == LOOK
    delete = mirror.answered(LOOK, Outcome(store.node, None, 0, 0), store.now)
    assert delete == DeleteNode(PATH, 0)
    assert mirror.answered(delete, Outcome(None, ConnectionLost("x"), 0, 0), store.now) is None
    assert mirror.tick(store.now + FIRST_PAUSE) == Sync(PATH)
    assert mirror.answered(Sync(PATH), Outcome(None, ConnectionLost("x"), 0, 0), store.now + 1) is None
    assert mirror.tick(store.now + 1 + FIRST_PAUSE) == Sync(PATH)


def test_a_node_that_was_only_watched_is_never_deleted() -> None:
    store = Store(observe=True)
    store.node = Node(b"1", OURS, 0)
    store.connect().want(None).elapse(10)
    assert store.writes() == []


def test_nothing_of_an_earlier_session_of_ours_is_deleted() -> None:
    store = Store().connect().want(b"1")
    store.mirror.disconnected()
    store.connect(THEIRS).want(None).elapse(10)
    assert store.node == Node(b"1", OURS, 1), "its session ends it"
    assert store.deletions() == []


def test_saying_twice_that_it_shall_go_still_deletes_it() -> None:
    store = Store().connect().want(b"1")
    store.mirror.disconnected()
    store.want(None).want(None).connect()
    assert store.node is None


def test_a_mirror_is_deleted_even_if_the_last_change_to_it_never_happened() -> None:
    store = Store().connect().want(b"1")
    store.failing = ConnectionLost("x")
    store.want(b"2").want(None)
    store.failing = None
    store.elapse(1)
    assert store.node is None, "a leader that released would be shown for as long as its process lives"


def test_data_that_is_wanted_again_before_its_deletion_stays() -> None:
    store = Store().connect().want(b"1")
    store.mirror.disconnected()
    store.want(None).want(b"1").connect().elapse(1)
    assert store.node == Node(b"1", OURS, 0)
    assert store.deletions() == []


def test_errors_are_tried_again_after_a_pause() -> None:
    store = Store().connect()
    store.failing = ConnectionLost("x")
    store.want(b"1")
    assert len(store.asked) == 1
    store.elapse(1)
    assert len(store.asked) <= 2 + 1 / FIRST_PAUSE
    store.failing = None
    store.elapse(2 * FIRST_PAUSE)
    assert store.node == Node(b"1", OURS, 0)


def test_a_change_whose_answer_was_lost_is_seen_and_not_made_twice() -> None:
    store = Store().connect()
    mirror = store.mirror
    assert mirror.want(b"1", store.now) == LOOK
    command = mirror.answered(LOOK, Outcome(None, NotFound("x"), 0, 0), store.now)
    assert command == CreateNode(PATH, b"1")
    store.node = Node(b"1", OURS, 0)
    assert mirror.answered(command, Outcome(None, ConnectionLost("x"), 0, 0), store.now) is None
    store.elapse(1)
    assert store.asked == [LOOK]
    assert mirror.published


def test_one_command_at_a_time() -> None:
    mirror = Mirror(PATH, observe=True)
    assert mirror.connected(OURS, 0.0) == LOOK
    assert mirror.want(b"1", 0.0) is None
    assert mirror.changed(0.0) is None
    assert mirror.tick(0.0) is None
    assert mirror.answered(LOOK, Outcome(None, NotFound("x"), 0, 0), 0.0) == LOOK, "it has changed since"
    assert mirror.answered(LOOK, Outcome(None, NotFound("x"), 0, 0), 0.0) == CreateNode(PATH, b"1")


def test_after_a_reconnection_the_node_is_read_anew() -> None:
    store = Store().connect().want(b"1")
    store.mirror.disconnected()
    store.node = None
    store.asked.clear()
    store.connect()
    assert store.asked[0] == LOOK
    assert store.node == Node(b"1", OURS, 0)


def test_a_node_of_no_session_makes_room_for_one_of_ours() -> None:
    store = Store().connect().want(b"ours")
    store.changed(Node(b"theirs", 0, 3)).elapse(QUIET)
    assert store.node == Node(b"ours", OURS, 0)
    store.changed(Node(b"ours", 0, 0)).elapse(QUIET)
    assert store.node == Node(b"ours", OURS, 0), "also if it says the right thing: it would outlive its leader"


def test_seen_is_the_data_of_the_last_read() -> None:
    store = Store(observe=True)
    seen = [store.mirror.seen]
    seen.append(store.connect().mirror.seen)
    seen.append(store.changed(Node(b"theirs", THEIRS, 0)).mirror.seen)
    seen.append(store.want(b"ours").mirror.seen)
    seen.append(store.changed(None).mirror.seen)
    assert seen == [None, None, b"theirs", b"ours", b"ours"], "what is wanted is made again"


def test_its_own_writes_do_not_count_as_touched() -> None:
    store = Store(observe=True).connect()
    for data in (b"one", b"two"):
        store.want(data)
        store.changed(store.node)  # its own watch fires
    assert len(store.touches) > 2
    assert not any(store.touches)


def test_the_same_data_written_by_another_is_reported_once() -> None:
    """An operator uses this to make the leader look at HDFS at once."""
    store = Store(observe=True).connect().want(b"one")
    assert store.node is not None
    store.touches.clear()
    store.changed(replace(store.node, version=store.node.version + 1))
    store.changed(store.node)
    assert store.touches == [True, False]


@pytest.mark.parametrize("found", [None, Node(b"theirs", THEIRS, 0)], ids=["deleted", "replaced"])
def test_a_change_by_another_is_reported_although_it_is_repaired_at_once(found: Node | None) -> None:
    store = Store(observe=True).connect().want(b"one")
    store.touches.clear()
    store.changed(found)
    assert store.mirror.published
    assert store.touches == [True, False]


def test_a_standby_has_written_nothing_that_could_be_touched() -> None:
    store = Store(observe=True).connect()
    store.changed(Node(b"theirs", THEIRS, 3))
    assert store.touches == [False, False]
