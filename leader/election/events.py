"""Events and commands: the values that go into the election and come out of it."""

from dataclasses import dataclass

from leader.layout.contact import ContactAddress
from leader.layout.information import LeaderInformation
from leader.layout.lease import Attestation, Lease
from leader.layout.names import LeaderDirectory
from store.outcome import Outcome

# --- commands for the file system: at most one is under way per election


@dataclass(frozen=True, slots=True)
class ListJob:
    """List the job's directory; answer: the names in it."""


@dataclass(frozen=True, slots=True)
class ListRecord:
    """List the record directory in a leader directory; answer: the names in it."""

    directory: LeaderDirectory


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Create the job's directory by one rename of a staged tree."""


@dataclass(frozen=True, slots=True)
class Rename:
    """Rename; paths are relative to the job's directory."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class MakeDirectory:
    """Create a directory whose parent exists; the path is relative to the job's directory."""

    path: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an empty directory; the path is relative to the job's directory."""

    path: str


FilesCommand = ListJob | ListRecord | CreateJob | Rename | MakeDirectory | Delete

# --- the other commands


@dataclass(frozen=True, slots=True)
class CheckAttestation:
    """Ask ZooKeeper, after a ``sync``, whether the node of that token is there; answer: :class:`AttestationChecked`."""

    token: str


@dataclass(frozen=True, slots=True)
class AskProcess:
    """Ask the process that this token attested whether it lives; answer: :class:`ProcessAsked`."""

    token: str
    contact: ContactAddress


@dataclass(frozen=True, slots=True)
class Grant:
    """Leadership begins, or goes on (``ADOPTED``); the leader may now confirm endpoints under this session id."""

    epoch: int
    session_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Revoke:
    """Leadership has ended."""

    session_id: str
    reason: str  # one sentence for people
    until: float | None  # boot-clock seconds by which all work must have stopped; None while the lease is being kept


@dataclass(frozen=True, slots=True)
class Publish:
    """HDFS holds this information; mirror it in ZooKeeper."""

    information: LeaderInformation


@dataclass(frozen=True, slots=True)
class Unpublish:
    """Delete the mirror in ZooKeeper if it is ours."""


@dataclass(frozen=True, slots=True)
class TellReleased:
    """Notify the standbys that are connected to this process: the lease was released."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class HandOverRequested:
    """An operator asks the leader to hand over to the contender ``successor``, or to anybody (``lease.ANYBODY``)."""

    successor: str


@dataclass(frozen=True, slots=True)
class RequestsFound:
    """An operator has left a request in the leader directory: the leader is to read them."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """The process that holds the lease seems to have ended, so the lease is seized; ``contender`` is its name."""

    contender: str


@dataclass(frozen=True, slots=True)
class Log:
    """One sentence about a decision, for the log; ``warns`` if somebody has to do something about it."""

    sentence: str
    warns: bool = False


Command = (
    FilesCommand
    | CheckAttestation
    | AskProcess
    | Grant
    | Revoke
    | Publish
    | Unpublish
    | TellReleased
    | HandOverRequested
    | RequestsFound
    | Suspect
    | Log
)

# --- events


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class FilesDone:
    """A command for the file system has ended; the value of a list is its names, other commands have none."""

    command: FilesCommand
    outcome: Outcome[list[str] | None]


@dataclass(frozen=True, slots=True)
class Attested:
    """ZooKeeper's word on this process's own session has changed."""

    attestation: Attestation


@dataclass(frozen=True, slots=True)
class AttestationChecked:
    """Answer to :class:`CheckAttestation`; ``present`` is None if ZooKeeper could not say."""

    token: str
    present: bool | None


@dataclass(frozen=True, slots=True)
class ProcessGone:
    """The process that was granted this session id has ended, whatever ZooKeeper says of its session by now."""

    session_id: str


@dataclass(frozen=True, slots=True)
class ProcessAsked:
    """Answer to :class:`AskProcess`; ``lives`` says whether the process has greeted in time."""

    token: str
    lives: bool


@dataclass(frozen=True, slots=True)
class ReleaseHeard:
    """The process that holds the lease says that it has released it, and as what; only the store knows."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Nudge:
    """Something may have changed in the store: look."""


@dataclass(frozen=True, slots=True)
class Contend:
    """Try to become the leader from now on."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Take up the leadership of a process that has died on this host, and whose command still runs."""

    # Answered by a Grant of the same epoch and session id, or by a Revoke.

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class Confirm:
    """The leader publishes its endpoints; ignored unless the session id is that of the present leadership."""

    session_id: str
    endpoints: dict[str, str]


@dataclass(frozen=True, slots=True)
class StepDown:
    """End the leadership, but keep the lease while the work is being stopped; do not contend."""

    reason: str


@dataclass(frozen=True, slots=True)
class Release:
    """All work has stopped: give the lease back; do not contend."""

    successor: str = ""


Event = (
    Tick
    | FilesDone
    | Attested
    | AttestationChecked
    | ProcessGone
    | ProcessAsked
    | ReleaseHeard
    | Nudge
    | Contend
    | Adopt
    | Confirm
    | StepDown
    | Release
)
