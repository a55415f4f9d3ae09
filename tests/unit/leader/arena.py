"""Arena: contenders for one job on a virtual clock, with faults."""

from collections.abc import Callable, Sequence

from leader.election.events import FilesCommand
from leader.election.ports import FilesAnswer
from leader.layout.lease import Lease
from leader.layout.names import RECORD, LeaderDirectory, newest
from leader.timing import Timing
from tests.system.simulation.ensemble import Ensemble
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.process import Process
from tests.system.simulation.wires import Wires
from tests.system.simulation.world import World

TIMING = Timing()
LEADER_NODE = "/jobs/orders/leader"


class Arena:
    def __init__(self, *, zookeeper: bool = True, suspicion: bool = False) -> None:
        self.world = World()
        self.wires = Wires(self.world) if suspicion else None
        if self.wires is not None:
            self.wires.late = 0.0
        self.files = Namespace()
        self.ensemble = Ensemble(self.world) if zookeeper else None
        self.processes: list[Process] = []
        self.overlap: float | None = None
        """Seconds in which two led; None where that must not be at all."""

    def start(self, name: str, *, rate: float = 1.0) -> Process:
        process = Process(self.world, name, self.files, self.ensemble, TIMING, self.wires)
        process.rate = rate
        self.processes.append(process.start())
        return process

    def start_led(self, *standbys: str) -> tuple[Process, ...]:
        """Start `a`, which leads, then the standbys; return when everything has settled."""
        first = self.start("a")
        self.run(1)
        others = [self.start(name) for name in standbys]
        self.run(29)
        assert self.leaders() == [first]
        return (first, *others)

    def run(self, seconds: float) -> None:
        """Let time pass; two may never lead, nor think at once that nobody else can.

        Only an event begins a belief, and time alone only ends it: so the moments after events are all that there are.
        """
        if self.overlap is None:
            self.world.run(seconds, self._check)
            self._check()
            return
        end = self.world.now + seconds
        while self.world.now < end:
            self.world.run(min(0.01, end - self.world.now))
            self.overlap += 0 if self._alone() else 0.01

    def _check(self) -> None:
        assert self._alone(), "two lead, or think that nobody else can"

    def _alone(self) -> bool:
        return len(self.leaders()) <= 1 and len([each for each in self.processes if each.holds()]) <= 1

    def leaders(self) -> list[Process]:
        return [process for process in self.processes if process.leads()]

    def until_leader(self, limit: float, besides: Process | None = None) -> tuple[Process, float]:
        start = self.world.now
        while self.world.now < start + limit:
            self.run(0.01)
            for leader in self.leaders():
                if leader is not besides:
                    return leader, self.world.now - start
        raise AssertionError(f"nobody led within {limit} s")

    def until(self, condition: Callable[[], object], limit: float) -> float:
        """Run until the condition holds; return how long that took."""
        start = self.world.now
        while not condition():
            assert self.world.now < start + limit, f"not within {limit} s"
            self.run(0.01)
        return self.world.now - start

    @property
    def zookeeper(self) -> Ensemble:
        assert self.ensemble is not None
        return self.ensemble

    @property
    def directory(self) -> LeaderDirectory:
        found = newest(self.files.list("orders"))
        assert found is not None
        return found

    @property
    def record(self) -> str:
        return f"orders/{self.directory.name}/{RECORD}"

    @property
    def lease(self) -> Lease:
        leases = [lease for name in self.files.list(self.record) if (lease := Lease.parse(name))]
        return max(leases, key=lambda each: each.sequence)

    def endpoints(self) -> list[str]:
        return sorted(name for name in self.files.list(self.record) if name.startswith("endpoint~"))

    @property
    def copy(self) -> bytes:
        return self.zookeeper.nodes[LEADER_NODE].data

    def owner_is(self, process: Process, session: int) -> bool:
        token = process.participant().election.state.attestation.token
        return token is not None and token.split("-")[1] == f"{session:x}"

    def ask_to_hand_over(self, successor: str) -> None:
        """Do as `ha job handover` does: a request in the lease, and a poke at the node that the leader watches."""
        self._mark(self.lease.asked_to(successor))

    def ask_to_look(self) -> None:
        """Do as `ha job cancel` and others do once their request is stored."""
        self._mark(self.lease.asked_to_look())

    def _mark(self, marked: Lease) -> None:
        self.files.rename(f"{self.record}/{self.lease.name}", f"{self.record}/{marked.name}")
        if self.ensemble and LEADER_NODE in self.ensemble.nodes:
            self.ensemble.tamper(LEADER_NODE, self.ensemble.nodes[LEADER_NODE].data)

    def zookeeper_down(self) -> None:
        self.zookeeper.stop()

    def zookeeper_up(self) -> None:
        self.zookeeper.restart()
        for process in self.processes:
            if process.client is not None:
                process.client.connect()


def heard(process: Process, kind: str) -> list[object]:
    """Return what a process has been told of a kind, such as ``asked`` or ``suspected``."""
    return [item for _, what, item in process.history if what == kind]


def said(process: Process) -> list[str]:
    return [str(sentence).removeprefix("orders: ") for sentence in heard(process, "said")]


def reasons(process: Process) -> list[str]:
    return [grant.reason for grant in process.grants()]


def commands(process: Process) -> list[FilesCommand]:
    """Return a list that gets what the process asks of the file system from now on."""
    asked: list[FilesCommand] = []
    run_files = process.run_files

    def kept(job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        asked.append(command)
        run_files(job, command, answer)

    process.run_files = kept  # type: ignore[method-assign]
    return asked


def cut_off(process: Process) -> None:
    """Have both stores hear nothing more of a process, which does not know."""
    process.files_link.there = False
    if process.client is not None:
        process.client.link.there = False


def arenas(*, zookeeper: Sequence[bool] = (True,), suspicion: bool = False) -> dict[str, dict[str, bool]]:
    """Return the arenas of a module's tests, as its ``ARENAS``: what each is made of, by its name."""
    names = {True: "zookeeper", False: "files-only"}
    return {names[each]: {"zookeeper": each, "suspicion": suspicion} for each in zookeeper}
