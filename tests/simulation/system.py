"""A whole system under test: stores, sidecars, executors; and the history of what they did."""

from collections import Counter

from ha.history.events import Copied, Event, Fault, Stored
from leader.information import Record
from leader.lease import Lease
from leader.names import RECORD, newest
from leader.nodes import Node
from tests.simulation.blocking import Tasks
from tests.simulation.disturbances import Disturbances
from tests.simulation.ensemble import Ensemble
from tests.simulation.executor import Executor, Shelf
from tests.simulation.host import Host
from tests.simulation.namespace import Namespace
from tests.simulation.plan import AGENT, Plan
from tests.simulation.sidecar import JOB, Sidecar
from tests.simulation.wires import Wires
from tests.simulation.world import World

MOST_JITTER = 0.05
"""Seconds for readers: a lookup has to take several round trips within its time."""


class System:
    """Everything that a plan needs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.world = World(plan.seed)
        self.history: list[Event] = []
        self.injected: Counter[str] = Counter()
        self.healed_at = float("inf")
        self.copies: dict[str, list[bytes]] = {}
        """What leaders wrote into ZooKeeper, by path."""
        self.tasks = Tasks()
        self.disturbances = Disturbances(lambda: self.world.now)
        self.files = Namespace()
        self.files.told = self._stored
        self.files.now = lambda: self.world.now
        self.ensemble: Ensemble | None = None
        if plan.servers:
            self.ensemble = Ensemble(self.world, tick=plan.tick, size=plan.servers)
            self.ensemble.told = self._copied
        self.wires = Wires(self.world) if plan.suspicion and plan.servers else None
        if self.wires is not None:
            self.wires.misled.update(plan.misled)
        self.hosts: dict[str, Host] = {}
        self._shelf = Shelf()
        self._started: Counter[str] = Counter()
        for name in [*plan.contenders, *(f"r{number}" for number in range(plan.readers))]:
            self.world.at(self.world.random.uniform(0, 2), lambda name=name: self.start_again(name))  # type: ignore[misc]
            self.hosts[name] = Host(self.world, name, self.files, self.ensemble, plan.timing)

    @property
    def zookeeper(self) -> Ensemble:
        assert self.ensemble is not None, "only plans with ZooKeeper disturb it"
        return self.ensemble

    @property
    def sidecars(self) -> list[Sidecar]:
        """Those that are the present ones of their names, dead or alive."""
        return [host for host in self.hosts.values() if isinstance(host, Sidecar)]

    @property
    def leader(self) -> Sidecar | None:
        """Who leads now."""
        return next((each for each in self.sidecars if each.leads(JOB)), None)

    @property
    def lease(self) -> Lease | None:
        """The lease as the file system holds it."""
        directory = newest(self.files.list(JOB)) if JOB in self.files.root.entries else None
        return Record.parse(self.files.list(f"{JOB}/{directory.name}/{RECORD}")).lease if directory else None

    def start_again(self, name: str) -> None:
        """Start a host, or a new one in place of one that crashed."""
        self._started[name] += 1
        number = self._started[name]
        own = name if number == 1 else f"{name}.{number}"
        plan = self.plan
        if name in plan.contenders:
            sidecar = Sidecar(
                self.world,
                own,
                self.files,
                self.ensemble,
                plan.timing,
                self.tasks,
                self.history.append,
                stubborn=plan.stubborn,
                wires=self.wires,
            )
            sidecar.rate, sidecar.jitter = plan.rates[plan.contenders.index(name)], plan.jitter
            self.hosts[name] = sidecar
            sidecar.start(JOB)
            return
        executor = Executor(
            self.world,
            own,
            self.files,
            self.ensemble,
            plan.timing,
            self.tasks,
            self.history.append,
            audit=plan.audit,
            fresh=plan.fresh,
            shelf=self._shelf if plan.agent else None,
            agent=plan.agent and name == AGENT,
        )
        executor.jitter = min(plan.jitter, MOST_JITTER)
        self.hosts[name] = executor
        executor.start()

    def note(self, what: str, kind: str = "") -> None:
        """Write into the history what was done to the system."""
        self.history.append(Fault(self.world.now, "", what))
        if kind:
            self.injected[kind] += 1

    def _stored(self, at: float, operation: str, path: str, target: str, by: str) -> None:
        if path.startswith(f"{JOB}/"):
            path, target = path.removeprefix(f"{JOB}/"), target.removeprefix(f"{JOB}/")
            self.history.append(Stored(at, JOB, operation, path, target, by))

    def _copied(self, path: str, node: Node, operation: str, session: int) -> None:
        if path.startswith(f"/jobs/{JOB}/"):
            if operation != "delete" and session:
                self.copies.setdefault(path, []).append(node.data)
            data = node.data.decode(errors="replace")
            self.history.append(Copied(self.world.now, JOB, operation, path, node.owner, session, data))
