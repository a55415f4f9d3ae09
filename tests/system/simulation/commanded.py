"""Production's sidecar in a simulated process: its machine and its executor, and a command that lives as dice fall.

The store, the clock and the command are simulated; nothing that decides is.
"""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from ha.config.restart_strategy import FixedDelay, NoRestart
from ha.config.settings import Settings
from ha.history.events import Violation
from ha.program.end_file import End
from ha.program.engine_state import EngineState
from ha.sidecar.executor import Executor
from ha.sidecar.failure_count import FailureCount
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.machine import Machine
from ha.sidecar.machine.sidecar_state import Leading, Rules
from ha.sidecar.store_work import StoreWork
from ha.verbs.table import RESTART
from leader.errors import NotLeader
from leader.job.checkpoints import Checkpoints
from leader.job.failed_attempts import LONGEST_PAUSE_S
from leader.job.grants import record_end
from leader.job.request_folder import Request, State
from leader.layout.names import LeaderDirectory
from leader.timing import NEVER
from store.errors import StoreError
from tests.system.simulation import escalation as what
from tests.system.simulation.blocking import SimulatedBoundedFiles, SimulatedClock, Tasks
from tests.system.simulation.escalation import (
    LONGEST_TELLS,
    QUERY,
    REMEDY,
    RETAINED,
    Failures,
    Happened,
    Life,
    Run,
)
from tests.system.simulation.plan import Plan
from tests.system.simulation.process import Process
from tests.system.simulation.requests import CarriedOut, Ledger

LIVES = (0.05, 3.0)
"""Seconds until a command fails."""

HOPELESS = 0.15
"""Share of the failures that no restart mends."""

LASTS = 0.15
"""Share of the commands that do not fail."""

ENDS = (0.0, 0.3)
"""Seconds until a command has ended that was asked to."""

STUBBORN = 0.1
"""Share of the commands that do not end when they are asked to."""

SETTLES = 0.5
"""Share of the commands that know how to end in order."""

LOOKS_EVERY = 0.5
"""Seconds after which a sidecar looks at a command that runs."""

SAVES = (0.1, 4.0)
"""Seconds that a savepoint takes."""

GRACE = 3.0
"""Seconds that a command has to end."""


class _Status(JobStatusUpdater):
    """Production's, without threads, savepoints and files of Spark."""

    begun: Callable[[LeaderDirectory], None]

    def begin(self, leader: LeaderDirectory) -> bool:
        may_run = super().begin(leader)
        if may_run:
            self.begun(leader)
        return may_run

    def add_exception(self, *_: object) -> Any:
        return SimpleNamespace(wait=lambda _: None)

    def keep_failures(self, *_: object) -> Any:
        """There are no notes."""

    def _restore(self, leader: LeaderDirectory) -> bool:
        del leader
        return True

    def _relocate_checkpoints(self, leader: LeaderDirectory) -> None:
        """There are none."""


