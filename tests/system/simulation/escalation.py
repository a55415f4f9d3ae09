"""Escalation: leaders run a command that fails, count its failures, wait before the next try, and give the job up.

All that is counted and decided is production's code. As production's sidecar, a leader reads the count once it is
granted the job, and starts its command when the pause is over. The command itself lives as its dice fall.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from ha.config.command_settings import CLEANUP_OFF, RERUN_OFF
from ha.sidecar.escalation import Escalation
from ha.sidecar.job_status import JobStatusUpdater
from leader.errors import NotLeader
from leader.job.checkpoints import Checkpoints
from leader.job.failed_attempts import LONGEST_PAUSE_S
from leader.layout.names import EXCEPTIONS_RETAINED, LeaderDirectory
from leader.timing import NEVER
from store.errors import StoreError
from tests.system.simulation.blocking import SimulatedBoundedFiles, SimulatedClock
from tests.system.simulation.plan import Plan
from tests.system.simulation.process import Process

CAUSE, REMEDY = "exit-3", "mend it"
QUERY = "counts"
RETAINED = 2
"""Checkpoints: few, so that old ones give way from early on."""

LIVES = (0.05, 3.0)
"""Seconds until a command fails."""

HOPELESS = 0.15
"""Share of the failures that no restart mends."""

LASTS = 0.15
"""Share of the commands that do not fail."""

LOOKS_EVERY = 0.5
"""Seconds after which a leader looks for how long its command has run."""

LONGEST_TELLS = 10.0
"""Seconds after which it is known that a command has run for long."""

logging.getLogger("ha").addHandler(logging.NullHandler())  # there is too much to be told of so many failures


@dataclass(frozen=True)
class Happened:
    """Something that a leader, or its command, has done.

    Attributes:
        at: true time.
        contender: its name.
        epoch: of its leadership.
        what: one of the words below.
        seconds: see there; by the contender's own clock.
        held: whether the leader held the job still, and had not been granted it once more meanwhile.
    """

    at: float
    contender: str
    epoch: int
    what: str
    seconds: float = 0.0
    held: bool = True


GRANTED = "granted"
DECIDED = "decided"
"""It has read the count, and waits for ``seconds``."""
STARTED = "started"
"""The command runs, ``seconds`` after the grant."""
COMPLETED, DOUBTED = "completed", "doubted"
"""The command has completed a batch, or may have."""
FAILED, HOPELESSLY = "failed", "failed hopelessly"
"""The command has failed."""
COUNTED = "counted"
"""What counts the failure has returned."""
LASTED = "lasted"
"""The command has run for so long that failures before it do not matter; the leader has made that known."""
BEFORE = "before"
"""An earlier life of the job has left so many failures (``seconds``)."""
TAKEN_UP = "taken up"
"""Another sidecar has taken the command up, and the leadership with it."""
AGAIN = "again"
"""An operator runs the job once more."""


@dataclass
class Life:
    """One run of the command; it may outlive its sidecar.

    Attributes:
        ends: true time at which it fails; NEVER if it does not.
        batch: whether it is still to complete a batch.
    """

    ends: float
    batch: bool


class Failures:
    """What has happened to the job's commands."""

    def __init__(self) -> None:
        self.happened: list[Happened] = []
        self.lives: dict[int, Life] = {}
        """The command's newest run, by the epoch of its leadership."""
        self.dice_say_it_fails = True
        """Whether commands may fail; not once all is well."""


class _Status(JobStatusUpdater):
    """Production's, without threads, savepoints and files of Spark."""

    def add_exception(self, *_: object) -> Any:
        return SimpleNamespace(join=lambda _: None)

    def _restore(self, leader: LeaderDirectory) -> bool:
        del leader
        return True

    def _relocate_checkpoints(self, leader: LeaderDirectory) -> None:
        """There are none."""


