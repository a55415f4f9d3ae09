"""Canaries of the session that a host shares: what is lent too long, too late, or of a node that is gone."""

from msgspec.structs import replace

from leader.contender.session_holder import SessionHolder
from leader.election.borrowed_session import BorrowedSession, Lent
from leader.election.member_node import MemberNode
from leader.layout.znodes import NodeCommand
from leader.timing import PAST
from tests.system.simulation.canary import S1, Canary, of
from tests.system.simulation.lending_plans import draw_lender_lost, draw_node_deleted, draw_parted

_lend = SessionHolder._lend
_take = BorrowedSession._take


def _lend_from_the_answer(self: SessionHolder, number: int) -> None:
    """Lend the whole timeout from when the answer came, in place of what is proven from where a confirmation began."""
    attestor = self._driver.attestor
    if attestor.attestation.usable and self._session is not None:
        since = getattr(self, "answered", (PAST, 0.0))
        if since[0] != attestor.confirmed_at:
            since = attestor.confirmed_at, self._environment.now()
            self.answered = since  # type: ignore[attr-defined]
        attestor.attestation = replace(attestor.attestation, until=since[1] + self._session[1])
    _lend(self, number)


def _take_from_the_reading(self: BorrowedSession, lent: Lent, now: float) -> None:
    late = now - lent.started
    _take(self, replace(lent, until=lent.until + late if lent.until else 0.0, started=now), now)


def _lend_and_promise_nothing(self: MemberNode, until: float, started: float, timeout: float) -> Lent | None:
    if not self._there or self._left or self._token is None:
        return None
    return Lent(self._token, max(0.0, until), started, timeout)


def _not_heeded(self: MemberNode, now: float) -> NodeCommand | None:
    del self, now
    return None


LENDING = (
    Canary(
        "what is lent counts from the answer", of(SessionHolder, _lend=_lend_from_the_answer), S1, 300, draw_lender_lost
    ),
    Canary(
        "what is lent counts from when it is read",
        of(BorrowedSession, _take=_take_from_the_reading),
        S1,
        300,
        draw_lender_lost,
    ),
    Canary(
        "the node of a member is deleted as soon as it is parted",
        of(MemberNode, lend=_lend_and_promise_nothing),
        S1,
        60,
        draw_parted,
    ),
    Canary(
        "a member is lent to although its node is gone", of(MemberNode, changed=_not_heeded), S1, 60, draw_node_deleted
    ),
)
