"""The session attestor, answer by answer: what ZooKeeper has confirmed, and until when."""

import pytest

from leader.election.attestation import SessionAttestor, check_attestation
from leader.layout.lease import Attestation, Lease, Mode
from leader.layout.znodes import (
    SESSIONS,
    CreateNode,
    Node,
    NodeCommand,
    ReadNode,
    Sync,
    WriteNode,
    incarnation_of,
    make_token,
    session_path,
)
from leader.timing import HEARD_AFTER, NEVER
from store.errors import AlreadyExists, Conflict, ConnectionLost, NotFound, NotSent, PermissionDenied, StoreError
from store.outcome import Outcome
from tests.unit.leader.samples import A

S1, S2 = 0x1001, -0x7FFF000000000001
TOKEN = "cafe0123-1001"  # noqa: S105  # the name of a node
OWN = session_path(TOKEN)
RESERVE = 2.0


class Hand:
    """Plays ZooKeeper: keeps the last command until the test answers it."""

    def __init__(self) -> None:
        words = iter(["cafe0123", "beef4567"])
        self.attestor = SessionAttestor(drift=0.01, reserve=RESERVE, new_incarnation=lambda: next(words), data=b"a")
        self.now = 0.0
        self.asked: NodeCommand | None = None

    def connect(self, session: int = S1, timeout: float = 9.0) -> NodeCommand | None:
        return self.heard(self.attestor.connected(session, timeout, self.now))

    def answer(self, value: Node | StoreError | None = None, seconds: float = 0.1) -> NodeCommand | None:
        command, self.asked = self.asked, None
        assert command is not None, "nothing was asked"
        self.now += seconds
        error = value if isinstance(value, StoreError) else None
        node = None if isinstance(value, StoreError) else value
        return self.heard(self.attestor.answered(command, Outcome(node, error, self.now, self.now), self.now))

    def tick(self, at: float) -> NodeCommand | None:
        self.now = at
        return self.heard(self.attestor.tick(at))

    def heard(self, command: NodeCommand | None) -> NodeCommand | None:
        assert command is None or self.asked is None, "one command at a time"
        self.asked = command or self.asked
        return command

    def confirmed_once(self) -> "Hand":
        assert self.connect() == ReadNode(SESSIONS)
        assert self.answer(root()) == CreateNode(OWN, b"a")
        assert self.answer() == Sync(SESSIONS)
        self.read()
        return self

    def attested(self) -> "Hand":
        """Confirmed four times, from 0.2, 1.7, 3.2 and 4.7 on; the time is 5.0."""
        self.confirmed_once()
        for at in (1.7, 3.2, 4.7):
            self.confirm(at)
        return self

    def confirm(self, at: float) -> None:
        assert self.tick(at) == Sync(SESSIONS)
        self.read()

    def synced(self) -> NodeCommand | None:
        assert self.answer() == Sync(SESSIONS)
        return self.answer()

    def read(self) -> None:
        assert self.synced() is not None
        assert self.answer(own()) is None


def root(data: bytes = b"cafe0123") -> Node:
    return Node(data, 0, 0)


def own(session: int = S1) -> Node:
    return Node(b"a", session, 0)


def test_nothing_is_attested_without_a_connection() -> None:
    hand = Hand()
    assert hand.attestor.attestation == Attestation(None, float("-inf"), usable=False)
    assert hand.tick(100) is None
    assert hand.attestor.wake_at() == NEVER
    assert hand.attestor.watched is None


def test_step_by_step_to_an_attestation() -> None:
    hand = Hand().attested()
    assert hand.attestor.attestation.token == TOKEN
    assert hand.attestor.attestation.usable
    assert hand.attestor.watched == OWN
    # counted from the start of the last sync but two, the timeout less the drift: not from when the answer came
    assert hand.attestor.attestation.until == pytest.approx(1.7 + 9 * 0.99)


