"""A borrowed session, word by word: what a member may rely on, and until when."""

import pytest

from leader.election.borrowed_session import BorrowedSession, Lent
from leader.layout.lease import Attestation
from leader.layout.znodes import Node
from leader.timing import NEVER, PAST, SESSION_SHARE

TOKEN, OTHER = "cafe0123-1001-1", "cafe0123-1001-2"  # names of nodes
NODE = Node(b"a", 0x1001, 0)
DRIFT, RESERVE, TIMEOUT = 0.01, 3.0, 10.0
WORD = Lent(TOKEN, 107.0, 100.0, TIMEOUT)
ANSWERS_UNTIL = 100.0 + TIMEOUT * SESSION_SHARE * (1 - DRIFT) - RESERVE


@pytest.fixture
def session() -> BorrowedSession:
    return BorrowedSession(drift=DRIFT, reserve=RESERVE)


def believed(session: BorrowedSession, word: Lent = WORD, now: float = 100.1) -> BorrowedSession:
    assert session.lent(word, now) == word.token
    session.looked(word.token, NODE, now)
    return session


def test_nothing_is_attested_before_the_member_has_seen_its_node(session: BorrowedSession) -> None:
    assert session.lent(WORD, 100.1) == TOKEN
    assert session.attestation == Attestation()
    assert session.wake_at() == NEVER
    session.looked(TOKEN, NODE, 100.2)
    assert session.attestation == Attestation(TOKEN, 107.0, usable=True, answers=True)
    assert session.lent(WORD, 100.3) is None, "once is enough"


@pytest.mark.parametrize("node", [None, Node(b"a", 0x1002, 0), Node(b"a", 0, 0)])
def test_a_node_that_is_gone_or_not_ours_is_looked_for_again(session: BorrowedSession, node: Node | None) -> None:
    session.lent(WORD, 100.1)
    session.looked(TOKEN, node, 100.2)
    assert session.attestation == Attestation()
    assert session.lent(WORD, 100.3) == TOKEN


def test_a_look_at_an_earlier_node_says_nothing_of_the_present_one(session: BorrowedSession) -> None:
    session.lent(WORD, 100.1)
    session.lent(Lent(OTHER, 108.0, 101.0, TIMEOUT), 101.1)
    session.looked(TOKEN, NODE, 101.2)
    assert session.attestation.token is None


def test_it_counts_from_when_the_confirmation_began_however_late_it_is_read(session: BorrowedSession) -> None:
    believed(session, now=103.9)
    assert session.attestation.usable
    late = BorrowedSession(drift=DRIFT, reserve=RESERVE)
    believed(late, now=104.0)
    assert late.attestation == Attestation(TOKEN, 107.0), "less than the reserve is left"


def test_it_ends_before_the_reserve(session: BorrowedSession) -> None:
    believed(session)
    assert session.wake_at() == 107.0 - RESERVE
    session.tick(103.999)
    assert session.attestation == Attestation(TOKEN, 107.0, usable=True)
    session.tick(104.0)
    assert session.attestation == Attestation(TOKEN, 107.0), "what was confirmed stays confirmed"


def test_answers_end_in_time_although_nothing_has_settled(session: BorrowedSession) -> None:
    believed(session, Lent(TOKEN, 0.0, 100.0, TIMEOUT))
    assert session.attestation == Attestation(TOKEN, PAST, answers=True)
    assert session.wake_at() == ANSWERS_UNTIL
    session.tick(ANSWERS_UNTIL - 0.001)
    assert session.attestation == Attestation(TOKEN, PAST, answers=True)
    session.tick(ANSWERS_UNTIL)
    assert session.attestation == Attestation(TOKEN, PAST)
    late = believed(BorrowedSession(drift=DRIFT, reserve=RESERVE), Lent(TOKEN, 0.0, 100.0, TIMEOUT), ANSWERS_UNTIL)
    assert not late.attestation.answers


def test_a_holder_that_lends_no_more_is_not_relied_on(session: BorrowedSession) -> None:
    believed(session)
    assert session.lent(None, 100.5) is None
    assert session.attestation == Attestation(TOKEN, 107.0)
    assert session.wake_at() == NEVER
    assert session.lent(Lent(TOKEN, 108.0, 101.0, TIMEOUT), 101.1) is None
    assert session.attestation.usable


def test_a_confirmation_never_takes_back_what_an_earlier_one_has_proven(session: BorrowedSession) -> None:
    believed(session)
    session.lent(Lent(TOKEN, 0.0, 101.0, TIMEOUT), 101.1)
    assert session.attestation.until == 107.0


def test_what_was_proven_of_one_node_says_nothing_of_another(session: BorrowedSession) -> None:
    believed(session)
    believed(session, Lent(OTHER, 105.0, 101.0, TIMEOUT), 101.1)
    assert session.attestation == Attestation(OTHER, 105.0, usable=True, answers=True)
