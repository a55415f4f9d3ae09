"""System under test: stores, sidecars and executors, with the history of their actions."""

from collections import Counter
from collections.abc import Callable

from ha.history.events import Copied, Event, Fault, Stored, Violation
from leader.job.status import Status
from leader.layout.information import Record
from leader.layout.lease import Lease
from leader.layout.names import RECORD, STATUS, newest
from leader.layout.znodes import Node
from tests.system.simulation import stores
from tests.system.simulation.blocking import Tasks
from tests.system.simulation.disturbances import Disturbances
from tests.system.simulation.ensemble import Ensemble
from tests.system.simulation.escalation import Failures
from tests.system.simulation.executor import Executor, Shelf
from tests.system.simulation.guard import Guard
from tests.system.simulation.host import Host
from tests.system.simulation.lending import Holder, Socket
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.plan import AGENT, Plan
from tests.system.simulation.requests import OPERATOR, Ledger, Operator
from tests.system.simulation.sidecar import JOB, JOBS, Sidecar
from tests.system.simulation.wires import Wires
from tests.system.simulation.world import World


def job_of(path: str) -> str | None:
    """Return the job of a ZooKeeper node; None if it is no job's."""
    return next((job for job in JOBS if path.startswith(f"/jobs/{job}/")), None)


MOST_JITTER = 0.05
"""Seconds for readers: a lookup has to take several round trips within its time."""