class SimulatedCommand:
    """The command of one sidecar, as its executor sees it."""

    program = beat = None
    whole = drained = True
    jvm_ended = False
    engine = EngineState()
    files = SimpleNamespace(restart=Path("nowhere"))

    def __init__(self, sidecar: "Commanded") -> None:
        self._sidecar = sidecar
        self._host, self._dice = sidecar.host, sidecar.dice
        self._run: Run | None = None
        self._ended: tuple[int, End] = 0, End()

    @property
    def present(self) -> Run | None:
        return self._run

    @property
    def runs(self) -> int:
        return self._run.number if self._run is not None else 0

    @property
    def told_end(self) -> End:
        return self._ended[1]

    def start(self, number: int, leader: LeaderDirectory, _: object) -> None:
        self._sidecar.clock.sleep(self._dice.uniform(0.0, 0.1))
        guard = self._host.guard
        if guard is None or guard.leader != leader:
            raise OSError("The leadership is over.")
        world, ledger = self._host.world, self._sidecar.ledger
        ledger.runs = [each for each in ledger.runs if each.there]
        for other in ledger.runs:
            sentence = (
                f"{self._host.name} starts run {number} of epoch {leader.epoch} beside one of {other.leader.epoch}."
            )
            self._sidecar.found(Violation("S1", world.now, sentence))
        guard.command_runs = True
        life = self._sidecar.draw()
        ledger.lives[leader.epoch] = life
        self._begin(Run(world, number, leader, guard, life))

    def take_up(self, number: int, leader: LeaderDirectory) -> None:
        guard = self._host.guard
        assert guard is not None, "it is taken up"
        for other in self._sidecar.ledger.runs:
            other.over = other.over or other.guard is guard
        self._begin(Run(self._host.world, number, leader, guard, self._sidecar.ledger.lives[leader.epoch]))

    def _begin(self, run: Run) -> None:
        self._run = run
        self._sidecar.ledger.runs.append(run)
        self._sidecar.spawn(lambda: self._live(run))

    def _live(self, run: Run) -> None:
        """Live until the life is over, or the guard ends it; complete a batch, if it is to."""
        world, clock, life = self._host.world, self._sidecar.clock, run.life
        checkpoints = Checkpoints(self._sidecar.status.directory(run.leader), retained=RETAINED)
        since = clock.now()
        while not run.over and run.there and world.now < life.ends:
            left = (life.ends - world.now) * self._host.rate
            clock.sleep(min(LOOKS_EVERY, max(0.01, left)))
            if life.batch and run.there:
                life.batch = False
                self._complete(run, checkpoints)
            if run.there:
                self._sidecar.lasted(run.leader, clock.now() - since)
        if not run.over:
            hopeless = self._dice.random() < HOPELESS
            failed = (3, End(remedy=REMEDY if hopeless else ""))
            self._end(run, *failed if world.now >= life.ends and run.there else (137, End()))

    def _complete(self, run: Run, checkpoints: Checkpoints) -> None:
        try:
            self._sidecar.note(run.leader, what.DOUBTED)
            checkpoints.completed(QUERY, checkpoints.state().queries.get(QUERY, -1) + 1)
            self._sidecar.note(run.leader, what.COMPLETED)
        except (StoreError, NotLeader):
            pass

    def _end(self, run: Run, code: int, end: End = End()) -> None:  # noqa: B008  # it is frozen
        if not run.over:
            run.over = True
            if self._host.guard is run.guard:
                run.guard.command_runs = False
            self._ended = code, end
            self._sidecar.post(RunEnded(run.number))

    def terminate(self) -> None:
        run = self._run
        if run is not None and not run.asked:
            run.asked = True
            if self._dice.random() >= STUBBORN:
                self._later(ENDS, run, 143)

    def kill(self) -> None:
        if (run := self._run) is not None:
            self._end(run, 137)

    def settle(self, seconds: float, *, drain: bool) -> bool:
        del drain
        run = self._run
        if run is None or self._dice.random() < SETTLES:
            return False
        self._later((0.0, 1.2 * seconds), run, 0)
        return True

    def _later(self, within: tuple[float, float], run: Run | None, code: int) -> None:
        host = self._host
        host.call_at(
            host.now() + self._dice.uniform(*within), lambda: self._end(run, code) if run is not None else None
        )

    def end(self) -> tuple[int, bool]:
        self._run = None
        return self._ended[0], False

    def keep(self) -> None:
        """There are no files."""

    def given_up(self) -> None:
        """Nobody is shown it."""


