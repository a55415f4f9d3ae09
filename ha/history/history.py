"""History: where a process records its part in the protocol. By default it records nothing.

Small to import: Python workers that only look something up have it, too.
"""

from typing import Protocol

from ha.history.events import Event
from leader.observer import Observer


class History(Protocol):
    """Observes a process's contender, its checkpoints and its readers, and writes events."""

    @property
    def observer(self) -> Observer | None:
        """Records leaderships and checkpoints; None if nothing is recorded."""

    def reader(self) -> Observer | None:
        """Return an observer that records one reader's answers under its own name; None if nothing is recorded."""

    def ran(self, job: str, epoch: int, *, running: bool) -> None:
        """Record that a leader's command, or a block of ``ha.lead``, is being started or has ended."""

    def write(self, event: Event) -> None:
        """Record an event."""

    def close(self) -> None:
        """Record nothing more."""


class NullHistory:
    """Records nothing: the history of a process by default."""

    observer: Observer | None = None

    def reader(self) -> Observer | None:
        """Return None."""
        return None

    def ran(self, job: str, epoch: int, *, running: bool) -> None:
        """Record nothing."""

    def write(self, event: Event) -> None:
        """Record nothing."""

    def close(self) -> None:
        """Nothing is open."""


def open_history(folder: str, name: str) -> History:
    """Return the history of a contender, or of a process that looks up; without a folder nothing is recorded."""
    if not folder:
        return NullHistory()
    from ha.history.recorder import Recorder  # noqa: PLC0415  # only a process that records pays for it

    return Recorder(folder, name)
