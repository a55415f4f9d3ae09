"""Wires: connections among processes. A living host refuses a port without a listener; a lost host says nothing.

The end of a process shows on its connections. A pause, a cut or a lost host do not. True time only.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from leader.contender.liveness_probe import CONNECT_TIMEOUT
from leader.election.ports import Heard, ProbeEvent
from leader.layout.contact import ContactAddress, ReleaseNotice
from tests.system.simulation.disturbances import place
from tests.system.simulation.world import World

if TYPE_CHECKING:
    from tests.system.simulation.host import Host

LATENCY = 0.0005
NOTICED = (0.001, 0.05)
"""Seconds after which the end of a process is heard."""

LATE = (0.001, 3.0)
"""Seconds after which a notice is heard that is on its way for long, behind much else."""

FIRST_PORT = 40_000
ELSEWHERE = "10.9.9.9"
"""An address of a host that lives, and on which nobody listens."""


def address(name: str) -> str:
    """Return the address of the process's host."""
    return f"10.0.0.{ord(place(name)[0])}"


class Wire:
    """One connection, or an attempt at one."""

    def __init__(self, caller: "Host", heard: Callable[[Heard], None]) -> None:
        self.caller = caller
        self.there: Host | None = None
        self.greeted = self.closed = False
        self._heard = heard

    def close(self) -> None:
        self.closed = True

    def hear(self, sign: Heard) -> None:
        """Report an event to the caller, once the caller can take it."""
        self.caller.run(lambda: self._hear(sign))

    def _hear(self, sign: Heard) -> None:
        if not self.closed:
            self.greeted = self.greeted or sign is ProbeEvent.GREETED
            self.closed = isinstance(sign, ProbeEvent) and sign is not ProbeEvent.GREETED
            self._heard(sign)


class Wires:
    """All listening processes, and all connections."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._dice = world.dice("wires")
        self._listening: dict[tuple[str, int], tuple[Host, ContactAddress]] = {}
        self._hosts: dict[str, Host] = {}
        self._lost: set[str] = set()
        self._held: set[Host] = set()
        """Processes that have ended, and whose listening sockets their guards hold."""
        self._open: list[Wire] = []
        self.misled: set[str] = set()
        """Hosts whose address, as they tell it, leads elsewhere."""
        self.late = 0.5
        """Share of notices that are heard late."""

    def listen(self, host: "Host") -> ContactAddress:
        """Let a process listen, sometimes at its predecessor's port."""
        where = address(host.name)
        before = [
            port for (at, port), (holder, _) in self._listening.items() if at == where and holder not in self._held
        ]
        port = before[-1] if before and self._dice.random() < 0.5 else FIRST_PORT + len(self._listening)
        told = ContactAddress(where, port, f"{self._dice.getrandbits(128):032x}")
        self._listening[where, port] = host, told
        self._hosts[where] = host
        self._lost.discard(where)
        return replace(told, host=ELSEWHERE) if place(host.name) in self.misled else told

    def hold(self, ended: "Host") -> None:
        """Let a guard hold the socket of a process that has ended: it refuses nobody, and greets nobody."""
        self._held.add(ended)

    def let_go(self, ended: "Host") -> None:
        """Let the guard end."""
        self._held.discard(ended)

    def hand_over(self, ended: "Host", host: "Host") -> ContactAddress:
        """Let a process have the socket that a guard holds; it greets with the former word."""
        for key, (holder, told) in self._listening.items():
            if holder is ended:
                self.let_go(ended)
                self._listening[key] = host, told
                self._hosts[told.host] = host
                return replace(told, host=ELSEWHERE) if place(host.name) in self.misled else told
        raise AssertionError("it has listened")

    # --- faults of hosts

    def ended(self, host: "Host") -> None:
        """End a process's connections; its host lives."""
        for wire in [each for each in self._open if each.there is host]:
            self._world.after(self._dice.uniform(*NOTICED), partial(self._break, wire))

    def lost(self, host: "Host") -> None:
        """Silence a process's connections; its host is lost."""
        self._lost.add(address(host.name))

    def reset(self, host: "Host") -> None:
        """Reset all connections to a process, as something on the way might."""
        for wire in [each for each in self._open if each.there is host]:
            self._break(wire)

    def _break(self, wire: Wire) -> None:
        if wire in self._open:
            self._open.remove(wire)
            if wire.caller.peers.open:
                wire.hear(ProbeEvent.BROKEN)

    def _reachable(self, caller: "Host", where: str) -> bool:
        host = self._hosts.get(where)
        return caller.peers.open and where not in self._lost and (host is None or host.peers.open)

    # --- calls

    def call(self, caller: "Host", where: ContactAddress, heard: Callable[[Heard], None]) -> Wire:
        """See :meth:`leader.election.ports.Environment.probe`."""
        wire = Wire(caller, heard)
        self._world.after(LATENCY, lambda: self._arrive(wire, where))
        return wire

    def _arrive(self, wire: Wire, where: ContactAddress) -> None:
        self._open = [each for each in self._open if not each.closed and each.caller.alive]
        if not self._reachable(wire.caller, where.host):
            self._world.after(CONNECT_TIMEOUT, lambda: wire.hear(ProbeEvent.SILENT))
            return
        host, listens = self._listening.get((where.host, where.port), (None, None))
        if host in self._held:
            self._world.after(CONNECT_TIMEOUT, lambda: wire.hear(ProbeEvent.SILENT))
            return
        if host is None or listens is None or not host.alive:
            self._world.after(LATENCY, lambda: wire.hear(ProbeEvent.REFUSED))
            return
        wire.there = host
        self._open.append(wire)
        sign = ProbeEvent.GREETED if listens.process == where.process else ProbeEvent.ANOTHER_PROCESS
        host.run(lambda: self._greet(wire, where.host, sign))

    def tell(self, host: "Host", notice: ReleaseNotice) -> None:
        """Send a notice to all that a process has greeted; some hear it late. Anybody on the way can send one, too."""
        for wire in [each for each in self._open if each.there is host]:
            late = self._dice.uniform(*LATE) if self._dice.random() < self.late else LATENCY
            self._world.after(late, partial(self._told, wire, address(host.name), notice))

    def _told(self, wire: Wire, where: str, notice: ReleaseNotice) -> None:
        if wire in self._open and wire.greeted and self._reachable(wire.caller, where):
            wire.hear(notice)

    def _greet(self, wire: Wire, where: str, sign: ProbeEvent) -> None:
        self._world.after(LATENCY, lambda: self._greeted(wire, where, sign))

    def _greeted(self, wire: Wire, where: str, sign: ProbeEvent) -> None:
        if wire in self._open and self._reachable(wire.caller, where):
            wire.hear(sign)
