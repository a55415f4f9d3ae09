"""Simulated sidecar of a run: it writes its history, and its driver counts, completes batches and writes.

The sidecar stops its driver when leadership ends. A stubborn driver goes on until the store refuses it, like a driver
that was paused.
"""

from collections.abc import Callable
from functools import partial

from ha.history.events import (
    Believed,
    Completed,
    Counted,
    Ended,
    Event,
    Granted,
    Published,
    Revoked,
    Suspected,
    Violation,
)
from ha.sidecar.machine import sidecar_events as events
from leader.contender.mirror_runner import MirrorRunner
from leader.election.events import Grant, Revoke
from leader.election.state import Phase
from leader.errors import Fenced
from leader.job.checkpoints import Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.layout.checkpoint_state import CheckpointState, encode
from leader.layout.information import LeaderInformation
from leader.layout.names import ADOPTED, SPARK, LeaderDirectory
from leader.layout.znodes import checkpoints_path
from leader.timing import Timing
from store.errors import StoreError
from tests.system.simulation.blocking import SimulatedBoundedFiles, SimulatedClock, Tasks
from tests.system.simulation.commanded import Commanded
from tests.system.simulation.ensemble import Ensemble
from tests.system.simulation.escalation import RETAINED, Failures
from tests.system.simulation.guard import Guard
from tests.system.simulation.namespace import Namespace
from tests.system.simulation.plan import Plan
from tests.system.simulation.process import Process
from tests.system.simulation.requests import Ledger
from tests.system.simulation.wires import Wires
from tests.system.simulation.world import Call, World

JOB = "orders"
"""The job that readers look up most, and that must have a leader in time."""

JOBS = (JOB, "returns")
STOP_TAKES = 0.3
"""Seconds that a driver takes to stop, at most, while the lease is being kept."""

REST = (0.2, 3.0)
"""Seconds between two things that a driver does."""

