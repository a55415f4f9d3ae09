"""State of a sidecar: the phase of its leadership, the run of its command, the requests of operators; its invariants.

    Standby       nothing is granted                       a warm run may be there
    Reconciling   a dead sidecar's leadership is taken up  its command runs on, until that sidecar's deadline
    Leading       granted; the command is to run           how far that is: the step
    Ending        granted; the command is to end           the lease is given back once it has

    Standby ------granted--> Leading --revoked, or no restart--> Ending --no run, released--> Standby
    Reconciling --granted--> Leading
    Reconciling --revoked--> Ending

Apart from the phase there is the exit code: once it is set, the sidecar ends as soon as it is a standby without a run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ha.config.restart_strategy import RestartStrategy
from ha.program.engine_state import EngineState
from ha.program.heartbeat import Watch
from ha.sidecar.machine.commands import SidecarCommand
from ha.sidecar.machine.liveness import Schedule
from ha.sidecar.machine.sidecar_events import CommandEnded
from ha.verbs.table import CANCEL, STOP
from leader.job.failed_attempts import LONGEST_PAUSE_S
from leader.job.request_folder import Request
from leader.layout.names import LeaderDirectory
from leader.timing import NEVER


class Step(Enum):
    """How far the command of a leadership is."""

    BEGINNING = "beginning"  # the job's state and its failures are being read
    RESTORING = "restoring"  # the savepoint that the job starts from is being copied
    WAITING = "waiting"  # it is started at a known time
    STARTING = "starting"  # it is being started, or told of its grant
    RUNNING = "running"
    RECORDING = "recording"  # it has ended, and that is being written down
    SAVING = "saving"  # it has ended for a savepoint that is being taken


@dataclass(frozen=True, slots=True)
class Standby:
    """Nothing is granted. ``start_at``: when the command is started again to warm up, in seconds of the clock."""

    start_at: float = NEVER


@dataclass(frozen=True, slots=True)
class Reconciling:
    """The leadership of a sidecar that has died on this host is being taken up, and nothing is granted yet."""

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class Leading:
    """The job is granted and the command is to run."""

    leader: LeaderDirectory  # the directory that was granted
    strategy: RestartStrategy  # decides whether the command is started again after a failure
    step: Step = Step.BEGINNING  # how far the command is
    start_at: float = NEVER  # when the command is started, in seconds of the clock; NEVER if that is not due


@dataclass(frozen=True, slots=True)
class Ending:
    """The job is granted still, but its command is to end."""

    leader: LeaderDirectory  # the directory that was granted
    successor: str = ""  # the contender that an operator asked for; empty for none
    finishing: bool = False  # whether the job's end is being recorded
    releasing: bool = False  # whether the lease is being given back


Phase = Standby | Reconciling | Leading | Ending


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a sidecar, as far as its decisions need them; durations in seconds."""

    warm: bool  # whether the command is started before the grant
    strategy: Callable[[], RestartStrategy]  # returns a new restart strategy, for one leadership
    warm_up: RestartStrategy  # likewise for a warm command that ends before its grant
    stop_grace: float  # the time that a command has to end
    long_ttl: float  # of a lease; a warm command that cannot be started is tried again after it
    retry: float  # the shortest pause before requests are looked for once more
    renewal: float  # the longest one
    heartbeat_timeout: float = 0.0  # silence after which a driver hangs; 0 for never
    # returns the tries of a run that begins now; None without a liveness probe
    probe: Callable[[float], Schedule] | None = None
    restores: bool = False  # whether the job starts from a savepoint


@dataclass(slots=True)
class PresentRun:
    """The present run of the command."""

    number: int  # from 1
    granted: bool  # whether the job is granted to it, or will be once it is there
    since: float  # when that was, in seconds of the clock
    warm: bool = False  # whether it was started before its grant
    starting: bool = True  # whether it is being started, or told of its grant
    ends: bool = False  # whether it was asked to end, or will be once it is there
    kill_at: float = NEVER  # when it is killed unless it has ended
    terminate_at: float = NEVER  # when it is asked to end unless its queries have ended in order
    outdated: bool = False  # whether a newer program replaces it
    hang: tuple[str, str] | None = None  # the cause and the sentence if it hangs, and is being killed for that
    # The known failures of its engine's program; None: those that come next were another sidecar's.
    engine: EngineState | None = EngineState()  # noqa: RUF009  # it is frozen


