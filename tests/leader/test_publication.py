"""The copy in ZooKeeper, one answer at a time: repaired for ever, but nothing foreign is ever deleted."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from leader.nodes import CreateNode, DeleteNode, Node, NodeCommand, ReadNode, Sync, WriteNode
from leader.publication import FIRST_PAUSE, LONGEST_PAUSE, NEVER, QUIET, Publication
from store.errors import AlreadyExists, Conflict, ConnectionLost, NotFound, StoreError
from store.outcome import Outcome

PATH = "/jobs/orders/leader"
OURS, THEIRS = 0x1001, 0x2002
LOOK = ReadNode(PATH, watch=True)


class Store:
    """Plays ZooKeeper: one node that is there or not; answers what is asked at once, unless told to wait."""

    def __init__(self, *, observe: bool = False) -> None:
        self.publication = Publication(PATH, observe=observe)
        self.now = 0.0
        self.node: Node | None = None
        self.asked: list[NodeCommand] = []
        self.touches: list[bool] = []
        """What each read has found: whether somebody else was there."""
        self.failing: StoreError | None = None
        self.waiting: NodeCommand | None = None

    def connect(self, session: int = OURS) -> "Store":
        self.serve(self.publication.connected(session, self.now))
        return self

    def want(self, data: bytes | None) -> "Store":
        self.serve(self.publication.want(data, self.now))
        return self

    def changed(self, node: Node | None) -> "Store":
        """Somebody else changes the node, and the watch goes off."""
        self.node = node
        self.serve(self.publication.changed(self.now))
        return self

    def elapse(self, seconds: float) -> "Store":
        end = self.now + seconds
        while (wake := self.publication.wake_at(self.now)) <= end:
            self.now = wake
            self.serve(self.publication.tick(self.now))
        self.now = end
        self.serve(self.publication.tick(self.now))
        return self

    def serve(self, command: NodeCommand | None) -> None:
        while command is not None:
            self.asked.append(command)
            outcome = self.execute(command)
            self.now += 0.001
            following = self.publication.answered(command, outcome, self.now)
            if isinstance(command, ReadNode):
                self.touches.append(self.publication.touched)
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
    """Seen in a benchmark: a watch that went off overtook the read that had set it, and nothing was heard any more."""
    publication = Publication(PATH, observe=True)
    assert publication.connected(OURS, 0.0) == LOOK
    assert publication.changed(0.001) is None, "one command at a time"
    error = None if found is not None else NotFound(PATH)
    assert publication.answered(LOOK, Outcome(found, error, 0.0, 0.002), 0.002) == LOOK
    assert publication.answered(LOOK, Outcome(found, error, 0.002, 0.003), 0.003) is None


def test_nothing_is_read_while_nothing_is_wanted() -> None:
    store = Store().connect()
    assert store.asked == []
    assert not store.publication.published


def test_an_observed_node_is_read_and_watched_even_then() -> None:
    store = Store(observe=True).connect()
    assert store.asked == [LOOK]
    store.changed(Node(b"theirs", THEIRS, 0))
    assert store.asked == [LOOK, LOOK]
    assert not store.publication.published


def test_without_a_connection_nothing_is_asked() -> None:
    store = Store(observe=True).want(b"1").elapse(100)
    assert store.asked == []
    store.connect()
    assert store.node == Node(b"1", OURS, 0)


def test_it_looks_before_it_writes_and_after() -> None:
    store = Store().connect().want(b"1")
    assert store.asked == [LOOK, CreateNode(PATH, b"1"), LOOK]
    assert store.publication.published
    assert store.publication.repairs == 0
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
        assert store.publication.published
        assert store.now - before < FIRST_PAUSE
    assert store.publication.repairs == 0


def test_new_data_does_not_wait_for_the_pause_of_a_repair() -> None:
    store = Store().connect().want(b"1")
    for _ in range(5):
        store.changed(Node(b"foreign", THEIRS, 3))
    assert store.publication.wake_at(store.now) < NEVER
    store.want(b"2")
    assert store.publication.published


def test_a_foreign_node_is_overwritten_and_one_deleted_is_made_again() -> None:
    store = Store().connect().want(b"1")
    store.changed(Node(b"foreign", THEIRS, 3)).elapse(1)
    assert store.node == Node(b"1", THEIRS, 4)
    store.changed(None).elapse(1)
    assert store.node == Node(b"1", OURS, 0)
    assert store.publication.repairs == 2
    assert store.deletions() == []


def test_repairs_pause_longer_and_longer_when_somebody_undoes_them() -> None:
    store = Store().connect().want(b"1")
    pauses = []
    for number in range(12):
        store.changed(Node(b"foreign", THEIRS, number))
        before = store.now
        while not store.publication.published:
            wake = store.publication.wake_at(store.now)
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
    assert store.publication.published
    assert store.now - before < FIRST_PAUSE


def test_what_is_wanted_no_more_is_deleted_if_it_is_ours() -> None:
    store = Store().connect().want(b"1").want(None)
    assert store.node is None
    assert store.deletions() == [DeleteNode(PATH, 0)]
    store.elapse(100)
    assert len(store.deletions()) == 1


def test_what_somebody_else_made_or_wrote_is_never_deleted() -> None:
    for theirs in (Node(b"1", THEIRS, 0), Node(b"1", 0, 0), Node(b"of the next leader", OURS, 4)):
        store = Store().connect().want(b"1")
        store.publication.changed(store.now)
        store.node = theirs
        store.connect().want(None).elapse(10)
        assert store.node == theirs
        assert store.deletions() == []


def test_what_is_to_go_is_read_again_by_a_server_that_is_up_to_date() -> None:
    """Found by the simulator: a successor's new node has the version that ours had, which a stranger had deleted."""
    store = Store().connect().want(b"1")
    store.node = Node(b"theirs", THEIRS, 0)  # and the watch has yet to go off
    store.asked.clear()
    store.want(None)
    assert store.asked == [Sync(PATH), LOOK]
    assert store.node == Node(b"theirs", THEIRS, 0)