class CommandWork:
    """The command of one contender, for its sidecar."""

    def __init__(
        self, host: Process, plan: Plan, files: SimulatedBoundedFiles, job: str, ledger: Failures, *, again: bool
    ) -> None:
        self._host, self._plan, self._job, self._ledger = host, plan, job, ledger
        self._clock, self._dice = SimulatedClock(host), host.world.dice(f"command {host.name}")
        process: Any = SimpleNamespace(
            stores=SimpleNamespace(files=files, timing=plan.timing),
            settings=SimpleNamespace(
                rerun=RERUN_OFF, cleanup=CLEANUP_OFF, exceptions_retained=EXCEPTIONS_RETAINED, replicate_to=""
            ),
            holds_until=lambda job: host.participant(job).election.state.holds_until(),
        )
        self.status = _Status(process, job, again=again, clock=self._clock)
        self._escalation = Escalation(self.status, job, plan.attempts)
        self._again = again
        self._running = 0
        """The epoch whose command runs; 0 for none. That of a lost leadership may end after the next one's began."""

    @property
    def runs(self) -> bool:
        """Whether the command runs."""
        return self._running > 0

    def lead(self, leader: LeaderDirectory, works: Callable[[], bool], end: Callable[[bool], None]) -> None:
        """Run the command of one leadership, as a task; ``end`` is told whether the contender goes on after it."""
        granted = self._clock.now()
        self._note(leader, GRANTED)
        if not self.status.begin(leader):
            end(False)
            return
        if self._again:
            self._note(leader, AGAIN)
            self._again = False
        pause = self._escalation.pause(leader)
        if pause is None:
            end(False)
            return
        self._note(leader, DECIDED, pause)
        if pause:
            self.status.fail(leader)
            self._clock.sleep(pause)
        if not works() or not self._host.leads(self._job):
            return
        if pause:
            self.status.restart(leader)
        started = self._clock.now()
        self._note(leader, STARTED, started - granted)
        self._ledger.lives[leader.epoch] = self._draw()
        self._guarded(leader, runs=True)
        if pause:
            self._escalation.tries(leader)
        self._see_through(leader, works, started, end)

    def take_up(self, leader: LeaderDirectory, works: Callable[[], bool], end: Callable[[bool], None]) -> None:
        """Go on with a command whose sidecar was killed. It may have ended meanwhile: then its guard says so now."""
        self._note(leader, TAKEN_UP)
        self.status.reconcile(leader, lambda: None)
        self._see_through(leader, works, self._clock.now(), end)

    def _draw(self) -> Life:
        dice, host = self._dice, self._host
        lasts = dice.random() < LASTS or not self._ledger.dice_say_it_fails
        ends = NEVER if lasts else host.world.now + dice.uniform(*LIVES) / host.rate
        return Life(ends, dice.random() < self._plan.progress)

    def _see_through(
        self, leader: LeaderDirectory, works: Callable[[], bool], since: float, end: Callable[[bool], None]
    ) -> None:
        """Watch the command until it ends, or is to end; a failure is counted. This sidecar has it ``since`` then."""
        self._running = leader.epoch
        self._watch(leader, works, since)
        if self._running == leader.epoch:
            self._running = 0
        if works():
            self._guarded(leader, runs=False)
            leads = self._host.leads(self._job)  # it may have slept
            end(self._count(leader, self._clock.now() - since) if leads else True)

    def _watch(self, leader: LeaderDirectory, works: Callable[[], bool], since: float) -> None:
        checkpoints = Checkpoints(self.status.directory(leader), retained=RETAINED)
        world, life = self._host.world, self._ledger.lives[leader.epoch]
        while works() and world.now < life.ends:
            left = (life.ends - world.now) * self._host.rate
            self._clock.sleep(LOOKS_EVERY if life.ends == NEVER else max(0.01, left))
            if life.batch and works():
                life.batch = False
                self._complete(leader, checkpoints)
            if works():
                self._last(leader, self._clock.now() - since)

    def _guarded(self, leader: LeaderDirectory, *, runs: bool) -> None:
        """Have the command's guard know whether there is one that another sidecar can take up."""
        guard = self._host.guard
        if guard is not None and guard.leader == leader:
            guard.command_runs = runs

    def _complete(self, leader: LeaderDirectory, checkpoints: Checkpoints) -> None:
        try:
            self._note(leader, DOUBTED)
            checkpoints.completed(QUERY, checkpoints.state().queries.get(QUERY, -1) + 1)
            self._note(leader, COMPLETED)
        except (StoreError, NotLeader):
            pass

    def _last(self, leader: LeaderDirectory, seconds: float) -> None:
        self._escalation.lasts(leader, seconds)
        if LONGEST_PAUSE_S + LONGEST_TELLS <= seconds < LONGEST_PAUSE_S + LONGEST_TELLS + 2 * LOOKS_EVERY:
            self._note(leader, LASTED)

    def _count(self, leader: LeaderDirectory, seconds: float) -> bool:
        hopeless = self._dice.random() < HOPELESS
        self._note(leader, HOPELESSLY if hopeless else FAILED)
        goes_on = self._escalation.failed(leader, CAUSE, seconds, REMEDY if hopeless else "")
        self._note(leader, COUNTED)
        return goes_on

    def _note(self, leader: LeaderDirectory, what: str, seconds: float = 0.0) -> None:
        host = self._host
        state = host.participant(self._job).election.state
        held = host.holds(self._job) and state.directory is not None and state.directory.epoch == leader.epoch
        self._ledger.happened.append(Happened(host.world.now, host.name, leader.epoch, what, seconds, held))
