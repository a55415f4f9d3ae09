"""What a process has for a history: nothing as a rule, a :class:`ha.history.recorder.Recorder` if the setting says so.

Small to import: Python workers that only look something up have it, too.
"""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from ha.history.events import Event
from leader.answers import Answer

if TYPE_CHECKING:
    from leader.candidacy import Leads
    from leader.checkpoint import Checkpoint, Metadata
    from leader.checkpoint_state import CheckpointState


class Lookups(Protocol):
    """What :class:`leader.reader.Reader` answers."""

    def leader(self, job: str, timeout: float = 2.0, *, stale: bool = False) -> Answer:
        """Return who leads the job."""

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        """That leader refused: return who leads, asked of HDFS."""

    def watch(self, job: str, stop: threading.Event, timeout: float = 2.0) -> Iterator[Answer | None]:
        """Yield the leader, then every change."""


class CheckpointLookups(Protocol):
    """What :class:`leader.checkpoint_reader.CheckpointReader` answers."""

    def checkpoint(self, job: str, timeout: float = 2.0) -> "CheckpointState":
        """Return the job's checkpoints."""

    def retained(self, job: str, timeout: float = 2.0) -> "dict[str, list[Checkpoint]]":
        """Return all that HDFS holds of each query."""


class Checkpoints(Protocol):
    """The leader's hand on its checkpoints; :class:`leader.checkpoints.Checkpoints` says what it promises."""

    def state(self) -> "CheckpointState":
        """Read the counter and each query's newest checkpoint."""

    def latest(self, query: str) -> "Checkpoint | None":
        """Read a query's newest checkpoint."""

    def retained(self, query: str) -> "list[Checkpoint]":
        """Read all that are kept of a query."""

    def next(self) -> int:
        """Hand out the next checkpoint id."""

    def set(self, number: int) -> int:
        """Have ids go on from that number."""

    def completed(self, query: str, batch: int, metadata: "Metadata" = ...) -> "CheckpointState":
        """Publish that a query's batch is complete."""


class NoHistory:
    """Records nothing, and puts nothing between those who work: what a process has as a rule."""

    def write(self, event: Event) -> None:
        """Record an event."""

    def ran(self, job: str, epoch: int, *, running: bool) -> None:
        """A command of a leader is being started, or it has ended; so does a block of ``ha.lead``."""

    def leads(self, leads: "Leads") -> "Leads":
        """Return who is to be told about leadership, so that it is recorded."""
        return leads

    def checkpoints(self, job: str, epoch: int, checkpoints: Checkpoints) -> Checkpoints:
        """Return a leader's hand on its checkpoints, so that what it does is recorded."""
        del job, epoch
        return checkpoints

    def lookups(self, reader: Lookups) -> Lookups:
        """Return a reader whose answers are recorded."""
        return reader

    def checkpoint_lookups(self, reader: CheckpointLookups) -> CheckpointLookups:
        """Return a reader of checkpoints whose answers are recorded."""
        return reader

    def close(self) -> None:
        """Record nothing more."""


def open_history(folder: str, name: str) -> NoHistory:
    """Return what records a process's events into a directory; nothing is recorded if that is empty."""
    if not folder:
        return NoHistory()
    from ha.history.recorder import Recorder  # noqa: PLC0415  # only who records pays for it

    return Recorder(folder, name)
