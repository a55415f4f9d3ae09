"""ObservedReader: a reader that tells an observer how each lookup ended."""

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from leader.errors import NoLeader, Unreachable
from leader.lookup.answers import Answer, Look, Lookups
from leader.observer import Observer
from store.clock import now

if TYPE_CHECKING:
    from leader.layout.checkpoint_state import CheckpointState  # most programs that look up a leader do not need it


class LookupEnded(msgspec.Struct, frozen=True):
    """A lookup has ended, or a watch has yielded."""

    started: float  # boot-clock seconds; of a watch, when it began to wait for this answer
    ended: float  # boot-clock seconds
    timeout: float | None  # seconds it was given; None for a watch, which may wait as long as it likes
    answer: Answer | None  # none if there is no leader, or no store answered
    reached: bool = True  # whether a store answered


class CheckpointsRead(msgspec.Struct, frozen=True):
    """A checkpoint reader that was asked at ``started`` has now answered ``state``."""

    started: float
    state: "CheckpointState"


def observed(reader: Lookups, observer: Observer | None) -> Lookups:
    """Return the reader, wrapped if there is an observer."""
    return ObservedReader(reader, observer) if observer is not None else reader


class ObservedReader:
    """Answers as its reader does. The observer learns of no errors but ``NoLeader`` and ``Unreachable``."""

    def __init__(self, reader: Lookups, observer: Observer) -> None:
        self._reader = reader
        self._observe = observer

    def leader(self, job: str, timeout: float = 2.0, *, stale: bool = False) -> Answer:
        """See :meth:`leader.lookup.reader.Reader.leader`."""
        return self._told(job, timeout, lambda: self._reader.leader(job, timeout, stale=stale))

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        """See :meth:`leader.lookup.reader.Reader.report`."""
        return self._told(job, timeout, lambda: self._reader.report(job, session_id, timeout))

    def watch(self, job: str, stop: threading.Event, timeout: float = 2.0) -> Iterator[Answer | None]:
        """See :meth:`leader.lookup.reader.Reader.watch`."""
        started = now()
        for answer in self._reader.watch(job, stop, timeout):
            self._observe(job, LookupEnded(started, now(), None, answer))
            yield answer
            started = now()

    def looks(
        self, job: str, stop: threading.Event, timeout: float = 2.0, *, every: float = float("inf")
    ) -> Iterator[Look]:
        """See :meth:`leader.lookup.reader.Reader.looks`."""
        for look in self._reader.looks(job, stop, timeout, every=every):
            self._observe(job, look)
            yield look

    def _told(self, job: str, timeout: float, look: Callable[[], Answer]) -> Answer:
        started = now()
        try:
            answer = look()
        except (NoLeader, Unreachable) as error:
            self._observe(job, LookupEnded(started, now(), timeout, None, isinstance(error, NoLeader)))
            raise
        self._observe(job, LookupEnded(started, now(), timeout, answer))
        return answer