class System:
    """All parts that a plan acts on."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.world = World(plan.seed)
        self.history: list[Event] = []
        self.found: list[Violation] = []
        """Promises that processes themselves have seen broken."""
        self.injected: Counter[str] = Counter()
        self.healed_at = float("inf")
        self.copies: dict[str, list[bytes]] = {}
        """Values that leaders wrote into ZooKeeper, by path."""
        self.tasks = Tasks()
        self.disturbances = Disturbances(lambda: self.world.now)
        self.files = stores.LIARS[plan.store]() if plan.store else Namespace()
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
        self._guards: dict[str, Guard] = {}
        """The guards whose sidecars have been killed, by the name of the host."""
        self._shelf = Shelf()
        self._started: Counter[str] = Counter()
        self._hung: Callable[[], None] | None = None
        """Lets the driver that hangs end; None if none does."""
        for name in [*plan.contenders, *(f"r{number}" for number in range(plan.readers))]:
            self.world.at(self.world.random.uniform(0, 2), lambda name=name: self.start_again(name))  # type: ignore[misc]
            self.hosts[name] = Host(self.world, name, self.files, self.ensemble, plan.timing)
        for name in plan.holders:
            self._start_holder(name)
        self.ledger, self.failures = Ledger(), Failures()
        if plan.operated:
            self.hosts[OPERATOR] = Operator(self.world, self.files, plan.timing, self.tasks, self.ledger)

    @property
    def zookeeper(self) -> Ensemble:
        assert self.ensemble is not None, "only plans with ZooKeeper disturb it"
        return self.ensemble

    @property
    def sidecars(self) -> list[Sidecar]:
        """Return the present sidecar of each name, dead or alive."""
        return [host for host in self.hosts.values() if isinstance(host, Sidecar)]

    @property
    def leader(self) -> Sidecar | None:
        """Return the present leader."""
        return self.leader_of(JOB)

    def leader_of(self, job: str) -> Sidecar | None:
        """Return the present leader of one of the jobs."""
        return next((each for each in self.sidecars if each.leads(job)), None)

    @property
    def lease(self) -> Lease | None:
        """Return the lease as the file system holds it."""
        directory = newest(self.files.list(JOB)) if JOB in self.files.root.entries else None
        return Record.parse(self.files.list(f"{JOB}/{directory.name}/{RECORD}")).lease if directory else None

    @property
    def given_up(self) -> bool:
        """Whether the job has FAILED, as the file system lists it."""
        directory = newest(self.files.list(JOB)) if JOB in self.files.root.entries else None
        names = self.files.list(f"{JOB}/{directory.name}") if directory is not None else []
        return any(name.startswith(f"{STATUS}{Status.FAILED.value}") for name in names)

    @property
    def command_runs(self) -> bool:
        """Whether a leader runs the job's command."""
        return any(each.command_runs for each in self.sidecars)

    def kill(self, name: str) -> None:
        """Kill a sidecar, whose command runs on for a while."""
        host = self.hosts[name]
        assert isinstance(host, Sidecar), "only sidecars have guards"
        if (guard := host.orphan(self.plan.adopt_within)) is not None:
            self._guards[name] = guard

    def _command_of(self, name: str) -> Guard | None:
        """Return the guard of a command that a new sidecar of that host takes up; None if there is none."""
        guard = self._guards.pop(name, None)
        return guard if guard is not None and guard.command_runs and guard.lock_is_free else None

    def _hang(self, end: Callable[[], None]) -> bool:
        """Let a driver hang that is told to stop, unless another does."""
        hangs = self.plan.hangs and self._hung is None
        if hangs:
            self._hung = end
            self.note("a driver that is told to stop hangs", "hang-driver")
        return hangs

    def end_hung(self) -> None:
        """Let the driver that hangs end, as if its process had been killed."""
        hung, self._hung = self._hung, None
        if hung is not None:
            hung()

    def _start_holder(self, name: str) -> None:
        """Start the holder of a host's session; all processes of a host have one clock."""
        plan = self.plan
        rate = next(rate for rate, lender in zip(plan.rates, plan.lenders, strict=True) if lender == name)
        own = self._next_name(name)
        self.hosts[name] = Holder(self.world, own, self.files, self.ensemble, plan.timing, rate).start()

    def _holder(self, name: str) -> Holder | None:
        host = self.hosts.get(name)
        return host if isinstance(host, Holder) else None

    def rush(self, name: str, guard: Guard) -> None:
        """Start a second sidecar on a host, which takes up the command of the first."""
        self._start_sidecar(name, guard)

    def run_again(self, name: str) -> None:
        """Start a sidecar that runs a job once more which had ended for good."""
        self._start_sidecar(name, None, again=True)

    def _start_sidecar(self, name: str, guard: Guard | None, *, again: bool = False) -> None:
        plan = self.plan
        sidecar = Sidecar(
            self.world,
            self._next_name(name, guard),
            self.files,
            self.ensemble,
            plan.timing,
            self.tasks,
            self.history.append,
            found=self.found.append,
            stubborn=plan.stubborn,
            jobs=plan.jobs,
            republishes=plan.republishes,
            wires=self.wires,
            guard=guard,
            hang=self._hang,
            borrows=bool(plan.lender_of(name)),
        )
        sidecar.rate, sidecar.jitter = plan.rates[plan.contenders.index(name)], plan.jitter
        sidecar.endpoints_ahead = plan.seed % 2 == 0
        self.hosts[name] = sidecar
        if plan.attempts or plan.operated:
            sidecar.runs_commands(plan, self.failures, self.ledger, again=again)
        if plan.store and (said := stores.broken(self.files)):
            self.note(f"{name} does not contend: {said}", "refused root")
            return
        sidecar.contend()
        if lender := plan.lender_of(name):
            Socket(sidecar, lambda: self._holder(lender))

    def _next_name(self, name: str, guard: Guard | None = None) -> str:
        if guard is not None and guard.sidecar is not None and self.plan.seed % 2 == 0:
            return guard.sidecar.name  # as with the setting `contender`
        self._started[name] += 1
        number = self._started[name]
        return name if number == 1 else f"{name}.{number}"

    def start_again(self, name: str) -> None:
        """Start a host, or a new one in place of one that crashed."""
        if name in self.plan.contenders:
            self._start_sidecar(name, self._command_of(name))
            return
        if name in self.plan.holders:
            self._start_holder(name)
            return
        own, plan = self._next_name(name), self.plan
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
            jobs=plan.jobs,
            patience=plan.patience,
        )
        executor.jitter = min(plan.jitter, MOST_JITTER)
        self.hosts[name] = executor
        executor.start()

    def note(self, what: str, kind: str = "") -> None:
        """Note in the history what was done to the system."""
        self.history.append(Fault(self.world.now, "", what))
        if kind:
            self.injected[kind] += 1

    def _stored(self, at: float, operation: str, path: str, target: str, by: str) -> None:
        job, _, rest = path.partition("/")
        if rest and job in JOBS:
            self.history.append(Stored(at, job, operation, rest, target.removeprefix(f"{job}/"), by))

    def _copied(self, path: str, node: Node, operation: str, session: int) -> None:
        job = job_of(path)
        if job is not None:
            if operation != "delete" and session:
                self.copies.setdefault(path, []).append(node.data)
            data = node.data.decode(errors="replace")
            self.history.append(Copied(self.world.now, job, operation, path, node.owner, session, data))
