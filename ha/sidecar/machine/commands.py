"""Commands: everything that a sidecar does. The executor carries them out, and answers with the event that is named."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ha.program.heartbeat import Beat
from leader.job.request_folder import Request, State
from leader.layout.names import LeaderDirectory

# Waits of a release for a failure that is being kept; the short one if that is only a code.
NOTE_S, SHORT_NOTE_S = 2.0, 0.1


class SidecarCommand:
    """Something that a sidecar does."""

    __slots__ = ()


# --- to the contender


@dataclass(frozen=True, slots=True)
class Contend(SidecarCommand):
    """Try to become the leader."""


@dataclass(frozen=True, slots=True)
class StepDown(SidecarCommand):
    """End the leadership, if there is one; ``Revoked`` follows."""

    reason: str


@dataclass(frozen=True, slots=True)
class Release(SidecarCommand):
    """Give the lease back, after all commands before it: ``Released``."""

    leader: LeaderDirectory
    successor: str = ""


# --- to the store, in this order


@dataclass(frozen=True, slots=True)
class RecordEnd(SidecarCommand):
    """Write into the history why a leadership ends."""

    leader: LeaderDirectory
    cause: str


@dataclass(frozen=True, slots=True)
class Begin(SidecarCommand):
    """Read and set the job's state, and complete what was decided: ``Begun``."""

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class RecordTakeUp(SidecarCommand):
    """Note that the leadership of a dead sidecar, and its command, are taken up."""

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class NoteRestarting(SidecarCommand):
    """Set the job's state to RESTARTING: ``RestartingNoted``."""

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class KeepException(SidecarCommand):
    """Keep a failure among the job's exceptions; a release waits for that, for so many seconds at most."""

    leader: LeaderDirectory
    kind: str
    said: str
    dump: str = ""
    wait: float = NOTE_S


@dataclass(frozen=True, slots=True)
class CountFailure(SidecarCommand):
    """Count a failure that ends the leadership: ``Counted``."""

    leader: LeaderDirectory  # the leadership
    cause: str  # one word
    seconds: float  # for how long the command has run
    remedy: str = ""  # what to do about it, if no restart mends it


@dataclass(frozen=True, slots=True)
class ForgetFailures(SidecarCommand):
    """Forget the job's failures: ``Forgotten``; ``restarting``: the job's state is to be RESTARTING, too."""

    leader: LeaderDirectory
    restarting: bool = False


@dataclass(frozen=True, slots=True)
class RecordCancelling(SidecarCommand):
    """Set the job's state to CANCELLING: ``CancellingNoted``."""

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class Finish(SidecarCommand):
    """Set the job's last state, and clean up: ``Finished``."""

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class LookForRequests(SidecarCommand):
    """Accept what operators have asked for: ``RequestsFound``."""

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class AnswerRequest(SidecarCommand):
    """Write how far a request has come, or how it has ended."""

    request: Request
    state: State
    said: str
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RefuseRest(SidecarCommand):
    """Refuse the requests that nobody has accepted, because the job has ended."""

    leader: LeaderDirectory
    said: str


@dataclass(frozen=True, slots=True)
class PrepareRestart(SidecarCommand):
    """Record the hosts that executors keep off, and fetch the newest program: ``RestartPrepared``."""

    leader: LeaderDirectory
    request: Request


@dataclass(frozen=True, slots=True)
class TakeSavepoint(SidecarCommand):
    """Take a savepoint: ``SavepointEnded``; ``stopped`` if the command was stopped for it."""

    work: int
    leader: LeaderDirectory
    request: Request
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class StageSavepoint(SidecarCommand):
    """Copy a savepoint into the job: ``SavepointEnded``."""

    work: int  # number of the command
    leader: LeaderDirectory  # the leadership
    request: Request | None = None  # asks for it; None for the savepoint that the job is to start from


@dataclass(frozen=True, slots=True)
class AbandonSavepoint(SidecarCommand):
    """End the work of a savepoint soon; nothing follows."""


@dataclass(frozen=True, slots=True)
class PutBack(SidecarCommand):
    """Put the job back to the savepoint that was copied into it; empty ``where``: the one that the job starts from."""

    leader: LeaderDirectory
    where: str = ""


# --- to the command


@dataclass(frozen=True, slots=True)
class StartCommand(SidecarCommand):
    """Start the command: ``Started`` or ``NotStarted``."""

    run: int  # its number
    leader: LeaderDirectory | None  # the leadership; None to warm up
    again: bool = False  # whether the job's state has to become RUNNING for it
    waited: bool = False  # whether others were told that it waits


@dataclass(frozen=True, slots=True)
class Grant(SidecarCommand):
    """Tell the warm command that it leads: ``Started``, ``Outdated`` or ``NotStarted``; see :class:`Start`."""

    run: int
    leader: LeaderDirectory
    again: bool = False
    waited: bool = False


@dataclass(frozen=True, slots=True)
class SettleQueries(SidecarCommand):
    """Have the queries end in order within so many seconds, and then the program: ``Settling``."""

    run: int
    seconds: float
    drain: bool = False


@dataclass(frozen=True, slots=True)
class Terminate(SidecarCommand):
    """Ask the command to end."""


@dataclass(frozen=True, slots=True)
class Kill(SidecarCommand):
    """Kill the command."""


@dataclass(frozen=True, slots=True)
class KillHung(SidecarCommand):
    """Take the stacks of a run that hangs, as ``Dumped`` says, and kill it."""

    run: int
    beat: Beat | None


@dataclass(frozen=True, slots=True)
class Probe(SidecarCommand):
    """Try the liveness probe of a run once: ``Probed``; ``began``: now, and ``timeout``, in seconds."""

    run: int
    leader: LeaderDirectory
    began: float
    timeout: float


@dataclass(frozen=True, slots=True)
class AskProgram(SidecarCommand):
    """Ask the program for something: ``ProgramAnswered``."""

    request: Request


# --- to people


@dataclass(frozen=True, slots=True)
class Say(SidecarCommand):
    """Log one sentence about the job."""

    level: int
    said: str


@dataclass(frozen=True, slots=True)
class CountRestart(SidecarCommand):
    """Count a restart, for the metrics."""
