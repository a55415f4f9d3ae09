"""Connections among processes: a host that lives refuses what nobody listens for, and one that is lost says nothing.

The end of a process is heard on its connections; a pause, a cut or a lost host are not. True time only.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from leader.environment import Sign
from leader.lines import CONNECTED_WITHIN
from leader.whereabouts import Whereabouts
from tests.simulation.disturbances import place
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.host import Host

LATENCY = 0.0005
NOTICED = (0.001, 0.05)
"""Seconds after which the end of a process is heard."""

FIRST_PORT = 40_000
ELSEWHERE = "10.9.9.9"
"""An address of a host that lives, and on which nobody listens."""


def address(name: str) -> str:
    """The address of the host of that process."""
    return f"10.0.0.{ord(place(name)[0])}"


class Wire:
    """One connection, or the try to make one."""

    def __init__(self, caller: "Host", heard: Callable[[Sign], None]) -> None:
        self.caller = caller
        self.there: Host | None = None
        self.closed = False
        self._heard = heard

    def close(self) -> None:
        self.closed = True

    def hear(self, sign: Sign) -> None:
        """The caller learns that, when it can."""
        self.caller.run(lambda: self._hear(sign))

    def _hear(self, sign: Sign) -> None:
        if not self.closed:
            self.closed = sign is not Sign.ITSELF
            self._heard(sign)


class Wires:
    """All processes that listen, and all connections."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._dice = world.dice("wires")
        self._listening: dict[tuple[str, int], tuple[Host, Whereabouts]] = {}
        self._hosts: dict[str, Host] = {}
        self._lost: set[str] = set()
        self._open: list[Wire] = []
        self.misled: set[str] = set()
        """Hosts whose address, as they tell it, leads elsewhere."""

    def listen(self, host: "Host") -> Whereabouts:
        """A process begins to listen, sometimes where the one before it did."""
        where = address(host.name)
        before = [port for at, port in self._listening if at == where]
        port = before[-1] if before and self._dice.random() < 0.5 else FIRST_PORT + len(self._listening)
        told = Whereabouts(where, port, f"{self._dice.getrandbits(128):032x}")
        self._listening[where, port] = host, told
        self._hosts[where] = host
        self._lost.discard(where)
        return replace(told, host=ELSEWHERE) if place(host.name) in self.misled else told

    # --- what happens to hosts

    def ended(self, host: "Host") -> None:
        """A process has ended, and its host lives."""
        for wire in [each for each in self._open if each.there is host]:
            self._world.after(self._dice.uniform(*NOTICED), partial(self._break, wire))

    def lost(self, host: "Host") -> None:
        """A process has ended, and its host with it."""
        self._lost.add(address(host.name))

    def reset(self, host: "Host") -> None:
        """Something on the way ends all connections to a process."""
        for wire in [each for each in self._open if each.there is host]:
            self._break(wire)

    def _break(self, wire: Wire) -> None:
        if wire in self._open:
            self._open.remove(wire)
            if wire.caller.peers.open:
                wire.hear(Sign.BROKEN)

    def _reachable(self, caller: "Host", where: str) -> bool:
        host = self._hosts.get(where)
        return caller.peers.open and where not in self._lost and (host is None or host.peers.open)

    # --- calls

    def call(self, caller: "Host", where: Whereabouts, heard: Callable[[Sign], None]) -> Wire:
        """See :meth:`leader.environment.Environment.call`."""
        wire = Wire(caller, heard)
        self._world.after(LATENCY, lambda: self._arrive(wire, where))
        return wire

    def _arrive(self, wire: Wire, where: Whereabouts) -> None:
        self._open = [each for each in self._open if not each.closed and each.caller.alive]
        if not self._reachable(wire.caller, where.host):
            self._world.after(CONNECTED_WITHIN, lambda: wire.hear(Sign.NOTHING))
            return
        host, listens = self._listening.get((where.host, where.port), (None, None))
        if host is None or listens is None or not host.alive:
            self._world.after(LATENCY, lambda: wire.hear(Sign.REFUSED))
            return
        wire.there = host
        self._open.append(wire)
        sign = Sign.ITSELF if listens.process == where.process else Sign.ANOTHER
        host.run(lambda: self._greet(wire, where.host, sign))

    def _greet(self, wire: Wire, where: str, sign: Sign) -> None:
        self._world.after(LATENCY, lambda: self._greeted(wire, where, sign))

    def _greeted(self, wire: Wire, where: str, sign: Sign) -> None:
        if wire in self._open and self._reachable(wire.caller, where):
            wire.hear(sign)
