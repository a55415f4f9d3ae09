"""Events of a history, written as one JSON object a line, and the violations that a check finds in them.

Times are boot-clock seconds of one host, or true time in a simulation, so events of several hosts cannot be compared.
A killed process leaves no event. Its last belief counts until it runs out, or until a standby found the process gone.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from leader.observer import Observer


class _Event(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    at: float
    job: str


# --- contenders


class Believed(_Event, frozen=True):
    """A contender's belief has changed."""

    contender: str
    leads_until: float | None  # until then it leads; None if it does not
    holds_until: float | None  # until then no other can


class Granted(_Event, frozen=True):
    """Leadership began."""

    contender: str
    epoch: int
    session_id: str
    reason: str


class Revoked(_Event, frozen=True):
    """Leadership ended."""

    contender: str
    session_id: str
    reason: str


class Published(_Event, frozen=True):
    """The file system holds all of the endpoints."""

    contender: str
    epoch: int
    session_id: str
    endpoints: Mapping[str, str]


class Ran(_Event, frozen=True):
    """The command of a leader was started or has ended."""

    contender: str
    epoch: int
    running: bool


class Suspected(_Event, frozen=True):
    """A standby has found that a leader's process has ended, and does not wait until its belief has run out."""

    contender: str  # whose process has ended
    by: str  # the standby


class Ended(_Event, frozen=True):
    """A process has ended: it no longer believes or does anything; ``job`` is empty."""

    contender: str


# --- checkpoints; ``at`` is when the call began


class Counted(_Event, frozen=True):
    """A checkpoint id was handed out."""

    ended: float
    contender: str
    epoch: int
    id: int


class Completed(_Event, frozen=True):
    """A query's batch was acknowledged as published."""

    ended: float
    contender: str
    epoch: int
    query: str
    batch: int


class CheckpointsRead(_Event, frozen=True):
    """A reader was told the checkpoints."""

    ended: float
    reader: str
    epoch: int
    next_id: int
    queries: Mapping[str, int]


# --- readers; ``at`` is when the lookup began


class LookedUp(_Event, frozen=True):
    """A lookup has ended."""

    ended: float
    timeout: float  # seconds that it was given; of a watch, that it took
    reader: str  # the answers of one reader are in order
    outcome: str  # leader, none (there is no leader) or unreachable (no store answered)
    epoch: int = 0
    session_id: str = ""
    endpoints: Mapping[str, str] = {}
    source: str = ""
    verified: bool = False
    stale: bool = False


# --- stores, in the order in which they executed


class Stored(_Event, frozen=True):
    """The file system has executed a change."""

    operation: str  # rename, make or delete
    path: str  # below the job's directory; a rename's source
    target: str = ""  # a rename's destination
    by: str = ""  # the process that sent it; empty if the store does not say


class Copied(_Event, frozen=True):
    """ZooKeeper has executed a change."""

    operation: str  # create, write or delete
    path: str
    owner: int  # session of the node, 0 if it is not ephemeral
    session: int  # that changed it, 0 if it is not known here
    data: str = ""  # of the node, after the change


# --- faults


class Fault(_Event, frozen=True):
    """A drill has broken or mended something; ``job`` is empty if that concerns all jobs."""

    what: str


Event = (
    Believed
    | Granted
    | Revoked
    | Published
    | Ran
    | Suspected
    | Ended
    | Counted
    | Completed
    | CheckpointsRead
    | LookedUp
    | Stored
    | Copied
    | Fault
)

# --- the history of a process


class History:
    """A process's history, to which its contender, its checkpoints and its readers write events; this one has none."""

    @property
    def observer(self) -> Observer | None:
        """Records leaderships and checkpoints; None if nothing is recorded."""
        return None

    def reader(self) -> Observer | None:
        """Return an observer that records one reader's answers under its own name; None if nothing is recorded."""
        return None

    def ran(self, job: str, epoch: int, *, running: bool) -> None:
        """Record that a leader's command, or a block of ``ha.lead``, is being started or has ended."""

    def write(self, event: Event) -> None:
        """Record an event."""

    def close(self) -> None:
        """Record nothing more."""


# --- violations


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that a history breaks."""

    guarantee: str  # such as S1; docs/protocol.md lists them
    at: float  # in the history's own time
    sentence: str  # what happened, for a person


# --- files

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    """Write an event as one line."""
    return _encoder.encode(event) + b"\n"


def decode(lines: Iterable[bytes]) -> Iterator[Event]:
    """Read events, one a line; ``ValueError`` if a line is none."""
    # The last line may be cut off, because its writer may have been killed.
    for line in lines:
        if not line.endswith(b"\n"):
            return
        try:
            yield _decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise ValueError(f"Not an event of a history: {line[:80]!r} ({error}).") from error


def load(folder: Path) -> list[Event]:
    """Read all events that the processes of one host have written into a folder, in the order of their times."""
    events: list[Event] = []
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            events += decode(file)
    return sorted(events, key=lambda event: event.at)
