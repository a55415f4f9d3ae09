"""Session source: chooses the ZooKeeper session that attests a contender's leases: its own or its host's shared one.

A contender that borrows confirms no session of its own while the host's attests it. If that ends, its leases continue
in mode ``hdfs``, and after a pause of its own length it confirms its own session, which stays open all the time for
copies, watches and questions.
"""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from leader.contender.session_driver import SessionDriver
from leader.election.attestation import SessionAttestor
from leader.election.borrowed_session import BorrowedSession, Lent
from leader.election.ports import NodeEnvironment, Timer
from leader.layout.lease import Attestation
from leader.layout.znodes import Node, ReadNode, session_path
from leader.timing import NEVER, Timing
from store.outcome import Outcome

# Shares of the session timeout after which a contender without a lender confirms its own session.
PATIENCE = (0.25, 0.5)


class SessionSource:
    """The one place that knows which session attests."""

    def __init__(
        self,
        environment: NodeEnvironment,
        name: str,
        timing: Timing,
        on_changed: Callable[[], None],
        *,
        new_incarnation: Callable[[], str],
        jitter: Callable[[], float],
        borrows: bool,
    ) -> None:
        """Ask nothing yet; for the arguments see :class:`leader.contender.contender.Contender`."""
        reserve = timing.call_timeout + timing.stop_margin
        self._environment = environment
        self._on_changed = on_changed
        share = PATIENCE[0] + (PATIENCE[1] - PATIENCE[0]) * jitter() if borrows else NEVER
        self._patience = timing.session_timeout * share
        own = SessionAttestor(drift=timing.drift, reserve=reserve, new_incarnation=new_incarnation, data=name.encode())
        self._own = SessionDriver(environment, own, on_changed)
        self._borrowed = BorrowedSession(drift=timing.drift, reserve=reserve) if borrows else None
        self._session: tuple[int, float] | None = None
        self._own_from = NEVER  # when to confirm the own session, if the host's does not attest by then
        self._confirms = not borrows  # whether the own session is confirmed
        self._timer: Timer | None = None

    @property
    def attestation(self) -> Attestation:
        """What attests this process's leases now."""
        own = self._own.attestor.attestation
        if self._borrowed is None:
            return own
        borrowed = self._borrowed.attestation
        if self._session is None:  # there is no lender to ask, and the copies are gone: as with an own session
            borrowed = replace(borrowed, usable=False, answers=False)
        return own if self._confirms and not borrowed.usable else borrowed

    @property
    def attested_by(self) -> str:
        """See :attr:`leader.contender.contender.Contender.attested_by`."""
        known = self.attestation
        if not known.usable:
            return ""
        return "host" if self._borrowed is not None and known.token == self._borrowed.attestation.token else "own"

    def connected(self, session: int, timeout: float) -> None:
        """ZooKeeper is connected: the own session is this one."""
        self._session = (session, timeout)
        if self._confirms:
            self._own.connected(session, timeout)
        self._decide()

    def disconnected(self) -> None:
        """ZooKeeper is not connected."""
        self._session = None
        self._own.disconnected()
        self._decide()

    def lent(self, lent: Lent | None) -> None:
        """The holder of the host's session lends this, or nothing."""
        if self._borrowed is None:
            return
        if lent is not None and (self._session is None or lent.timeout > self._session[1]):
            lent = None  # others wait no longer than their own session timeout for what such a session attests
        token = self._borrowed.lent(lent, self._environment.now())
        if token is not None:
            look = ReadNode(session_path(token))
            self._environment.run_node(look, partial(self._looked, token), lambda: None)
        self._decide()

    def _looked(self, token: str, outcome: Outcome[Node | None]) -> None:
        assert self._borrowed is not None, "only who borrows looks"
        self._borrowed.looked(token, outcome.value if outcome.done else None, self._environment.now())
        self._decide()

    def _decide(self) -> None:
        borrowed, now = self._borrowed, self._environment.now()
        if borrowed is None:
            return
        borrowed.tick(now)
        if borrowed.attestation.usable and self._session is not None:
            self._own_from = NEVER
            if self._confirms:
                self._confirms = False
                self._own.disconnected()
        elif not self._confirms:
            self._own_from = min(self._own_from, now + self._patience)
            if now >= self._own_from and self._session is not None:
                self._confirms = True
                self._own.connected(*self._session)
        self._on_changed()
        self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._borrowed is not None, "an own session needs no timer of this one's"
        own_from = self._own_from if not self._confirms and self._session is not None else NEVER
        wake = min(self._borrowed.wake_at(), own_from)
        self._timer = self._environment.call_at(wake, self._wake) if wake < NEVER else None

    def _wake(self) -> None:
        self._timer = None
        self._decide()