class RunEnded:
    """A run has ended."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Savepoints:
    """In the place of :class:`ha.sidecar.savepoint_work.SavepointWork`."""

    def __init__(self, sidecar: "Commanded") -> None:
        self._sidecar, self._present = sidecar, 0

    def take(self, number: int, *_: object, **__: object) -> None:
        self._present = number
        host, dice = self._sidecar.host, self._sidecar.dice
        error = dice.choice(("", "", "The disk is full."))
        host.call_at(
            host.now() + dice.uniform(*SAVES), lambda: self._end(events.SavepointEnded(number, "Saved.", {}, error))
        )

    def abandon(self) -> None:
        self._present = 0

    def _end(self, event: events.SavepointEnded) -> None:
        if event.work == self._present:
            self._sidecar.post(event)


class Commanded:
    """The sidecar's thread, and what it wakes."""

    def __init__(
        self,
        host: Process,
        plan: Plan,
        files: SimulatedBoundedFiles,
        job: str,
        tasks: Tasks,
        failures: Failures,
        requests: Ledger,
        found: Callable[[Violation], None],
        *,
        again: bool,
    ) -> None:
        self.host, self.tasks, self.ledger, self.found = host, tasks, failures, found
        self._plan, self._job, self._requests, self._again = plan, job, requests, again
        self.clock, self.dice = SimulatedClock(host), host.world.dice(f"command {host.name}")
        contender, timing = host.contender, plan.timing
        process: Any = SimpleNamespace(
            stores=SimpleNamespace(files=files, timing=timing),
            settings=Settings(),
            metrics=SimpleNamespace(registry=CollectorRegistry()),
            holds_until=lambda job: host.participant(job).election.state.holds_until(),
            contend=lambda job, _: host.contend_for(job),
            step_down=contender.step_down,
            release=contender.release,
            record_end=self._record_end,
        )
        self._files: Any = files
        nobody: Any = None
        self.status = _Status(process, job, nobody, again=again, clock=self.clock)
        self.status.begun = self._begun
        self.command = SimulatedCommand(self)
        command: Any = self.command
        programs: Any = SimpleNamespace(newest=lambda program: program)
        program: Any = SimpleNamespace(version=0)
        hosts: Any = SimpleNamespace(excluded=lambda _: [], keep_off=lambda *_: "")
        savepoints: Any = _Savepoints(self)
        count = FailureCount(self.status, job, plan.attempts or 10**9)
        store = StoreWork(
            job, self.status, count, savepoints, programs, lambda: program, hosts, None, None, self._later, Path,
        )  # fmt: skip
        self._executor = Executor(
            process, job, {}, command, programs, hosts, store, None, self.post, self._in_order, self.spawn
        )
        strategy = (lambda: FixedDelay(1, 0.5)) if plan.operated else NoRestart
        self.machine = Machine(
            Rules(
                warm=False, strategy=strategy, warm_up=NoRestart(), stop_grace=GRACE,
                long_ttl=timing.long_ttl, retry=timing.retry, renewal=timing.renewal,
            )
        )  # fmt: skip
        self._waiting: list[Callable[[], None]] = []
        self._works = False
        self._granted_at = 0.0
        self._tick: Any = None

    @property
    def runs(self) -> bool:
        """Whether the command runs."""
        return self.command.present is not None and self.command.present.there

    def begin(self) -> None:
        """Contend, as the process has done; or take up the command of a dead sidecar."""
        if self._again:
            self.spawn(self.status.look)
        guard = self.host.guard
        if guard is None:
            self.machine.begin(self.host.now())
        else:
            self.machine.take_up(self.host.now(), guard.leader, 1)
            self.command.take_up(1, guard.leader)

    def _record_end(self, job: str, leader: LeaderDirectory, cause: str) -> None:
        record_end(self._files, job, leader, cause, self.host.name, self._plan.timing.call_timeout)

    def post(self, event: Any) -> None:
        """Have an event taken by the sidecar's thread."""
        self.host.world.after(0.0, lambda: self.host.run(lambda: self.take(event)))

    def take(self, event: Any) -> None:
        """Take an event, and do what follows."""
        host, machine = self.host, self.machine
        if isinstance(event, RunEnded):
            if self.command.runs != event.number:
                return
            event = self._executor.ended(event.number)
        self._note_event(event)
        for each in (event, events.ClockTicked()):
            for command in machine.handle(each, host.now(), leads=host.leads(self._job)):
                self._note_command(command)
                self._executor.carry_out(command)
        if machine.state.exit_code is not None:
            host.contend_again = False
        if self._tick is not None:
            self._tick.cancel()
        due = min(machine.state.due, host.now() + LOOKS_EVERY if machine.state.run is not None else NEVER)
        self._tick = (
            None
            if due == NEVER
            else host.call_at(max(due, host.now() + 0.001), lambda: self.take(events.ClockTicked()))
        )

    def spawn(self, work: Callable[[], None]) -> None:
        """Start a task; one that another task starts must not have that for its parent."""
        self.host.world.after(0.0, lambda: self.host.run(lambda: self.tasks.spawn(work)))

    def _later(self, seconds: float, task: Callable[[], None]) -> None:
        self.host.call_at(self.host.now() + seconds, lambda: self._in_order(task))

    def _in_order(self, task: Callable[[], None]) -> None:
        self._waiting.append(task)
        if not self._works:
            self._works = True
            self.spawn(self._work)

    def _work(self) -> None:
        while self._waiting:
            self._waiting.pop(0)()
        self._works = False

    def draw(self) -> Life:
        """Draw how long a command lives."""
        dice, host = self.dice, self.host
        lasts = not self._plan.attempts or dice.random() < LASTS or not self.ledger.dice_say_it_fails
        ends = NEVER if lasts else host.world.now + dice.uniform(*LIVES) / host.rate
        phase = self.machine.state.phase
        assert isinstance(phase, Leading) or not host.leads(self._job), "it is started for a leadership"
        leader = self.machine.state.phase.leader  # type: ignore[union-attr]
        self.note(leader, what.STARTED, self.clock.now() - self._granted_at)
        return Life(ends, dice.random() < self._plan.progress)

    def lasted(self, leader: LeaderDirectory, seconds: float) -> None:
        """The command has run for so long."""
        if LONGEST_PAUSE_S + LONGEST_TELLS <= seconds < LONGEST_PAUSE_S + LONGEST_TELLS + 2 * LOOKS_EVERY:
            self.note(leader, what.LASTED)

    # --- the history

    def _note_event(self, event: events.SidecarEvent) -> None:
        match event:
            case events.LeadershipGranted(leader):
                self._granted_at = self.clock.now()
                taken_up = self.machine.state.run is not None
                self.note(leader, what.TAKEN_UP if taken_up else what.GRANTED)
            case events.Begun(leader) if not (event.ended or event.gave_up):
                self.note(leader, what.DECIDED, event.pause)
            case events.FailureCounted(leader):
                self.note(leader, what.COUNTED)
            case _:
                pass

    def _begun(self, leader: LeaderDirectory) -> None:
        if self._again:
            self.note(leader, what.AGAIN)
            self._again = False

    def _note_command(self, command: do.SidecarCommand) -> None:
        match command:
            case do.CountFailure(leader):
                self.note(leader, what.HOPELESSLY if command.remedy else what.FAILED)
            case do.PrepareRestart(leader, request) | do.TakeSavepoint(_, leader, request):
                self._carried_out(leader, request)
            case do.AnswerRequest(request, State.DONE) if request.verb == RESTART and request.id not in self._done:
                self._carried_out(self.machine.state.phase.leader, request)  # type: ignore[union-attr]
            case _:
                pass

    @property
    def _done(self) -> set[str]:
        return {each.id for each in self._requests.carried_out if each.contender == self.host.name}

    def _carried_out(self, leader: LeaderDirectory, request: Request) -> None:
        done = CarriedOut(self.host.world.now, self.host.name, leader.epoch, request.id)
        self._requests.carried_out.append(done)

    def note(self, leader: LeaderDirectory, what: str, seconds: float = 0.0) -> None:
        """Write something down."""
        host = self.host
        state = host.participant(self._job).election.state
        held = host.holds(self._job) and state.directory is not None and state.directory.epoch == leader.epoch
        self.ledger.happened.append(Happened(host.world.now, host.name, leader.epoch, what, seconds, held))
