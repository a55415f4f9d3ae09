"""History: where a process records its part in the protocol. By default it records nothing.

Small to import: Python workers that only look something up have it, too.
"""

from ha.history.events import Event
from leader.observer import Observer


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


def open_history(folder: str, name: str) -> History:
    """Return the history of a contender, or of a process that looks up; without a folder nothing is recorded."""
    if not folder:
        return History()
    from ha.history.recorder import Recorder  # noqa: PLC0415  # only a process that records pays for it

    return Recorder(folder, name)
