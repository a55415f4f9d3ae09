"""Simulated reader: repeats production's lookups on a host of its own. It may also be its host's agent."""

import threading
from collections.abc import Callable
from functools import partial

from ha.agent.agent import LOOKS_PER_FRESHNESS, snapshot_of
from ha.history.events import CheckpointsRead, Event, LookedUp
from leader.errors import NoLeader, Unreachable
from leader.lookup.answers import Snapshot
from leader.lookup.checkpoint_reader import CheckpointReader
from leader.lookup.reader import Reader
from leader.timing import Timing
from tests.system.simulation.blocking import SimulatedBoundedFiles, SimulatedClock, SimulatedZooKeeper, Tasks
from tests.system.simulation.ensemble import Ensemble
from tests.system.simulation.host import Host
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.sidecar import JOB, JOBS
from tests.system.simulation.world import World

TIMEOUT = 2.0
REST = (0.2, 1.6)
"""Seconds between two lookups."""


class Shelf:
    """The snapshots of a host's agent, for other processes of the host: files, which outlive the agent."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None


class _Finder:
    """One process's view of the shelf."""

    def __init__(self, shelf: Shelf, clock: SimulatedClock) -> None:
        self._shelf = shelf
        self._clock = clock

    def find(self, job: str) -> Snapshot | None:
        snapshot = self._shelf.snapshot
        fits = snapshot is not None and snapshot.job == job
        return snapshot if fits and snapshot.at <= self._clock.now() < snapshot.good_until else None  # type: ignore[union-attr]

    def ask(self, job: str, timeout: float) -> Snapshot | None:
        """Return None: a simulated agent keeps the only job from the beginning."""
        del job, timeout
        return None

    def subscribe(self, job: str, changed: threading.Event) -> None:
        """Do nothing: nobody reports a snapshot here, so watches find it when they look."""

    def unsubscribe(self, job: str, changed: threading.Event) -> None:
        """Do nothing."""


class Executor(Host):
    """A process that looks up the leader. With a shelf, its host has an agent, or it is that agent itself."""

    def __init__(
        self,
        world: World,
        name: str,
        files: Namespace,
        ensemble: Ensemble | None,
        timing: Timing,
        tasks: Tasks,
        record: Callable[[Event], None],
        *,
        audit: float,
        fresh: float = 1.0,
        shelf: Shelf | None = None,
        agent: bool = False,
        jobs: int = 1,
        patience: tuple[float, ...] = (TIMEOUT,),
    ) -> None:
        super().__init__(world, name, files, ensemble, timing)
        self._record = record
        self._clock = SimulatedClock(self)
        store = SimulatedBoundedFiles(self, tasks)
        zookeeper = SimulatedZooKeeper(self, self.client) if self.client is not None else None
        self._reader = Reader(
            store,  # type: ignore[arg-type]
            zookeeper,  # type: ignore[arg-type]
            timing,
            audit=audit,
            snapshots=_Finder(shelf, self._clock) if shelf is not None and not agent else None,
            clock=self._clock,
            rng=self._dice,
        )
        self._shelf = shelf if agent else None
        self._fresh = fresh
        self._patience = patience
        self._jobs, self._work_dice = jobs, world.dice(f"work {name}")
        self._checkpoints = CheckpointReader(store, zookeeper, self._reader, self._clock)  # type: ignore[arg-type]
        self._tasks = tasks

    def start(self) -> "Executor":
        for timeout in self._patience:
            self._tasks.spawn(partial(self._work, timeout))
        if self._shelf is not None:
            self._tasks.spawn(self._keep)
        return self

    def _keep(self) -> None:
        """Store snapshots, as :class:`ha.agent.agent.Agent` does on threads."""
        assert self._shelf is not None, "only an agent keeps a job warm"
        for look in self._reader.looks(JOB, threading.Event(), TIMEOUT, every=self._fresh / LOOKS_PER_FRESHNESS):
            if look.reached:
                self._shelf.snapshot = snapshot_of(JOB, look, self._fresh)

    def _work(self, timeout: float) -> None:
        while self.alive:
            self._look_up(JOB, timeout)
            if self._jobs > 1 and self._work_dice.random() < 0.3:
                self._look_up(JOBS[1], timeout)
            if self._dice.random() < 0.25:
                self._read_checkpoints()
            self._clock.sleep(self._dice.uniform(*REST))

    def _look_up(self, job: str, timeout: float) -> None:
        began = self.world.now
        try:
            answer = self._reader.leader(job, timeout)
        except (NoLeader, Unreachable) as error:
            outcome = "none" if isinstance(error, NoLeader) else "unreachable"
            self._record(LookedUp(began, job, self.world.now, timeout, self.name, outcome))
            return
        self._record(
            LookedUp(
                began,
                job,
                self.world.now,
                timeout,
                self.name,
                "leader",
                answer.epoch,
                answer.session_id,
                dict(answer.endpoints),
                answer.source.value,
                answer.verified,
            )
        )

    def _read_checkpoints(self) -> None:
        began = self.world.now
        try:
            state = self._checkpoints.checkpoint(JOB, TIMEOUT)
        except (NoLeader, Unreachable):
            return
        self._record(
            CheckpointsRead(began, JOB, self.world.now, self.name, state.epoch, state.next_id, dict(state.queries))
        )
