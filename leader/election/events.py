"""Events and commands: the values that go into the election and come out of it."""

import msgspec

from leader.layout.contact import ContactAddress
from leader.layout.information import LeaderInformation
from leader.layout.lease import Attestation, Lease
from leader.layout.names import LeaderDirectory
from store.outcome import Outcome

# --- commands for the file system: at most one is under way per election


class ListJob(msgspec.Struct, frozen=True):
    """List the job's directory; answer: the names in it."""


class ListRecord(msgspec.Struct, frozen=True):
    """List the record directory in a leader directory; answer: the names in it."""

    directory: LeaderDirectory


class CreateJob(msgspec.Struct, frozen=True):
    """Create the job's directory by one rename of a staged tree."""


class Rename(msgspec.Struct, frozen=True):
    """Rename; paths are relative to the job's directory."""

    source: str
    destination: str


class MakeDirectory(msgspec.Struct, frozen=True):
    """Create a directory whose parent exists; the path is relative to the job's directory."""

    path: str


class Delete(msgspec.Struct, frozen=True):
    """Delete an empty directory; the path is relative to the job's directory."""

    path: str


FilesCommand = ListJob | ListRecord | CreateJob | Rename | MakeDirectory | Delete

# --- the other commands


class CheckAttestation(msgspec.Struct, frozen=True):
    """Ask ZooKeeper, after a ``sync``, whether the node of that token is there; answer: :class:`AttestationChecked`."""

    token: str


class AskProcess(msgspec.Struct, frozen=True):
    """Ask the process that this token attested whether it lives; answer: :class:`ProcessAsked`."""

    token: str
    contact: ContactAddress


class Grant(msgspec.Struct, frozen=True):
    """Leadership begins, or goes on (``ADOPTED``); the leader may now confirm endpoints under this session id."""

    epoch: int
    session_id: str
    reason: str


class Revoke(msgspec.Struct, frozen=True):
    """Leadership has ended."""

    session_id: str
    reason: str  # one sentence for people
    until: float | None  # boot-clock seconds by which all work must have stopped; None while the lease is being kept


class Publish(msgspec.Struct, frozen=True):
    """HDFS holds this information; mirror it in ZooKeeper."""

    information: LeaderInformation


class Unpublish(msgspec.Struct, frozen=True):
    """Delete the mirror in ZooKeeper if it is ours."""


class TellReleased(msgspec.Struct, frozen=True):
    """Notify the standbys that are connected to this process: the lease was released."""

    lease: Lease


class HandOverRequested(msgspec.Struct, frozen=True):
    """An operator asks the leader to hand over to the contender ``successor``, or to anybody (``lease.ANYBODY``)."""

    successor: str


class RequestsFound(msgspec.Struct, frozen=True):
    """An operator has left a request in the leader directory: the leader is to read them."""


class Suspect(msgspec.Struct, frozen=True):
    """The process that holds the lease seems to have ended, so the lease is seized; ``contender`` is its name."""

    contender: str


class Log(msgspec.Struct, frozen=True):
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


class Tick(msgspec.Struct, frozen=True):
    """Time has passed."""


class FilesDone(msgspec.Struct, frozen=True):
    """A command for the file system has ended; the value of a list is its names, other commands have none."""

    command: FilesCommand
    outcome: Outcome[list[str] | None]


class Attested(msgspec.Struct, frozen=True):
    """ZooKeeper's word on this process's own session has changed."""

    attestation: Attestation


class AttestationChecked(msgspec.Struct, frozen=True):
    """Answer to :class:`CheckAttestation`; ``present`` is None if ZooKeeper could not say."""

    token: str
    present: bool | None


class ProcessGone(msgspec.Struct, frozen=True):
    """The process that was granted this session id has ended, whatever ZooKeeper says of its session by now."""

    session_id: str


class ProcessAsked(msgspec.Struct, frozen=True):
    """Answer to :class:`AskProcess`; ``lives`` says whether the process has greeted in time."""

    token: str
    lives: bool


class ReleaseHeard(msgspec.Struct, frozen=True):
    """The process that holds the lease says that it has released it, and as what; only the store knows."""

    lease: Lease


class Nudge(msgspec.Struct, frozen=True):
    """Something may have changed in the store: look."""


class Contend(msgspec.Struct, frozen=True):
    """Try to become the leader from now on."""


class Adopt(msgspec.Struct, frozen=True):
    """Take up the leadership of a process that has died on this host, and whose command still runs."""

    # Answered by a Grant of the same epoch and session id, or by a Revoke.

    leader: LeaderDirectory


class Confirm(msgspec.Struct, frozen=True):
    """The leader publishes its endpoints; ignored unless the session id is that of the present leadership."""

    session_id: str
    endpoints: dict[str, str]


class StepDown(msgspec.Struct, frozen=True):
    """End the leadership, but keep the lease while the work is being stopped; do not contend."""

    reason: str


class Release(msgspec.Struct, frozen=True):
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
