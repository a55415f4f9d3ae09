"""Hand: what all steps of a plan share: they find their target, and undo themselves after their time."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.system.simulation.client import Link
from tests.system.simulation.disturbances import place
from tests.system.simulation.ensemble import Server
from tests.system.simulation.host import Host
from tests.system.simulation.plan import Step
from tests.system.simulation.process import Process

if TYPE_CHECKING:
    from tests.system.simulation.system import System


class Hand:
    """Finds the parts of a system that a step is about, and undoes the step."""

    def __init__(self, system: "System") -> None:
        self._system = system
        self._mending: list[tuple[Callable[[], None], str]] = []
        self._healed = False

    def heal(self) -> None:
        """Undo all steps that are not undone yet. No fault strikes any more, although its command is answered now."""
        self._healed = True
        mending, self._mending = self._mending, []
        for mend, _ in mending:
            mend()

    def take(self, step: Step) -> None:
        """Carry out a step."""
        getattr(self, f"_{step.kind.replace('-', '_')}")(step)

    def _for(self, step: Step, what: str, begin: Callable[[], None], mend: Callable[[], None], *stores: str) -> None:
        """Apply a disturbance and undo it after the step's time; ``stores`` names the parts disturbed meanwhile."""
        system = self._system
        system.note(f"{what} ({step.seconds:g} s)", step.kind)
        for store in stores:
            system.disturbances.begin(store)
        begin()
        done = False

        def undo() -> None:
            nonlocal done
            if not done:
                done = True
                mend()
                system.note(f"{what}: over")
                for store in stores:
                    system.disturbances.end(store)

        self._mending.append((undo, what))
        system.world.after(step.seconds, undo)

    def _link(self, step: Step, host: Host, store: str, way: str) -> None:
        link = self._link_of(host, store)

        def begin() -> None:
            link.there, link.back = link.there and way == "back", link.back and way == "there"

        def mend() -> None:
            link.there = link.back = True

        self._for(step, f"{host.name} is cut off from {store} ({way})", begin, mend, f"{place(host.name)} {store}")

    def _link_of(self, host: Host, store: str) -> Link:
        if store == "peers":
            return host.peers
        return host.client.link if store == "zookeeper" and host.client is not None else host.files_link

    def _host(self, name: str) -> Host:
        leader = self._system.leader if name in ("leader", "lender") else None
        if name == "lender":  # the holder of the leader's host's session
            name = self._system.plan.lender_of(place(leader.name)) if leader is not None else ""
            leader = None
        return leader or self._system.hosts.get(name) or self._system.hosts[self._system.plan.contenders[0]]

    def _server(self, name: str) -> Server:
        """Return a server by its number, or the one that the leader, or the holder of its session, is connected to."""
        servers = self._system.zookeeper.servers
        if name not in ("leader", "lender"):
            return servers[int(name) % len(servers)]
        host = self._host("lender") if name == "lender" else self._system.leader
        return (host and host.client and host.client.server) or servers[0]

    def _name(self, host: Host) -> str:
        """Return a host's name in plans; empty if another has taken its place."""
        return next((name for name, each in self._system.hosts.items() if each is host), "")

    def _process(self, name: str) -> Process | None:
        host = self._system.hosts[name]
        return host if isinstance(host, Process) else None
