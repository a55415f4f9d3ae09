"""Borrowed session: a ZooKeeper session that one process of a host holds and lends to the others. No I/O.

The holder makes a node for each member in its own session, and confirms that session for all of them. What it lends are
times of the host's boot clock, at which confirmations *began*. So it does not matter how late a member reads them.
"""

import msgspec
from msgspec.structs import replace

from leader.election.attestation import answers_until
from leader.layout.lease import Attestation
from leader.layout.znodes import Node, names_session
from leader.timing import NEVER, PAST


class Lent(msgspec.Struct, frozen=True):
    """The newest confirmation of the host's session, for one member."""

    token: str  # names the member's node in that session, which was there when the confirmation began, or later
    until: float  # boot-clock seconds until which no server can have declared the session dead; 0 if it has not settled
    started: float  # boot-clock seconds when the confirmation began
    timeout: float  # the session's, in seconds


class BorrowedSession:
    """One member's knowledge of the session that its host shares."""

    # A token counts once the member has seen its node in its own ZooKeeper: the holder may be connected to another one.

    def __init__(self, *, drift: float, reserve: float) -> None:
        """Know of no session yet; ``reserve`` as for :class:`leader.election.attestation.SessionAttestor`."""
        self.attestation = Attestation()
        self._drift = drift
        self._reserve = reserve
        self._lent: Lent | None = None
        self._seen: str | None = None  # the token whose node this member has seen
        self._answers_until = PAST

    def lent(self, lent: Lent | None, now: float) -> str | None:
        """The holder lends this, None if it lends nothing now; returns a token whose node has to be looked at first."""
        self._lent = lent
        if lent is None:
            self.attestation = replace(self.attestation, usable=False, answers=False)
            return None
        if lent.token != self._seen:
            return lent.token
        self._take(lent, now)
        return None

    def looked(self, token: str, node: Node | None, now: float) -> None:
        """This member has looked at the node of a token; None if it is not there, or no answer came."""
        if node is None or not names_session(token, node.owner):
            return
        self._seen = token
        if self._lent is not None and self._lent.token == token:
            self._take(self._lent, now)

    def tick(self, now: float) -> None:
        """Time has passed."""
        known = self.attestation
        usable, answers = known.usable and now < known.until - self._reserve, now < self._answers_until
        self.attestation = replace(known, usable=usable, answers=known.answers and answers)

    def wake_at(self) -> float:
        """Boot-clock seconds of the end of what is usable."""
        known = self.attestation
        if known.usable:
            return known.until - self._reserve
        return self._answers_until if known.answers else NEVER

    def _take(self, lent: Lent, now: float) -> None:
        until = lent.until or PAST
        if lent.token == self.attestation.token:
            until = max(until, self.attestation.until)
        self._answers_until = answers_until(lent.started, lent.timeout, self._drift, self._reserve)
        self.attestation = Attestation(lent.token, until, now < until - self._reserve, now < self._answers_until)
