"""Events: everything that a sidecar learns. An answer of the executor names the command or the run that it is about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ha.program.end_file import End
from ha.program.engine_state import EngineState
from ha.program.heartbeat import Beat
from leader.job.request_folder import Request, State
from leader.job.status import Status
from leader.layout.names import LeaderDirectory


class SidecarEvent:
    """Something that a sidecar learns."""

    __slots__ = ()


# --- of the contender, and of people


@dataclass(frozen=True, slots=True)
class LeadershipGranted(SidecarEvent):
    """The job is granted, or the leadership of a dead sidecar is taken up."""

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class LeadershipRevoked(SidecarEvent):
    """The leadership of that session has ended; ``until``: when another one may lead, None while the lease is kept."""

    session_id: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class AskedToHandOver(SidecarEvent):
    """An operator asks for another leader; ``successor``: its name, or empty for any."""

    successor: str = ""


@dataclass(frozen=True, slots=True)
class Marked(SidecarEvent):
    """An operator has left a request."""


@dataclass(frozen=True, slots=True)
class NameRefused(SidecarEvent):
    """Another process contends under this one's name."""


@dataclass(frozen=True, slots=True)
class Signalled(SidecarEvent):
    """A signal asks the sidecar to end."""

    number: int
    name: str


# --- of the store


@dataclass(frozen=True, slots=True)
class Begun(SidecarEvent):
    """The job's state and its failures are known."""

    leader: LeaderDirectory  # the leadership
    ended: Status | None = None  # how the job has ended for good; None if it has not
    gave_up: bool = False  # whether the job has FAILED just now, because its attempts are used up
    pause: float = 0.0  # seconds before the command is started, because of the job's failures
    failed: bool = False  # whether the job has failures that a long run makes matter no longer


@dataclass(frozen=True, slots=True)
class RestartingNoted(SidecarEvent):
    """The job's state says that it restarts; or its program has ended the job for good (``ended``)."""

    leader: LeaderDirectory
    ended: bool = False


@dataclass(frozen=True, slots=True)
class CancellingNoted(SidecarEvent):
    """The job's state says that it is being cancelled; or that could not be written before the lease ended."""

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class FailureCounted(SidecarEvent):
    """A failure that ends the leadership is counted; ``gave_up`` if it was the last one, and the job has FAILED."""

    leader: LeaderDirectory
    gave_up: bool = False


@dataclass(frozen=True, slots=True)
class Forgotten(SidecarEvent):
    """The job's failures are forgotten."""

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class Finished(SidecarEvent):
    """The job has ended; ``recorded`` if its state says so."""

    leader: LeaderDirectory
    recorded: bool


@dataclass(frozen=True, slots=True)
class Released(SidecarEvent):
    """The lease is given back."""


@dataclass(frozen=True, slots=True)
class RequestsFound(SidecarEvent):
    """This leader has accepted these requests; ``unknown`` if the store did not name all."""

    leader: LeaderDirectory
    requests: tuple[Request, ...] = ()
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class RestartPrepared(SidecarEvent):
    """All that a restart needs is at hand, or ``problem`` says why not."""

    request: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SavepointEnded(SidecarEvent):
    """A savepoint is taken, or copied into the job; or ``error`` says why not."""

    work: int  # number of the command
    said: str = ""  # one sentence about the savepoint
    result: Mapping[str, Any] = field(default_factory=dict)  # the same for programs
    error: str = ""  # empty if it was done
    known: bool = False  # whether the job was started from this savepoint before, so that nothing was copied


# --- of the command


@dataclass(frozen=True, slots=True)
class Started(SidecarEvent):
    """The run is there: ``granted`` if with its grant, or it warms up."""

    run: int
    granted: bool = True


@dataclass(frozen=True, slots=True)
class Outdated(SidecarEvent):
    """The warm run was not told of its grant: there is a newer program, or its files are gone."""

    run: int


@dataclass(frozen=True, slots=True)
class NotStarted(SidecarEvent):
    """The run could not be started, or told of its grant."""

    run: int  # its number
    said: str  # why, in one sentence
    granted: bool = True  # whether it was to have its grant
    runs: bool = False  # whether it is there all the same, and warm
    lack: bool = False  # whether the host lacks what it may have again: processes, memory, descriptors, room


@dataclass(frozen=True, slots=True)
class Settling(SidecarEvent):
    """Whether the program ends its queries in order, within so many seconds, as it was asked to."""

    run: int
    seconds: float
    able: bool


@dataclass(frozen=True, slots=True)
class CommandEnded(SidecarEvent):
    """A run has ended, with all its processes."""

    run: int  # its number
    code: int  # its exit code
    done: bool = False  # whether that, and what the run has noted, means that the job has finished
    end: End = End()  # noqa: RUF009  # it is frozen
    jvm_ended: bool = False  # whether its guard has ended it because its JVM had ended
    gave_up: bool = False  # whether its engine has used up the restart strategy
    drained: bool = False  # whether it had processed all that there was


@dataclass(frozen=True, slots=True)
class Dumped(SidecarEvent):
    """The stacks of a run that hangs are known, as far as they can be had; it is killed now."""

    run: int
    dump: str = ""


@dataclass(frozen=True, slots=True)
class Probed(SidecarEvent):
    """A try of the liveness probe has ended; ``wrong``: the fault, empty for none, None if it is not known."""

    began: float
    ended: float
    wrong: str | None


@dataclass(frozen=True, slots=True)
class ProgramAnswered(SidecarEvent):
    """The program has answered a request."""

    request: str
    state: State
    said: str


@dataclass(frozen=True, slots=True)
class ClockTicked(SidecarEvent):
    """Time has passed. The present run's newest heartbeat, and the state of its engine."""

    beat: Beat | None = None
    engine: EngineState = EngineState()  # noqa: RUF009  # it is frozen
