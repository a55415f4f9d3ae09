"""A simulated sidecar as a run uses it: it writes its history, and its driver counts, completes batches and writes.

The driver is stopped when leadership ends, as the sidecar does; a stubborn one goes on until the store refuses it, as
one does that was paused.
"""

from collections.abc import Callable

from ha.history.events import Believed, Completed, Counted, Ended, Event, Granted, Published, Revoked, Suspected
from leader.checkpoint_state import CheckpointState, encode
from leader.checkpoints import Checkpoints
from leader.copy import Copy
from leader.errors import Fenced
from leader.events import Grant, Revoke
from leader.information import LeaderInformation
from leader.names import SPARK, LeaderDirectory
from leader.nodes import checkpoints_path
from leader.timing import Timing
from store.errors import StoreError
from tests.simulation.blocking import SimulatedBoundedFiles, SimulatedClock, Tasks
from tests.simulation.ensemble import Ensemble
from tests.simulation.namespace import Namespace
from tests.simulation.process import Process
from tests.simulation.wires import Wires
from tests.simulation.world import World

JOB = "orders"
STOP_TAKES = 0.3
"""Seconds that a driver takes to stop, at most, while the lease is being kept."""

RETAINED = 2
"""Checkpoints: few, so that old ones give way from early on."""

REST = (0.2, 3.0)
"""Seconds between two things that a driver does."""


class Sidecar(Process):
    """A contender whose driver works."""

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
        stubborn: bool,
        wires: Wires | None = None,
    ) -> None:
        super().__init__(world, name, files, ensemble, timing, wires)
        self._tasks, self._record, self._stubborn = tasks, record, stubborn
        self._files = SimulatedBoundedFiles(self, tasks)
        self._clock = SimulatedClock(self)
        self._copy = Copy(self, checkpoints_path(JOB))
        self._working: str | None = None
        if self.client is not None:
            self.client.connected.append(self._copy.connected)
            self.client.disconnected.append(self._copy.disconnected)

    # --- what it is told

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        untils = (self.true(until) if until > 0 else None for until in (leads_until, holds_until))
        self._record(Believed(self.world.now, job, self.name, *untils))

    def granted(self, job: str, grant: Grant) -> None:
        super().granted(job, grant)
        self._record(Granted(self.world.now, job, self.name, grant.epoch, grant.session_id, grant.reason))
        self._working = grant.session_id
        directory = LeaderDirectory(grant.epoch, grant.session_id)
        for work in (self._complete_batches, self._count):
            self._tasks.spawn(lambda work=work: work(directory))  # type: ignore[misc]

    def revoked(self, job: str, revoke: Revoke) -> None:
        self.history.append((self.world.now, "revoked", revoke))
        self._record(Revoked(self.world.now, job, self.name, revoke.session_id, revoke.reason))
        self._copy.want(None)
        self._working = None
        takes = self._dice.uniform(0, STOP_TAKES) if revoke.until is None else 0.0
        self.world.after(takes, lambda: self.run(lambda: self._give_back(job)))

    def asked(self, job: str, successor: str) -> None:
        self.history.append((self.world.now, "asked", successor))
        self.contender.step_down(job, "An operator asked to hand over.")

    def suspected(self, job: str, contender: str) -> None:
        super().suspected(job, contender)
        self._record(Suspected(self.world.now, job, contender, self.name))

    def published(self, job: str, information: LeaderInformation) -> None:
        super().published(job, information)
        endpoints = dict(information.endpoints)
        self._record(Published(self.world.now, job, self.name, information.epoch, information.session_id, endpoints))

    def crash(self) -> None:
        super().crash()
        self._record(Ended(self.world.now, "", self.name))

    # --- what its driver does

    def _checkpoints(self, directory: LeaderDirectory) -> Checkpoints:
        return Checkpoints(
            self._files,  # type: ignore[arg-type]
            JOB,
            directory,
            self.timing.call_timeout,
            changed=self._changed,
            retained=RETAINED,
        )

    def _changed(self, state: CheckpointState) -> None:
        if self._working == state.session_id:
            self._copy.want(encode(state))

    def _works(self, directory: LeaderDirectory) -> bool:
        return self.alive and (self._stubborn or self._working == directory.session_id)

    def _count(self, directory: LeaderDirectory) -> None:
        checkpoints = self._checkpoints(directory)
        while self._works(directory):
            try:
                self._take_id(checkpoints, directory)
            except Fenced:
                return
            except StoreError:
                pass
            self._clock.sleep(self._dice.uniform(*REST))

    def _take_id(self, checkpoints: Checkpoints, directory: LeaderDirectory) -> int:
        began = self.world.now
        number = checkpoints.next()
        self._record(Counted(began, JOB, self.world.now, self.name, directory.epoch, number))
        return number

    def _write(self, directory: LeaderDirectory, number: int) -> None:
        path = f"{JOB}/{directory.name}/{SPARK}/{number}"
        self._files.call("write", lambda files: files.make_directory(path), self.timing.call_timeout)

    def _complete_batches(self, directory: LeaderDirectory) -> None:
        checkpoints = self._checkpoints(directory)
        batch = None
        while self._works(directory):
            try:
                if batch is None:
                    batch = checkpoints.state().queries.get("counts", -1)
                self._write(directory, self._take_id(checkpoints, directory))
                began = self.world.now
                checkpoints.completed("counts", batch + 1)
                batch += 1
                self._record(Completed(began, JOB, self.world.now, self.name, directory.epoch, "counts", batch))
            except Fenced:
                return
            except StoreError:
                pass
            self._clock.sleep(self._dice.uniform(*REST))