REPUBLISHED = (0.5, 8.0)
"""Seconds between two publications of endpoints."""


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
        found: Callable[[Violation], None],
        stubborn: bool,
        jobs: int = 1,
        republishes: bool = False,
        wires: Wires | None = None,
        guard: Guard | None = None,
        hang: Callable[[Callable[[], None]], bool] = lambda _: False,
        borrows: bool = False,
    ) -> None:
        super().__init__(world, name, files, ensemble, timing, wires, guard, borrows=borrows)
        self._tasks, self._record, self._found, self._stubborn = tasks, record, found, stubborn
        self._files = SimulatedBoundedFiles(self, tasks)
        self._clock = SimulatedClock(self)
        self._republishes, self._hang = republishes, hang
        self._command: Commanded | None = None
        self._orphaned = self._fails = False
        self._work_dice = world.dice(f"work {name}")
        self._copies = {job: MirrorRunner(self, checkpoints_path(job)) for job in JOBS[:jobs]}
        self._working: dict[str, str] = {}
        """The session id under which it works, by job."""
        self._successors: dict[str, str] = {}
        """For whom the lease is to be given back, by job."""
        self._margin_looks: dict[str, Call] = {}
        if self.client is not None:
            for copy in self._copies.values():
                self.client.connected.append(copy.connected)
                self.client.disconnected.append(copy.disconnected)

    def runs_commands(self, plan: Plan, failures: Failures, requests: Ledger, *, again: bool) -> None:
        """Have its leaderships run a command, as production's sidecar does."""
        self._fails = plan.attempts > 0
        self._command = Commanded(
            self, plan, self._files, JOB, self._tasks, failures, requests, self._found, again=again
        )

    def contend(self) -> None:
        """Begin, with all jobs."""
        for job in JOBS[1 : len(self._copies)]:
            self.contender.join(job, self)
            self.contend_for(job)
        self.start(JOB)
        if self._command is not None:
            command = self._command
            self.run(command.begin)

    # --- notifications

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        super().believed(job, leads_until, holds_until)
        untils = (self.true(until) if until > 0 else None for until in (leads_until, holds_until))
        self._record(Believed(self.world.now, job, self.name, *untils))
        if (before := self._margin_looks.pop(job, None)) is not None:
            before.cancel()
        if holds_until > 0:
            look = partial(self._look_within_margin, job)
            self._margin_looks[job] = self.call_at(holds_until - self.timing.stop_margin / 2, look)

    def _look_within_margin(self, job: str) -> None:
        """Half of the stop margin is left: work must have been told to stop by now."""
        self._judge_margin(job, told=self.participant(job).election.state.phase is not Phase.LEADING)

    def _judge_margin(self, job: str, *, told: bool = True) -> None:
        state, now = self.participant(job).election.state, self.now()
        left = state.holds_until() - now
        if left < self.timing.stop_margin * 0.99 and (state.is_leader(now) or not told):
            sentence = f"{self.name} still works {left:.3f} s before another can lead."
            self._found(Violation("S1", self.world.now, sentence))

    def resume(self) -> None:
        """Wake up. A thread of the application may be the first to run, and ask whether this process still leads."""
        for job in self._working if self.paused else ():
            self._judge_margin(job)
        super().resume()

    def granted(self, job: str, grant: Grant) -> None:
        super().granted(job, grant)
        self._record(Granted(self.world.now, job, self.name, grant.epoch, grant.session_id, grant.reason))
        if self._command is not None and self.guard is not None and grant.reason != ADOPTED:
            self.guard.command_runs = False  # it is started later, or never
        self._working[job] = grant.session_id
        directory = LeaderDirectory(grant.epoch, grant.session_id)
        works = [self._count] if self._fails else [self._complete_batches, self._count]
        works += [self._republish] if self._republishes else []
        for work in works:
            self._tasks.spawn(lambda work=work: work(job, directory))  # type: ignore[misc]
        if self._command is not None:
            self._command.post(events.LeadershipGranted(directory))

    def revoked(self, job: str, revoke: Revoke) -> None:
        self.history.append((self.world.now, "revoked", revoke))
        if not self._stubborn:
            self.guard = None
        self._record(Revoked(self.world.now, job, self.name, revoke.session_id, revoke.reason))
        self._copies[job].want(None)
        self._working.pop(job, None)
        if self._command is not None:
            self._command.post(events.LeadershipRevoked(revoke.session_id, revoke.until))
            return
        takes = self._dice.uniform(0, STOP_TAKES) if revoke.until is None else 0.0
        successor = self._successors.pop(job, "")
        end = partial(self.run, partial(self._give_back, job, successor))
        if revoke.until is None or not self._hang(end):
            self.world.after(takes, end)

    def asked(self, job: str, successor: str) -> None:
        self.history.append((self.world.now, "asked", successor))
        if self._command is not None:
            self._command.post(events.AskedToHandOver(successor))
            return
        self._successors[job] = successor
        self.contender.step_down(job, "An operator asked to hand over.")

    def requested(self, job: str) -> None:
        super().requested(job)
        if self._command is not None:
            self._command.post(events.Marked())

    def suspected(self, job: str, contender: str) -> None:
        super().suspected(job, contender)
        self._record(Suspected(self.world.now, job, contender, self.name))

    def published(self, job: str, information: LeaderInformation) -> None:
        super().published(job, information)
        endpoints = dict(information.endpoints)
        self._record(Published(self.world.now, job, self.name, information.epoch, information.session_id, endpoints))

    def orphan(self, within: float) -> Guard | None:
        self._orphaned = True
        return super().orphan(within)

    def crash(self) -> None:
        super().crash()
        if self._command is not None and self._command.command.present is not None and not self._orphaned:
            self._command.command.present.over = True
        self._record(Ended(self.world.now, "", self.name))

    # --- the driver

    def _checkpoints(self, job: str, directory: LeaderDirectory) -> Checkpoints:
        return Checkpoints(self._directory(job, directory), changed=self._changed, retained=RETAINED)

    def _directory(self, job: str, directory: LeaderDirectory) -> FencedDirectory:
        return FencedDirectory(self._files, job, directory, self.timing.call_timeout)  # type: ignore[arg-type]

    def _changed(self, state: CheckpointState) -> None:
        if self._working.get(state.job) == state.session_id:
            self._copies[state.job].want(encode(state))

    def _works(self, job: str, directory: LeaderDirectory) -> bool:
        return self.alive and (self._stubborn or self._working.get(job) == directory.session_id)

    def _give_back(self, job: str, successor: str = "") -> None:
        if self._command is None:
            super()._give_back(job, successor)
        else:
            self._command.command.kill()  # by its guard, at the deadline

    @property
    def command_runs(self) -> bool:
        """Whether it leads and runs its command."""
        return self._command is not None and self._command.runs and self.leads(JOB)

    def _republish(self, job: str, directory: LeaderDirectory) -> None:
        """Change the endpoints now and then: their number, their addresses, or nothing at all."""
        dice = self._work_dice
        while self._works(job, directory):
            self._clock.sleep(dice.uniform(*REPUBLISHED))
            endpoints = {"jobmaster": f"{self.name}:{dice.choice((6123, 6124))}"}
            for name in dice.sample(("rest", "metrics"), dice.randint(0, 2)):
                endpoints[name] = f"{self.name}:{dice.choice((8081, 8082))}"
            self.contender.confirm(job, directory.session_id, endpoints)

    def _count(self, job: str, directory: LeaderDirectory) -> None:
        checkpoints = self._checkpoints(job, directory)
        while self._works(job, directory):
            try:
                self._take_id(job, checkpoints, directory)
            except Fenced:
                return
            except StoreError:
                pass
            self._clock.sleep(self._dice.uniform(*REST))

    def _take_id(self, job: str, checkpoints: Checkpoints, directory: LeaderDirectory) -> int:
        began = self.world.now
        number = checkpoints.next()
        self._record(Counted(began, job, self.world.now, self.name, directory.epoch, number))
        return number

    def _write(self, job: str, directory: LeaderDirectory, number: int) -> None:
        path = f"{job}/{directory.name}/{SPARK}/{number}"
        self._files.call("write", lambda files: files.make_directory(path), self.timing.call_timeout)

    def _complete_batches(self, job: str, directory: LeaderDirectory) -> None:
        checkpoints = self._checkpoints(job, directory)
        batch = None
        while self._works(job, directory):
            try:
                if batch is None:
                    batch = checkpoints.state().queries.get("counts", -1)
                self._write(job, directory, self._take_id(job, checkpoints, directory))
                began = self.world.now
                checkpoints.completed("counts", batch + 1)
                batch += 1
                self._record(Completed(began, job, self.world.now, self.name, directory.epoch, "counts", batch))
            except Fenced:
                return
            except StoreError:
                pass
            self._clock.sleep(self._dice.uniform(*REST))