def test_what_was_read_before_it_was_to_go_does_not_count() -> None:
    store = Store().connect().want(b"1")
    publication = store.publication
    assert publication.changed(store.now) == LOOK
    assert publication.want(None, store.now) is None
    assert publication.answered(LOOK, Outcome(store.node, None, 0, 0), store.now) == Sync(PATH)
    assert publication.answered(Sync(PATH), Outcome(None, None, 0, 0), store.now) == LOOK


def test_a_deletion_whose_answer_was_lost_is_not_repeated_before_the_server_is_up_to_date() -> None:
    store = Store().connect().want(b"1")
    publication = store.publication
    assert publication.want(None, store.now) == Sync(PATH)
    assert publication.answered(Sync(PATH), Outcome(None, None, 0, 0), store.now) == LOOK
    delete = publication.answered(LOOK, Outcome(store.node, None, 0, 0), store.now)
    assert delete == DeleteNode(PATH, 0)
    assert publication.answered(delete, Outcome(None, ConnectionLost("x"), 0, 0), store.now) is None
    assert publication.tick(store.now + FIRST_PAUSE) == Sync(PATH)
    assert publication.answered(Sync(PATH), Outcome(None, ConnectionLost("x"), 0, 0), store.now + 1) is None
    assert publication.tick(store.now + 1 + FIRST_PAUSE) == Sync(PATH)


def test_a_node_that_was_only_watched_is_never_deleted() -> None:
    store = Store(observe=True)
    store.node = Node(b"1", OURS, 0)
    store.connect().want(None).elapse(10)
    assert store.writes() == []


def test_nothing_of_an_earlier_session_of_ours_is_deleted() -> None:
    store = Store().connect().want(b"1")
    store.publication.disconnected()
    store.connect(THEIRS).want(None).elapse(10)
    assert store.node == Node(b"1", OURS, 0), "its session ends it"


def test_saying_twice_that_it_shall_go_still_deletes_it() -> None:
    store = Store().connect().want(b"1")
    store.publication.disconnected()
    store.want(None).want(None).connect()
    assert store.node is None


def test_a_copy_goes_even_if_the_last_change_to_it_never_happened() -> None:
    store = Store().connect().want(b"1")
    store.failing = ConnectionLost("x")
    store.want(b"2").want(None)
    store.failing = None
    store.elapse(1)
    assert store.node is None, "a leader that released would be shown for as long as its process lives"


def test_wanting_again_what_was_about_to_go_keeps_it() -> None:
    store = Store().connect().want(b"1")
    store.publication.disconnected()
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
    publication = store.publication
    assert publication.want(b"1", store.now) == LOOK
    command = publication.answered(LOOK, Outcome(None, NotFound("x"), 0, 0), store.now)
    assert command == CreateNode(PATH, b"1")
    store.node = Node(b"1", OURS, 0)
    assert publication.answered(command, Outcome(None, ConnectionLost("x"), 0, 0), store.now) is None
    store.elapse(1)
    assert store.asked == [LOOK]
    assert publication.published


def test_one_command_at_a_time() -> None:
    publication = Publication(PATH, observe=True)
    assert publication.connected(OURS, 0.0) == LOOK
    assert publication.want(b"1", 0.0) is None
    assert publication.changed(0.0) is None
    assert publication.tick(0.0) is None
    assert publication.answered(LOOK, Outcome(None, NotFound("x"), 0, 0), 0.0) == LOOK, "it has changed since"
    assert publication.answered(LOOK, Outcome(None, NotFound("x"), 0, 0), 0.0) == CreateNode(PATH, b"1")


def test_after_a_reconnection_the_node_is_read_anew() -> None:
    store = Store().connect().want(b"1")
    store.publication.disconnected()
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


def test_what_was_seen_is_what_was_last_read() -> None:
    store = Store(observe=True)
    seen = [store.publication.seen]
    seen.append(store.connect().publication.seen)
    seen.append(store.changed(Node(b"theirs", THEIRS, 0)).publication.seen)
    seen.append(store.want(b"ours").publication.seen)
    seen.append(store.changed(None).publication.seen)
    assert seen == [None, None, b"theirs", b"ours", b"ours"], "what is wanted is made again"


# --- whose doing it was


def test_its_own_writes_are_nobody_elses_doing() -> None:
    store = Store(observe=True).connect()
    for data in (b"one", b"two"):
        store.want(data)
        store.changed(store.node)  # its own watch goes off
    assert len(store.touches) > 2
    assert not any(store.touches)


def test_the_same_data_written_by_somebody_else_is_told_once() -> None:
    """That is how an operator has the leader look at HDFS at once."""
    store = Store(observe=True).connect().want(b"one")
    assert store.node is not None
    store.touches.clear()
    store.changed(replace(store.node, version=store.node.version + 1))
    store.changed(store.node)
    assert store.touches == [True, False]


@pytest.mark.parametrize("found", [None, Node(b"theirs", THEIRS, 0)], ids=["deleted", "replaced"])
def test_what_somebody_else_did_is_told_although_it_is_repaired_at_once(found: Node | None) -> None:
    store = Store(observe=True).connect().want(b"one")
    store.touches.clear()
    store.changed(found)
    assert store.publication.published
    assert store.touches == [True, False]


def test_a_standby_has_written_nothing_that_could_be_touched() -> None:
    store = Store(observe=True).connect()
    store.changed(Node(b"theirs", THEIRS, 3))
    assert store.touches == [False, False]
