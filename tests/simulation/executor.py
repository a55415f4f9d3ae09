"""A simulated reader: production's lookups, again and again, on a host of its own."""

from collections.abc import Callable

from ha.history.events import CheckpointsRead, Event, LookedUp
from leader.checkpoint_reader import CheckpointReader
from leader.errors import NoLeader, Unreachable
from leader.reader import Reader
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


class Executor(Host):
    """A process that looks up who leads."""

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
    ) -> None:
        super().__init__(world, name, files, ensemble, timing)
        self._record = record
        self._clock = SimulatedClock(self)
        store = SimulatedBoundedFiles(self, tasks)
        zookeeper = SimulatedZooKeeper(self, self.client) if self.client is not None else None
        self._reader = Reader(store, zookeeper, timing, audit=audit, clock=self._clock, dice=self._dice)  # type: ignore[arg-type]
        self._checkpoints = CheckpointReader(store, zookeeper, self._reader, self._clock)  # type: ignore[arg-type]
        self._tasks = tasks

    def start(self) -> "Executor":
        self._tasks.spawn(self._work)
        return self

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
