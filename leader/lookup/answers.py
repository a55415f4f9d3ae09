"""Data of lookups: a reader's knowledge of a job, its answers, and an agent's snapshots. No I/O."""

import threading
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec

from leader.layout.contact import ContactAddress
from leader.layout.information import LeaderInformation
from leader.timing import NEVER


class Source(Enum):
    """Where an answer comes from."""

    SNAPSHOT = "snapshot"
    ZOOKEEPER = "zookeeper"
    HDFS = "hdfs"


class Known(NamedTuple):
    """A reader's knowledge of a job's leader."""

    epoch: int  # the highest epoch that counts
    session_id: str  # the session id of that epoch
    # none if the leader of that epoch cannot be reached: it has not confirmed yet, or it has released
    information: LeaderInformation | None
    source: Source  # where this comes from
    since: float  # boot-clock seconds when the reader first heard of this epoch and session id
    published: float  # boot-clock seconds when the reader first heard of this information
    at: float  # boot-clock seconds before the last question whose answer was this
    verified: bool  # whether HDFS has said the same


class Answer(msgspec.Struct, frozen=True):
    """The leader of a job, as a reader answers it.

    Attributes:
        job: the job's name.
        epoch: the number of this leadership. It orders answers and never goes back.
        session_id: the UUID of the leader's session, which is the version of the answer.
        endpoints: the leader's addresses by name.
        source: where the answer comes from.
        age: seconds since a store said so.
        verified: whether HDFS has said the same.
        stale: whether no store could be reached, so that this is the last known answer.
    """

    job: str
    epoch: int
    session_id: str
    endpoints: Mapping[str, str]
    source: Source
    age: float
    verified: bool
    stale: bool = False


class Look(msgspec.Struct, frozen=True):
    """The outcome of one look of a watch."""

    started: float  # boot-clock seconds before any store was asked
    answer: Answer | None  # none if there is no leader, or if no store answered
    reached: bool  # whether a store or an agent answered
    known: Known | None  # the reader's knowledge after the look; None if it knows nothing of the job
    # boot-clock seconds before the last question that HDFS answered. A look may repeat that answer
    asked: float = NEVER


class Looks(Protocol):
    """The part of a :class:`leader.lookup.reader.Reader` that an agent uses."""

    def looks(
        self, job: str, stop: threading.Event, timeout: float = 2.0, *, every: float = float("inf")
    ) -> Iterator[Look]:
        """Yield a look now, after every change, and after ``every`` seconds at the latest, until ``stop`` is set."""


class Lookups(Looks, Protocol):
    """The interface of a :class:`leader.lookup.reader.Reader`, whose docstrings state the promises."""

    def leader(self, job: str, timeout: float = 2.0, *, stale: bool = False) -> Answer:
        """Return the leader of the job."""

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        """Report that the leader of this session id refused; return the present leader, according to HDFS."""

    def watch(self, job: str, stop: threading.Event, timeout: float = 2.0) -> Iterator[Answer | None]:
        """Yield the leader, then every change, until ``stop`` is set."""


class Snapshot(msgspec.Struct, frozen=True):
    """One answer that the agent of this host received, and how long other processes may use it."""

    job: str  # the job's name
    epoch: int  # the highest epoch that the agent knows; 0 if the job never had a leader, or does not exist
    session_id: str  # the session id of that epoch; empty for epoch 0
    information: LeaderInformation | None  # none if there is no leader
    at: float  # boot-clock seconds when the agent received it
    good_until: float  # boot-clock seconds after which the snapshot is worthless, counted from before the agent asked
    verified: bool  # whether HDFS had said the same


class Processes(Protocol):
    """Reports when a leader's process has ended; :mod:`leader.election.suspicion` defines that."""

    def follow(self, contact: ContactAddress, on_gone: Callable[[ContactAddress], None]) -> None:
        """Call ``on_gone`` once, on another thread, if that process is gone."""

    def leave(self, contact: ContactAddress, on_gone: Callable[[ContactAddress], None]) -> None:
        """Undo :meth:`follow`; a report that is under way still comes."""

    def forked(self) -> None:
        """Reset in a forked child."""


class Snapshots(Protocol):
    """A reader's access to snapshots. No method raises, and none returns a snapshot that has run out."""

    def find(self, job: str) -> Snapshot | None:
        """Return the job's snapshot, within microseconds; None if none can be trusted."""

    def ask(self, job: str, timeout: float) -> Snapshot | None:
        """Ask the agent for a snapshot and wait up to ``timeout`` seconds; without an agent return None at once."""

    def subscribe(self, job: str, changed: threading.Event) -> None:
        """Set the event when the job's snapshot is replaced, where the system reports that."""

    def unsubscribe(self, job: str, changed: threading.Event) -> None:
        """Undo :meth:`subscribe`."""


def nobody_leads(job: str, epoch: int) -> str:
    """Return a message that the job has no leader; ``epoch`` is its last one, or 0 if it never had a leader."""
    if epoch == 0:
        return f"Job {job!r} has never had a leader."
    return f"Job {job!r} has no leader now; the last epoch was {epoch}."
