"""Events: everything that a sidecar learns. An answer of the executor names the command or the run that it is about."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ha.program.end_file import End
from ha.program.engine_state import EngineState
from ha.program.heartbeat import Beat
from leader.job.request_folder import Request, State
from leader.job.status import Status
from leader.layout.names import LeaderDirectory


class SidecarEvent(msgspec.Struct, frozen=True):
    """Something that a sidecar learns."""


# --- of the contender, and of people


class LeadershipGranted(SidecarEvent, frozen=True):
    """The job is granted, or the leadership of a dead sidecar is taken up."""

    leader: LeaderDirectory


class LeadershipRevoked(SidecarEvent, frozen=True):
    """The leadership of that session has ended; ``until``: when another one may lead, None while the lease is kept."""

    session_id: str
    until: float | None = None


class AskedToHandOver(SidecarEvent, frozen=True):
    """An operator asks for another leader; ``successor``: its name, or empty for any."""

    successor: str = ""


class Marked(SidecarEvent, frozen=True):
    """An operator has left a request."""


class NameRefused(SidecarEvent, frozen=True):
    """Another process contends under this one's name."""


class Signalled(SidecarEvent, frozen=True):
    """A signal asks the sidecar to end."""

    number: int
    name: str


# --- of the store


class Begun(SidecarEvent, frozen=True):
    """The job's state and its failures are known."""

    leader: LeaderDirectory  # the leadership
    ended: Status | None = None  # how the job has ended for good; None if it has not
    gave_up: bool = False  # whether the job has FAILED just now, because its attempts are used up
    pause: float = 0.0  # seconds before the command is started, because of the job's failures
    failed: bool = False  # whether the job has failures that a long run makes matter no longer


class RestartingNoted(SidecarEvent, frozen=True):
    """The job's state says that it restarts; or its program has ended the job for good (``ended``)."""

    leader: LeaderDirectory
    ended: bool = False


class CancellingNoted(SidecarEvent, frozen=True):
    """The job's state says that it is being cancelled; or that could not be written before the lease ended."""

    leader: LeaderDirectory


class FailureCounted(SidecarEvent, frozen=True):
    """A failure that ends the leadership is counted; ``gave_up`` if it was the last one, and the job has FAILED."""

    leader: LeaderDirectory
    gave_up: bool = False


class Forgotten(SidecarEvent, frozen=True):
    """The job's failures are forgotten."""

    leader: LeaderDirectory


class Finished(SidecarEvent, frozen=True):
    """The job has ended; ``recorded`` if its state says so."""

    leader: LeaderDirectory
    recorded: bool


class Released(SidecarEvent, frozen=True):
    """The lease is given back."""


class RequestsFound(SidecarEvent, frozen=True):
    """This leader has accepted these requests; ``unknown`` if the store did not name all."""

    leader: LeaderDirectory
    requests: tuple[Request, ...] = ()
    unknown: bool = False


class RestartPrepared(SidecarEvent, frozen=True):
    """All that a restart needs is at hand, or ``problem`` says why not."""

    request: str
    problem: str = ""


class SavepointEnded(SidecarEvent, frozen=True):
    """A savepoint is taken, or copied into the job; or ``error`` says why not."""

    work: int  # number of the command
    said: str = ""  # one sentence about the savepoint
    result: Mapping[str, Any] = msgspec.field(default_factory=dict)  # the same for programs
    error: str = ""  # empty if it was done
    known: bool = False  # whether the job was started from this savepoint before, so that nothing was copied


# --- of the command


class Started(SidecarEvent, frozen=True):
    """The run is there: ``granted`` if with its grant, or it warms up."""

    run: int
    granted: bool = True


class Outdated(SidecarEvent, frozen=True):
    """The warm run was not told of its grant: there is a newer program, or its files are gone."""

    run: int


class NotStarted(SidecarEvent, frozen=True):
    """The run could not be started, or told of its grant."""

    run: int  # its number
    said: str  # why, in one sentence
    granted: bool = True  # whether it was to have its grant
    runs: bool = False  # whether it is there all the same, and warm
    lack: bool = False  # whether the host lacks what it may have again: processes, memory, descriptors, room


class Settling(SidecarEvent, frozen=True):
    """Whether the program ends its queries in order, within so many seconds, as it was asked to."""

    run: int
    seconds: float
    able: bool


class CommandEnded(SidecarEvent, frozen=True):
    """A run has ended, with all its processes."""

    run: int  # its number
    code: int  # its exit code
    done: bool = False  # whether that, and what the run has noted, means that the job has finished
    end: End = End()
    jvm_ended: bool = False  # whether its guard has ended it because its JVM had ended
    gave_up: bool = False  # whether its engine has used up the restart strategy
    drained: bool = False  # whether it had processed all that there was


class Dumped(SidecarEvent, frozen=True):
    """The stacks of a run that hangs are known, as far as they can be had; it is killed now."""

    run: int
    dump: str = ""


class Probed(SidecarEvent, frozen=True):
    """A try of the liveness probe has ended; ``wrong``: the fault, empty for none, None if it is not known."""

    began: float
    ended: float
    wrong: str | None


class ProgramAnswered(SidecarEvent, frozen=True):
    """The program has answered a request."""

    request: str
    state: State
    said: str


class ClockTicked(SidecarEvent, frozen=True):
    """Time has passed. The present run's newest heartbeat, and the state of its engine."""

    beat: Beat | None = None
    engine: EngineState = EngineState()
