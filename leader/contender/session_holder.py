"""Session holder: confirms one ZooKeeper session for all processes of a host, and lends it to them. No I/O."""

from collections.abc import Callable
from functools import partial

from leader.contender.session_driver import SessionDriver
from leader.election.attestation import SessionAttestor
from leader.election.borrowed_session import Lent
from leader.election.member_node import MemberNode
from leader.election.ports import NodeEnvironment, Timer
from leader.layout.znodes import Node, NodeCommand
from leader.timing import PAST, Timing, shared_confirmations
from store.outcome import Outcome

Lend = Callable[[Lent | None], None]  # carries to a member what is lent to it; None if nothing is lent for now


class _Member:
    """A member: its node, and the way to it."""

    def __init__(self, node: MemberNode, lend: Lend) -> None:
        self.node = node
        self.lend = lend
        self.lent: Lent | None = None
        self.timer: Timer | None = None


class SessionHolder:
    """The holder of a host's session."""

    def __init__(
        self, environment: NodeEnvironment, name: str, timing: Timing, *, new_incarnation: Callable[[], str]
    ) -> None:
        """Start without borrowers; ``new_incarnation`` gives a random word of 8 hexadecimal digits."""
        attestor = SessionAttestor(
            drift=timing.drift,
            reserve=timing.call_timeout + timing.stop_margin,
            new_incarnation=new_incarnation,
            data=name.encode(),
            every=shared_confirmations(timing.drift),
        )
        self._environment = environment
        self._driver = SessionDriver(environment, attestor, self._attested)
        self._members: dict[int, _Member] = {}
        self._joined = 0
        self._session: tuple[int, float] | None = None
        self._confirmed_at = PAST

    @property
    def members(self) -> int:
        """How many members it lends to, or has made a node for that is still there."""
        return len(self._members)

    def join(self, name: str, lend: Lend) -> int:
        """Lend to a member from now on; returns its number, for :meth:`leave`."""
        self._joined += 1
        member = _Member(MemberNode(name.encode(), self._driver.attestor.another_token), lend)
        self._members[self._joined] = member
        if self._session is not None:
            member.node.connected(self._session[0])
        self._step(self._joined)
        return self._joined

    def leave(self, number: int) -> None:
        """Stop lending to that member: its process has ended, or does not listen."""
        member = self._members[number]
        member.node.leave()
        self._step(number)
        if number in self._members and member.node.delete_at() > PAST:
            member.timer = self._environment.call_at(member.node.delete_at(), partial(self._step, number))

    # --- ZooKeeper

    def connected(self, session: int, timeout: float) -> None:
        """ZooKeeper is connected, with a session of this id and this negotiated timeout in seconds."""
        self._session = (session, timeout)
        for member in self._members.values():
            member.node.connected(session)
        self._driver.connected(session, timeout)

    def disconnected(self) -> None:
        """ZooKeeper is not connected, or the session is over."""
        self._session = None
        for member in self._members.values():
            member.node.disconnected()
        self._driver.disconnected()

    def _attested(self) -> None:
        """Something has changed: after a new confirmation, all members are lent to."""
        confirmed = self._driver.attestor.confirmed_at
        news, self._confirmed_at = confirmed > self._confirmed_at, confirmed
        for number in list(self._members):
            if news:
                self._step(number)
            self._lend(number)

    def _lend(self, number: int) -> None:
        member = self._members.get(number)
        if member is None:
            return
        attestor, lent = self._driver.attestor, None
        if self._session is not None and attestor.attestation.answers:
            lent = member.node.lend(attestor.attestation.until, attestor.confirmed_at, self._session[1])
        if lent != member.lent:
            member.lent = lent
            member.lend(lent)

    # --- the members' nodes

    def _step(self, number: int) -> None:
        if (member := self._members.get(number)) is not None:
            self._run(number, member, member.node.tick(self._environment.now()))

    def _run(self, number: int, member: _Member, command: NodeCommand | None) -> None:
        if member.node.over:
            self._members.pop(number, None)
            return
        self._lend(number)
        if command is None:
            return

        def answered(outcome: Outcome[Node | None]) -> None:
            self._run(number, member, member.node.answered(command, outcome, self._environment.now()))

        def changed() -> None:
            self._run(number, member, member.node.changed(self._environment.now()))

        self._environment.run_node(command, answered, changed)