def test_nothing_is_believed_of_a_session_that_has_not_settled() -> None:
    hand = Hand().confirmed_once()
    assert hand.attestor.attestation == Attestation(TOKEN, float("-inf"), answers=True), "others can be asked about"
    for at in (1.7, 3.2):
        hand.confirm(at)
        assert hand.attestor.attestation == Attestation(TOKEN, float("-inf"), answers=True)
    hand.confirm(4.7)
    assert hand.attestor.attestation.usable


def test_after_a_silence_it_has_to_settle_again() -> None:
    """Found by the simulator: the quorum ended a session that had been confirmed 1.6 s before, of 8."""
    hand = Hand().attested()
    until = hand.attestor.attestation.until
    for at in (9.3, 10.8, 12.3):
        hand.confirm(at)
        assert hand.attestor.attestation == Attestation(TOKEN, until, answers=True), "what was proven stays proven"
    hand.confirm(13.8)
    assert hand.attestor.attestation.until == pytest.approx(10.8 + 9 * 0.99)
    assert hand.attestor.attestation.usable


def test_one_slow_answer_breaks_no_row() -> None:
    hand = Hand().attested()
    hand.confirm(9.1)
    assert hand.attestor.attestation.until == pytest.approx(4.7 + 9 * 0.99)
    assert hand.attestor.attestation.usable


def test_a_confirmation_is_two_syncs_one_after_the_other_and_a_read() -> None:
    """Found by the simulator: after only one sync, a server's report on its clients could still get lost."""
    hand = Hand().attested()
    until = hand.attestor.attestation.until
    hand.tick(6.2)
    hand.synced()
    assert hand.asked == ReadNode(OWN, watch=True)
    assert hand.attestor.attestation.until == until
    hand.answer(own())
    assert hand.attestor.attestation.until == until + 1.5
    assert hand.tick(7.7) == Sync(SESSIONS), "and again from the first one"
    assert hand.answer() == Sync(SESSIONS)
    hand.answer(ConnectionLost("x"))
    assert hand.attestor.attestation == Attestation(TOKEN, until + 1.5, usable=False)


def test_a_session_that_is_nearly_over_is_not_usable_while_an_answer_is_awaited() -> None:
    """Found by the simulator: a leader relied on the time left after one silence; a second one ended its leadership."""
    hand = Hand().attested()
    until = hand.attestor.attestation.until
    hand.confirm(6.2)
    hand.tick(7.7)
    assert hand.answer(seconds=1.3) == Sync(SESSIONS)
    assert hand.answer() == ReadNode(OWN, watch=True)
    ends = hand.attestor.wake_at()
    assert ends == hand.attestor.attestation.until - RESERVE
    assert hand.tick(ends - 0.01) is None
    assert hand.attestor.attestation.usable
    assert hand.tick(ends) is None
    assert hand.attestor.attestation == Attestation(TOKEN, until + 1.5, answers=True)
    silent = hand.attestor.wake_at()
    assert ends < silent < ends + 1, "it is asked no more about others either, soon after"
    assert hand.tick(silent) is None
    assert hand.attestor.attestation == Attestation(TOKEN, until + 1.5)
    assert hand.attestor.wake_at() == NEVER
    hand.answer(own())
    assert hand.attestor.attestation.usable, "it was only slow"


