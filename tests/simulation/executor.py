"""A simulated reader: production's lookups, again and again, on a host of its own; or also its host's agent."""

import threading
from collections.abc import Callable

from ha.agent.agent import LOOKS_PER_FRESHNESS, snapshot_of
from ha.history.events import CheckpointsRead, Event, LookedUp
from leader.checkpoint_reader import CheckpointReader
from leader.errors import NoLeader, Unreachable
from leader.reader import Reader
from leader.snapshot import Snapshot
from leader.timing import Timing
from tests.simulation.blocking import SimulatedBoundedFiles, SimulatedClock, SimulatedZooKeeper, Tasks
from tests.simulation.ensemble import Ensemble
from tests.simulation.host import Host
from tests.simulation.namespace import Namespace
from tests.simulation.sidecar import JOB
from tests.simulation.world import World

TIMEOUT = 2.0
REST = (0.2, 1.6)
"""Seconds between two lookups."""


class Shelf:
    """Where the agent of a host puts what it was told, and others of the host find it: as files, that outlive it."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None


class _Finder:
    """One process's view of it."""

    def __init__(self, shelf: Shelf, clock: SimulatedClock) -> None:
        self._shelf = shelf
        self._clock = clock

    def find(self, job: str) -> Snapshot | None:
        snapshot = self._shelf.snapshot
        fits = snapshot is not None and snapshot.job == job
        return snapshot if fits and snapshot.at <= self._clock.now() < snapshot.good_until else None  # type: ignore[union-attr]

    def ask(self, job: str, timeout: float) -> Snapshot | None:
        """Agents in simulations keep the one job that there is from the beginning."""
        del job, timeout
        return None


class Executor(Host):
    """A process that looks up who leads; with a shelf, of a host that has an agent, or is that agent itself."""

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
            dice=self._dice,
        )
        self._shelf = shelf if agent else None
        self._fresh = fresh
        self._checkpoints = CheckpointReader(store, zookeeper, self._reader, self._clock)  # type: ignore[arg-type]
        self._tasks = tasks

    def start(self) -> "Executor":
        self._tasks.spawn(self._work)
        if self._shelf is not None:
            self._tasks.spawn(self._keep)
        return self

    def _keep(self) -> None:
        """What :class:`ha.agent.agent.Agent` does on threads."""
        assert self._shelf is not None, "only an agent keeps a job warm"
        for look in self._reader.looks(JOB, threading.Event(), TIMEOUT, every=self._fresh / LOOKS_PER_FRESHNESS):
            if look.reached:
                self._shelf.snapshot = snapshot_of(JOB, look, self._fresh)

    def _work(self) -> None:
        while self.alive:
            self._look_up()
            if self._dice.random() < 0.25:
                self._read_checkpoints()
            self._clock.sleep(self._dice.uniform(*REST))

    def _look_up(self) -> None:
        began = self.world.now
        try:
            answer = self._reader.leader(JOB, TIMEOUT)
        except (NoLeader, Unreachable) as error:
            outcome = "none" if isinstance(error, NoLeader) else "unreachable"
            self._record(LookedUp(began, JOB, self.world.now, TIMEOUT, self.name, outcome))
            return
        self._record(
            LookedUp(
                began,
                JOB,
                self.world.now,
                TIMEOUT,
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