@dataclass(slots=True)
class OpenRequests:
    """The requests of operators in one leadership. One is carried out at a time."""

    # Beside it: a savepoint of the running job, and what the program itself is asked for. They hold up nothing.

    present: Request | None = None  # the one that is being carried out
    saving: Request | None = None  # the savepoint of the running job that is being taken
    of_program: Request | None = None  # what the program has been asked for
    program_by: float = NEVER  # when the program must have answered, in seconds of the clock
    program_said: str = ""  # its last answer
    restarts: bool = False  # whether the command ends, or has ended, to be started again for the present one
    staged: str = ""  # the savepoint that the command is to start from next; empty if there is none
    kept: str = ""  # what the answer to the present one says as well
    result: Mapping[str, Any] = field(default_factory=dict)  # of the present one, for programs
    looking: bool = False  # whether requests are being looked for; `again`: once more after that
    again: bool = False  # see there
    first: bool = True  # whether that is the first look of a leadership
    look_at: float = NEVER  # when to look once more, because the store did not answer
    pause: float = 0.0  # before that


@dataclass(slots=True)
class SidecarState:
    """Everything that a sidecar knows. The functions beside this module change it, and add the commands that follow."""

    rules: Rules
    at: float = 0.0  # now, in seconds of the clock
    leads: bool = False  # whether the contender believes that it leads
    phase: Phase = field(default_factory=Standby)
    run: PresentRun | None = None
    runs: int = 0  # the number of the newest run
    exit_code: int | None = None  # the sidecar's; None while it goes on
    recorded: LeaderDirectory | None = None  # whose end stands in the history: its first cause counts
    last_end: tuple[str, str] = ("", "")  # the cause, and the sentence, of the end of a run that is being recorded
    restart_at: float = NEVER  # when the command that has failed is started again
    early_end: CommandEnded | None = None  # of a dead sidecar's run, before it was known whether that is taken up
    requests: OpenRequests = field(default_factory=OpenRequests)
    work: int = 0  # the number of the savepoint work under way; 0 for none
    works: int = 0
    waited: bool = False  # whether others were told that this leader waits because of the job's failures
    lacks_since: float = NEVER  # since when the host lacks what a start needs; NEVER if it does not
    failed: bool = False  # whether the job has failures that a long run makes matter no longer
    forget_at: float = LONGEST_PAUSE_S  # the length of a run, in seconds, after which they are forgotten
    heartbeat: Watch = field(init=False)
    liveness: Schedule | None = None
    commands: list[SidecarCommand] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.heartbeat = Watch(self.rules.heartbeat_timeout)

    @property
    def stands_by(self) -> bool:
        """Whether nothing is granted."""
        return isinstance(self.phase, Standby)

    @property
    def over(self) -> bool:
        """Whether the sidecar is to end now."""
        return self.exit_code is not None and self.run is None and self.stands_by

    @property
    def may_run(self) -> bool:
        """Whether a command may be started, as far as this process knows; the guard enforces the deadline anyway."""
        return self.exit_code is None and self.leads

    @property
    def runs_granted(self) -> bool:
        """Whether the command runs with its grant."""
        return self.run is not None and self.run.granted and not self.run.starting

    @property
    def start_at(self) -> float:
        """When the command is started, in seconds of the clock; NEVER if that is not due."""
        return self.phase.start_at if isinstance(self.phase, Standby | Leading) else NEVER

    @property
    def due(self) -> float:
        """When time alone makes something happen, in seconds of the clock; looks at the run are apart."""
        ends = (self.run.kill_at, self.run.terminate_at) if self.run is not None else ()
        return min(self.start_at, self.requests.look_at, *ends)

    def do(self, *commands: SidecarCommand) -> None:
        """Add commands."""
        self.commands += commands

    def validate(self) -> None:
        """Assert the invariants."""
        phase, run, requests = self.phase, self.run, self.requests
        if isinstance(phase, Leading):
            granted = run is not None and run.granted
            waits = phase.step in (Step.BEGINNING, Step.RESTORING, Step.WAITING, Step.RECORDING, Step.SAVING)
            assert not (waits and granted), f"a run that is granted is not {phase.step.value}"
            assert granted or phase.step not in (Step.STARTING, Step.RUNNING), "what runs is granted"
            assert (phase.start_at != NEVER) == (phase.step is Step.WAITING), "only what waits has a time to start"
        elif isinstance(phase, Standby):
            assert run is None or not run.granted, "nothing is granted to the run of a standby"
            assert not self.work, "a standby takes no savepoint"
        elif isinstance(phase, Ending):
            assert not (phase.releasing and run is not None and run.granted), "nothing runs when the lease goes"
        if requests.present is not None and requests.present.verb in (STOP, CANCEL):
            assert not isinstance(phase, Leading), "a job that is stopped runs no command"
        if run is not None:
            assert run.number == self.runs, "there is one run, the newest"
            assert run.kill_at == NEVER or run.ends, "only what was asked to end is killed"