@pytest.mark.parametrize("heard_after", [HEARD_AFTER, 0.0])
def test_a_wake_up_that_finds_nothing_to_do_asks_nothing(heard_after: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by a canary that trusts its session for longer: it was woken again and again without time passing."""
    monkeypatch.setattr("leader.election.attestation.HEARD_AFTER", heard_after)
    hand = Hand().attested()
    hand.tick(hand.attestor.wake_at())
    for _ in range(3):
        woken = hand.attestor.wake_at()
        hand.tick(woken)
        assert hand.attestor.wake_at() > woken or woken == NEVER


def test_nothing_is_attested_before_the_own_node_was_read() -> None:
    hand = Hand()
    hand.connect()
    for value in (root(), None, None, None):
        hand.answer(value)
        assert hand.attestor.attestation == Attestation()


def test_it_confirms_six_times_in_a_session_timeout() -> None:
    hand = Hand().attested()
    due = hand.attestor.wake_at()
    assert due == pytest.approx(4.7 + 9 / 6)
    assert hand.tick(due - 0.01) is None
    assert hand.tick(due) == Sync(SESSIONS)
    usable_until = hand.attestor.attestation.until - RESERVE
    assert hand.attestor.wake_at() == usable_until, "an answer that is awaited wakes by itself"
    hand.synced()
    hand.answer(own())
    assert hand.attestor.attestation.until == pytest.approx(due - 2 * 9 / 6 + 9 * 0.99)


@pytest.mark.parametrize("answer", [None, AlreadyExists("x")], ids=["alone", "of two, both take the one that is there"])
def test_the_first_process_of_all_makes_the_incarnation(answer: AlreadyExists | None) -> None:
    hand = Hand()
    hand.connect()
    assert hand.answer(NotFound("x")) == CreateNode(SESSIONS, b"cafe0123", ephemeral=False)
    assert hand.answer(answer) == ReadNode(SESSIONS)
    assert hand.answer(root(b"0123abcd")) == CreateNode(session_path("0123abcd-1001"), b"a")


@pytest.mark.parametrize("data", [b"", b"hello", b"a/b", b"CAFE0123", b"\xff", b"1" * 17, b"cafe0123\n"])
def test_a_damaged_incarnation_is_replaced_and_never_written_into_a_lease(data: bytes) -> None:
    hand = Hand()
    hand.connect()
    assert hand.answer(Node(data, 0, 3)) == WriteNode(SESSIONS, b"cafe0123", 3)
    assert hand.answer() == ReadNode(SESSIONS)
    assert hand.answer(root()) == CreateNode(OWN, b"a")


@pytest.mark.parametrize("error", [Conflict("x"), PermissionDenied("x"), ConnectionLost("x")])
def test_a_damaged_incarnation_that_cannot_be_replaced_is_tried_again_in_a_while(error: StoreError) -> None:
    hand = Hand()
    hand.connect()
    hand.answer(Node(b"hello", 0, 3))
    assert hand.answer(error) is None
    assert hand.attestor.wake_at() > hand.now + 1
    assert not hand.attestor.attestation.usable
    assert hand.tick(hand.attestor.wake_at()) == ReadNode(SESSIONS)


def test_every_token_fits_into_a_lease() -> None:
    for session in (0, 1, S1, S2, 2**63 - 1, -(2**63)):
        token = make_token("f" * 16, session, 0xABCDE)
        lease = Lease(1, Mode.ZOOKEEPER, 60_000, A, token, "a")
        assert Lease.parse(lease.name) == lease
        assert incarnation_of(token) == "f" * 16


def test_a_node_of_this_very_session_that_is_there_already_will_do() -> None:
    hand = Hand()
    hand.connect()
    hand.answer(root())
    assert hand.answer(AlreadyExists("x")) == Sync(SESSIONS)


@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("error", [NotSent("x"), ConnectionLost("x"), PermissionDenied("x")])
def test_an_error_at_any_step_attests_nothing_and_is_tried_again(step: int, error: StoreError) -> None:
    hand = Hand()
    hand.connect()
    for value in [root(), None, None, None][:step]:
        hand.answer(value)
    assert hand.answer(error) is None
    assert hand.attestor.attestation == Attestation()
    due = hand.attestor.wake_at()
    assert hand.now < due <= hand.now + 9 / 6
    assert hand.tick(due) is not None


def test_a_lost_connection_keeps_the_belief_and_the_same_session_goes_on() -> None:
    hand = Hand().attested()
    until = hand.attestor.attestation.until
    hand.attestor.disconnected()
    assert hand.attestor.attestation == Attestation(TOKEN, until, usable=False)
    assert hand.attestor.wake_at() == NEVER
    assert hand.tick(100) is None
    assert hand.heard(hand.attestor.confirm_now(100)) is None
    assert hand.connect() == Sync(SESSIONS), "the node is there: only the confirmation is old"
    assert hand.attestor.attestation.token == TOKEN


def test_an_answer_that_comes_after_the_connection_was_lost_does_not_make_it_usable() -> None:
    hand = Hand().attested()
    hand.tick(hand.attestor.wake_at())
    hand.synced()
    hand.attestor.disconnected()
    hand.answer(own())
    assert not hand.attestor.attestation.usable, "nothing would ever take it back: no confirmation is due"


def test_a_new_session_has_no_node_and_no_attestation_yet() -> None:
    hand = Hand().attested()
    hand.attestor.disconnected()
    assert hand.connect(S2) == ReadNode(SESSIONS)
    assert hand.attestor.attestation == Attestation()
    assert hand.answer(root()) == CreateNode(session_path("cafe0123-8000ffffffffffff"), b"a")


@pytest.mark.parametrize("step", range(5))
def test_answers_to_an_old_session_are_ignored(step: int) -> None:
    hand = Hand()
    hand.connect()
    for value in [root(), None, None, None][:step]:
        hand.answer(value)
    asked = hand.asked
    assert hand.connect(S2) is None, "the command of the old session is still under way"
    assert hand.asked == asked
    late = [root(b"0bad0bad"), None, None, None, own(S1)][step]
    assert hand.answer(late) == ReadNode(SESSIONS), "it begins anew"
    assert hand.attestor.attestation == Attestation()
    assert hand.answer(root()) == CreateNode(session_path("cafe0123-8000ffffffffffff"), b"a")


def test_a_deleted_node_is_noticed_at_once_and_made_again() -> None:
    hand = Hand().attested()
    until = hand.attestor.attestation.until
    assert hand.heard(hand.attestor.confirm_now(5.1)) == Sync(SESSIONS), "the watch went off"
    hand.synced()
    assert hand.answer(NotFound("x")) is None
    assert hand.attestor.attestation == Attestation(TOKEN, until, usable=False)
    assert hand.tick(hand.attestor.wake_at()) == ReadNode(SESSIONS)
    assert hand.answer(root()) == CreateNode(f"{OWN}-1", b"a"), "whoever saw the first one gone is right for ever"
    hand.answer()
    hand.synced()
    hand.answer(own())
    assert hand.attestor.attestation.token == f"{TOKEN}-1"
    assert hand.attestor.attestation.usable


def test_in_a_wiped_ensemble_it_gets_another_token() -> None:
    hand = Hand().attested()
    hand.heard(hand.attestor.confirm_now(5.1))
    hand.synced()
    hand.answer(NotFound("x"))
    hand.tick(hand.attestor.wake_at())
    assert hand.answer(NotFound("x")) == CreateNode(SESSIONS, b"cafe0123", ephemeral=False)
    hand.answer()
    assert hand.answer(root(b"0123abcd")) == CreateNode(session_path("0123abcd-1001-1"), b"a")


def test_a_node_of_another_session_in_our_place_attests_nothing() -> None:
    hand = Hand()
    hand.connect()
    for value in (root(), AlreadyExists("x"), None, None):
        hand.answer(value)
    assert hand.answer(own(S2)) is None
    assert hand.attestor.attestation == Attestation()
    assert hand.tick(hand.attestor.wake_at()) == CreateNode(f"{OWN}-1", b"a"), "it makes another"


def test_a_change_seen_while_a_command_is_under_way_is_confirmed_afterwards() -> None:
    hand = Hand().attested()
    hand.tick(hand.attestor.wake_at())
    assert hand.heard(hand.attestor.confirm_now(hand.now)) is None
    hand.synced()
    hand.answer(own())
    assert hand.attestor.wake_at() <= hand.now
    assert hand.tick(hand.now) == Sync(SESSIONS)


def ask(*answers: Node | StoreError | None) -> tuple[bool | None, list[NodeCommand]]:
    steps = check_attestation(TOKEN)
    asked = [next(steps)]
    try:
        for answer in answers:
            error = answer if isinstance(answer, StoreError) else None
            asked.append(steps.send(Outcome(None if error else answer, error, 0, 0)))  # type: ignore[arg-type]
    except StopIteration as stop:
        return stop.value, asked
    raise AssertionError(f"it asks on: {asked}")


def test_a_node_that_is_there_is_there_and_watched() -> None:
    present, asked = ask(None, root(), own())
    assert present is True
    assert asked == [Sync(SESSIONS), ReadNode(SESSIONS), ReadNode(OWN, watch=True)]


def test_a_node_that_is_gone_in_its_own_incarnation_is_gone() -> None:
    assert ask(None, root(), NotFound("x"))[0] is False


@pytest.mark.parametrize(
    "answers",
    [
        (ConnectionLost("x"),), (None, NotFound("x")), (None, ConnectionLost("x")), (None, root(b"beef4567")),
        (None, root(b"")), (None, None), (None, root(), ConnectionLost("x")), (None, root(), PermissionDenied("x")),
    ],
    ids=str,
)  # fmt: skip
def test_zookeeper_cannot_say(answers: tuple[Node | StoreError | None, ...]) -> None:
    assert ask(*answers)[0] is None


def test_what_access_lists_do_not_allow_is_asked_ever_more_seldom() -> None:
    hand = Hand()
    hand.connect()
    waits = []
    for _ in range(8):
        assert hand.answer(PermissionDenied("no"), 0.0) is None
        due = hand.attestor.wake_at()
        assert hand.tick(due - 0.01) is None, "not before that"
        assert hand.tick(due) == ReadNode(SESSIONS)
        waits.append(due)
    steps = [round(after - before, 3) for before, after in zip([0.0, *waits], waits, strict=False)]
    assert steps == [1.5, 3, 6, 12, 24, 30, 30, 30]


def test_once_it_is_allowed_the_next_refusal_is_asked_soon_again() -> None:
    hand = Hand()
    hand.connect()
    for _ in range(3):
        hand.answer(PermissionDenied("no"), 0.0)
        hand.tick(hand.attestor.wake_at())
    assert hand.answer(root(), 0.0) == CreateNode(OWN, b"a")
    hand.answer(PermissionDenied("no"), 0.0)
    assert hand.attestor.wake_at() == hand.now + 1.5


def test_a_refusal_after_the_connection_was_lost_asks_nothing() -> None:
    hand = Hand().attested()
    hand.tick(hand.attestor.wake_at())
    hand.attestor.disconnected()
    assert hand.answer(PermissionDenied("no"), 0.0) is None
    assert not hand.attestor.attestation.usable
    assert hand.attestor.wake_at() == NEVER


def test_other_nodes_of_the_session_have_names_of_their_own() -> None:
    hand = Hand()
    assert hand.attestor.another_token() is None
    hand.connect()
    assert hand.attestor.another_token() is None, "the incarnation is not known yet"
    hand.answer(root())
    hand.answer()
    hand.read()
    assert [hand.attestor.another_token() for _ in range(2)] == [f"{TOKEN}-1", f"{TOKEN}-2"]
    hand.tick(1.7)
    hand.synced()
    hand.answer(NotFound("It is gone."))  # its own node is made under the next name
    hand.tick(3.2)
    assert hand.answer(root()) == CreateNode(f"{OWN}-3", b"a")


def test_confirmations_come_as_often_as_is_asked_for() -> None:
    hand = Hand()
    hand.attestor._every = 0.25
    hand.confirmed_once()
    assert hand.attestor.confirmed_at == 0.2
    assert hand.attestor.wake_at() == pytest.approx(0.2 + 9 / 4)
    hand.confirm(hand.attestor.wake_at())
    assert hand.attestor.confirmed_at == pytest.approx(0.2 + 9 / 4)
    hand.connect(S2)
    assert hand.attestor.confirmed_at == float("-inf")
