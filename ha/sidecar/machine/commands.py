"""Commands: everything that a sidecar does. The executor carries them out, and answers with the event that is named."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ha.program.heartbeat import Beat
from leader.job.request_folder import Request, State
from leader.layout.names import LeaderDirectory

# Waits of a release for a failure that is being kept; the short one if that is only a code.
NOTE_S, SHORT_NOTE_S = 2.0, 0.1


class SidecarCommand(msgspec.Struct, frozen=True):
    """Something that a sidecar does."""


# --- to the contender


class Contend(SidecarCommand, frozen=True):
    """Try to become the leader."""


class StepDown(SidecarCommand, frozen=True):
    """End the leadership, if there is one; ``Revoked`` follows."""

    reason: str


class Release(SidecarCommand, frozen=True):
    """Give the lease back, after all commands before it: ``Released``."""

    leader: LeaderDirectory
    successor: str = ""


# --- to the store, in this order


class RecordEnd(SidecarCommand, frozen=True):
    """Write into the history why a leadership ends."""

    leader: LeaderDirectory
    cause: str


class Begin(SidecarCommand, frozen=True):
    """Read and set the job's state, and complete what was decided: ``Begun``."""

    leader: LeaderDirectory


class RecordTakeUp(SidecarCommand, frozen=True):
    """Note that the leadership of a dead sidecar, and its command, are taken up."""

    leader: LeaderDirectory


class NoteRestarting(SidecarCommand, frozen=True):
    """Set the job's state to RESTARTING: ``RestartingNoted``."""

    leader: LeaderDirectory


class KeepException(SidecarCommand, frozen=True):
    """Keep a failure among the job's exceptions; a release waits for that, for so many seconds at most."""

    leader: LeaderDirectory
    kind: str
    said: str
    dump: str = ""
    wait: float = NOTE_S


class CountFailure(SidecarCommand, frozen=True):
    """Count a failure that ends the leadership: ``Counted``."""

    leader: LeaderDirectory  # the leadership
    cause: str  # one word
    seconds: float  # for how long the command has run
    remedy: str = ""  # what to do about it, if no restart mends it


class ForgetFailures(SidecarCommand, frozen=True):
    """Forget the job's failures: ``Forgotten``; ``restarting``: the job's state is to be RESTARTING, too."""

    leader: LeaderDirectory
    restarting: bool = False


class RecordCancelling(SidecarCommand, frozen=True):
    """Set the job's state to CANCELLING: ``CancellingNoted``."""

    leader: LeaderDirectory


class Finish(SidecarCommand, frozen=True):
    """Set the job's last state, and clean up: ``Finished``."""

    leader: LeaderDirectory


class LookForRequests(SidecarCommand, frozen=True):
    """Accept what operators have asked for: ``RequestsFound``."""

    leader: LeaderDirectory


class AnswerRequest(SidecarCommand, frozen=True):
    """Write how far a request has come, or how it has ended."""

    request: Request
    state: State
    said: str
    result: Mapping[str, Any] = msgspec.field(default_factory=dict)


class RefuseRest(SidecarCommand, frozen=True):
    """Refuse the requests that nobody has accepted, because the job has ended."""

    leader: LeaderDirectory
    said: str


class PrepareRestart(SidecarCommand, frozen=True):
    """Record the hosts that executors keep off, and fetch the newest program: ``RestartPrepared``."""

    leader: LeaderDirectory
    request: Request


class TakeSavepoint(SidecarCommand, frozen=True):
    """Take a savepoint: ``SavepointEnded``; ``stopped`` if the command was stopped for it."""

    work: int
    leader: LeaderDirectory
    request: Request
    stopped: bool = False


class StageSavepoint(SidecarCommand, frozen=True):
    """Copy a savepoint into the job: ``SavepointEnded``."""

    work: int  # number of the command
    leader: LeaderDirectory  # the leadership
    request: Request | None = None  # asks for it; None for the savepoint that the job is to start from


class AbandonSavepoint(SidecarCommand, frozen=True):
    """End the work of a savepoint soon; nothing follows."""


class PutBack(SidecarCommand, frozen=True):
    """Put the job back to the savepoint that was copied into it; empty ``where``: the one that the job starts from."""

    leader: LeaderDirectory
    where: str = ""


# --- to the command


class StartCommand(SidecarCommand, frozen=True):
    """Start the command: ``Started`` or ``NotStarted``."""

    run: int  # its number
    leader: LeaderDirectory | None  # the leadership; None to warm up
    again: bool = False  # whether the job's state has to become RUNNING for it
    waited: bool = False  # whether others were told that it waits


class Grant(SidecarCommand, frozen=True):
    """Tell the warm command that it leads: ``Started``, ``Outdated`` or ``NotStarted``; see :class:`Start`."""

    run: int
    leader: LeaderDirectory
    again: bool = False
    waited: bool = False


class SettleQueries(SidecarCommand, frozen=True):
    """Have the queries end in order within so many seconds, and then the program: ``Settling``."""

    run: int
    seconds: float
    drain: bool = False


class Terminate(SidecarCommand, frozen=True):
    """Ask the command to end."""


class Kill(SidecarCommand, frozen=True):
    """Kill the command."""


class KillHung(SidecarCommand, frozen=True):
    """Take the stacks of a run that hangs, as ``Dumped`` says, and kill it."""

    run: int
    beat: Beat | None


class Probe(SidecarCommand, frozen=True):
    """Try the liveness probe of a run once: ``Probed``; ``began``: now, and ``timeout``, in seconds."""

    run: int
    leader: LeaderDirectory
    began: float
    timeout: float


class AskProgram(SidecarCommand, frozen=True):
    """Ask the program for something: ``ProgramAnswered``."""

    request: Request


# --- to people


class Say(SidecarCommand, frozen=True):
    """Log one sentence about the job."""

    level: int
    said: str


class CountRestart(SidecarCommand, frozen=True):
    """Count a restart, for the metrics."""
