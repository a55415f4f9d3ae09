"""Member nodes, answer by answer: made, watched, lent of, and deleted when no belief can rest on them."""

import pytest

from leader.election.borrowed_session import Lent
from leader.election.member_node import MemberNode
from leader.layout.znodes import CreateNode, DeleteNode, Node, NodeCommand, ReadNode, session_path
from leader.timing import PAST
from store.errors import AlreadyExists, Conflict, ConnectionLost, NotFound, StoreError
from store.outcome import Outcome

S1, S2 = 0x1001, 0x1002
FIRST, SECOND = "cafe0123-1001-1", "cafe0123-1001-2"


class Hand:
    """Plays ZooKeeper: answers the one command that is under way."""

    def __init__(self) -> None:
        self._names = iter([FIRST, SECOND, "cafe0123-1001-3"])
        self.names = True
        self.node = MemberNode(b"a", lambda: next(self._names) if self.names else None)
        self.asked: NodeCommand | None = None

    def heard(self, command: NodeCommand | None) -> NodeCommand | None:
        assert command is None or self.asked is None, "one command at a time"
        self.asked = command or self.asked
        return command

    def tick(self, now: float = 0.0) -> NodeCommand | None:
        return self.heard(self.node.tick(now))

    def answer(self, value: Node | StoreError | None = None, now: float = 0.0) -> NodeCommand | None:
        command, self.asked = self.asked, None
        assert command is not None, "nothing was asked"
        error = value if isinstance(value, StoreError) else None
        node = None if isinstance(value, StoreError) else value
        return self.heard(self.node.answered(command, Outcome(node, error, now, now), now))

    def there(self) -> "Hand":
        self.node.connected(S1)
        assert self.tick() == CreateNode(session_path(FIRST), b"a")
        assert self.answer() == ReadNode(session_path(FIRST), watch=True)
        assert self.answer(own()) is None
        return self


def own(session: int = S1, version: int = 0) -> Node:
    return Node(b"a", session, version)


def lent(hand: Hand, until: float = 100.0) -> Lent | None:
    return hand.node.lend(until, 90.0, 10.0)


def test_a_node_is_made_read_with_a_watch_and_then_lent_of() -> None:
    hand = Hand()
    assert hand.tick() is None, "nothing is made without a session"
    assert lent(hand) is None
    hand.there()
    assert lent(hand) == Lent(FIRST, 100.0, 90.0, 10.0)
    assert hand.tick() is None


def test_nothing_is_lent_before_the_node_was_read() -> None:
    hand = Hand()
    hand.node.connected(S1)
    hand.tick()
    assert lent(hand) is None
    hand.answer(AlreadyExists("It is there."))
    assert lent(hand) is None


def test_a_session_that_has_not_settled_is_lent_without_a_promise() -> None:
    hand = Hand().there()
    assert lent(hand, PAST) == Lent(FIRST, 0.0, 90.0, 10.0)
    hand.node.leave()
    assert hand.tick(0.0) == DeleteNode(session_path(FIRST), 0)


def test_a_node_waits_for_its_name() -> None:
    hand = Hand()
    hand.names = False
    hand.node.connected(S1)
    assert hand.tick() is None
    hand.names = True
    assert hand.tick() == CreateNode(session_path(FIRST), b"a")


def test_while_a_change_is_unread_nothing_is_lent() -> None:
    hand = Hand().there()
    assert hand.heard(hand.node.changed(1.0)) == ReadNode(session_path(FIRST), watch=True)
    assert lent(hand) is None
    assert hand.answer(own(version=1)) is None
    assert lent(hand) is not None


@pytest.mark.parametrize("found", [NotFound("It is gone."), own(S2)], ids=["gone", "somebody else's"])
def test_a_node_that_is_not_ours_is_not_lent_of_and_made_under_another_name(found: Node | NotFound) -> None:
    hand = Hand().there()
    hand.heard(hand.node.changed(1.0))
    assert hand.answer(found) == CreateNode(session_path(SECOND), b"a")
    assert lent(hand) is None


def test_without_a_connection_nothing_is_lent_until_the_node_was_read_again() -> None:
    hand = Hand().there()
    hand.node.disconnected()
    assert lent(hand) is None
    hand.node.connected(S1)
    assert hand.tick() == ReadNode(session_path(FIRST), watch=True)
    assert lent(hand) is None
    hand.answer(own())
    assert lent(hand) is not None


@pytest.mark.parametrize("answered", [False, True], ids=["asked nothing", "an answer to the session before"])
def test_a_new_session_gets_a_new_node(*, answered: bool) -> None:
    hand = Hand().there()
    if answered:
        hand.heard(hand.node.changed(1.0))
    hand.node.connected(S2)
    assert lent(hand) is None
    assert (hand.answer(own()) if answered else hand.tick()) == CreateNode(session_path(SECOND), b"a")


@pytest.mark.parametrize("answer", [None, AlreadyExists("It is there."), ConnectionLost("It broke.")])
def test_neither_does_the_answer_to_a_node_that_was_to_be_made(answer: StoreError | None) -> None:
    hand = Hand()
    hand.node.connected(S1)
    assert hand.tick() == CreateNode(session_path(FIRST), b"a")
    hand.node.connected(S2)
    assert hand.tick() is None, "one command at a time"
    assert (hand.answer(answer) or hand.tick()) == CreateNode(session_path(SECOND), b"a")


def test_the_node_of_a_member_that_has_left_stays_as_long_as_was_promised() -> None:
    hand = Hand().there()
    lent(hand, 100.0)
    lent(hand, 95.0)
    hand.node.leave()
    assert lent(hand, 200.0) is None, "nothing is promised any more"
    assert hand.node.delete_at() == 100.0
    assert hand.tick(99.999) is None
    assert hand.tick(100.0) == DeleteNode(session_path(FIRST), 0)
    hand.answer()
    assert hand.node.over
    assert hand.tick(101.0) is None


def test_a_stranger_who_writes_into_a_node_only_delays_its_end() -> None:
    hand = Hand().there()
    hand.node.leave()
    hand.tick(0.0)
    assert hand.answer(Conflict("Another version.")) is None
    assert hand.tick(1.0) == ReadNode(session_path(FIRST), watch=True)
    assert hand.answer(own(version=3)) == DeleteNode(session_path(FIRST), 3)
    hand.answer(NotFound("It is gone."))
    assert hand.node.over


def test_a_member_that_leaves_before_it_has_a_node_is_over() -> None:
    hand = Hand()
    hand.node.leave()
    assert hand.node.over, "without a session, too"
    late = Hand()
    late.names = False
    late.node.connected(S1)
    late.tick()
    late.node.leave()
    assert late.tick() is None
    assert late.node.over


def test_a_node_that_is_gone_before_its_member_left_needs_no_end() -> None:
    hand = Hand().there()
    hand.node.leave()
    assert hand.heard(hand.node.changed(0.0)) == ReadNode(session_path(FIRST), watch=True)
    hand.answer(NotFound("It is gone."))
    assert hand.tick() is None
    assert hand.node.over


def test_a_member_that_has_left_is_over_with_its_session() -> None:
    hand = Hand().there()
    lent(hand)
    hand.node.leave()
    over = []
    for session in (S1, S2):
        hand.node.connected(session)
        over.append(hand.node.over)
    assert over == [False, True]
