"""Simulated holder of a host's session, and the sockets on which it lends that session to the processes of its host.

A socket of one host loses nothing and overtakes nothing: what was sent before it broke is read, then its end.
"""

from collections.abc import Callable
from functools import partial

from leader.contender.session_holder import SessionHolder
from leader.election.borrowed_session import Lent
from leader.timing import Timing
from tests.system.simulation.ensemble import Ensemble
from tests.system.simulation.host import Host
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.process import Process
from tests.system.simulation.world import World

LATENCY = 0.0002
CONNECTS_EVERY = 0.4
"""Seconds between two tries of a member to reach the holder."""


class Holder(Host):
    """A process that holds its host's session."""

    def __init__(
        self, world: World, name: str, files: Namespace, ensemble: Ensemble | None, timing: Timing, rate: float = 1.0
    ) -> None:
        super().__init__(world, name, files, ensemble, timing)
        self.rate = rate
        self.members: list[Socket] = []
        incarnation: Callable[[], str] = lambda: f"{world.random.getrandbits(32):08x}"  # noqa: E731
        self.holder = SessionHolder(self, name, timing, new_incarnation=incarnation)
        if self.client is not None:
            self.client.connected.append(self.holder.connected)
            self.client.disconnected.append(self.holder.disconnected)

    def start(self) -> "Holder":
        if self.client is not None:
            self.client.start()
        return self

    def crash(self) -> None:
        super().crash()
        for socket in list(self.members):
            socket.end()


class Socket:
    """A member's connection to the holder; it is made anew when it breaks, as long as the member lives."""

    def __init__(self, member: Process, holder: Callable[[], Holder | None]) -> None:
        self._member, self._find = member, holder
        self._world = member.world
        self._holder: Holder | None = None
        self._number: int | None = None
        self._connection = 0
        """How often it was connected: what belongs to an earlier connection does not count."""
        member.borrows_by = self
        self.connect()

    def connect(self) -> None:
        """Try to connect until it succeeds."""
        holder = self._find()
        if not self._member.alive:
            return
        if holder is None or not holder.alive:
            self._world.after(CONNECTS_EVERY, self.connect)
            return
        self._holder = holder
        self._connection += 1
        holder.members.append(self)
        self._world.after(LATENCY, partial(holder.run, partial(self._join, holder, self._connection)))

    def _join(self, holder: Holder, connection: int) -> None:
        if connection != self._connection or self._holder is None:
            return  # it broke while the holder was paused
        self._number = holder.holder.join(self._member.name, self._lend)

    def _lend(self, lent: Lent | None) -> None:
        self._world.after(LATENCY, partial(self._member.run, partial(self._member.contender.lent, lent)))

    def end(self) -> None:
        """Break it, from whichever side."""
        holder, number = self._holder, self._number
        if holder is None:
            return
        self._holder = self._number = None
        holder.members.remove(self)
        if number is not None:
            self._world.after(LATENCY, partial(holder.run, partial(holder.holder.leave, number)))
        self._lend(None)
        self._world.after(CONNECTS_EVERY, self.connect)
