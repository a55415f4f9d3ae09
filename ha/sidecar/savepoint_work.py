"""SavepointWork: a savepoint that is taken, or copied into the job, on a thread of its own, one at a time.

The sidecar does this work, not the driver: a driver that hangs, or has ended, can be saved as well, no batch waits for
a copy, and a program needs no code for it. The sidecar itself goes on meanwhile; it hears of the end.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from ha.config.stores import Stores
from ha.spark.savepoints.manifest import Manifest
from ha.spark.savepoints.restoring import restored, stage
from ha.spark.savepoints.taking import Wanted, take
from leader.errors import LeaderError
from leader.job.fenced_directory import FencedDirectory
from store.clock import now
from store.errors import StoreError

TELL_S = 2.0
"""Seconds between two reports of the progress: each costs the NameNode some eight requests."""

_log = logging.getLogger("ha")


@dataclass(frozen=True, slots=True)
class Restore:
    """A savepoint that a job is to start from.

    Attributes:
        where: its URI, or the name of one of the job's own.
        discard_newer: whether what the job has done since may go to its trash.
        once: whether a job that has been started from there goes on from where it is.
    """

    where: str
    discard_newer: bool = False
    once: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the work has ended: with a savepoint, or with a reason why there is none."""

    manifest: Manifest | None
    error: str = ""


class _Over(Exception):
    """The work is to end; the text says why."""


class _Work:
    """One piece of work."""

    def __init__(self, timeout: float, leads: Callable[[], bool], tell: Callable[[str], object], then: "Then") -> None:
        self._timeout, self._leads, self._tell, self.then = timeout, leads, tell, then
        self.over = threading.Event()
        self.outcome: Outcome | None = None
        self._said = ""
        self._by, self._tell_at = now() + timeout, now() + TELL_S

    def go_on(self) -> None:
        """End the work if it is to go on no more."""
        if self.over.is_set() or not self._leads():
            raise _Over("The leadership has ended meanwhile.")
        if now() >= self._by:
            raise _Over(f"It was not complete within {self._timeout:g} s. {self._said}".rstrip())

    def told(self, said: str) -> None:
        """Note how far it has come, and tell it from time to time."""
        self._said = said
        if now() >= self._tell_at:
            self._tell_at = now() + TELL_S
            self._tell(said)


Then = Callable[[Outcome], object]


class SavepointWork:
    """The work of one sidecar. Its methods are called on the sidecar's thread."""

    def __init__(self, stores: Stores, job: str, leads: Callable[[], bool], ended: Callable[[], object]) -> None:
        """Do nothing yet.

        Args:
            stores: of the sidecar.
            job: its job.
            leads: whether the sidecar leads now.
            ended: called, on the thread of the work, when it has ended; it has :meth:`woken` called.
        """
        self._stores, self._job, self._leads, self._ended = stores, job, leads, ended
        self._present: _Work | None = None

    def take(
        self, directory: FencedDirectory, wanted: Wanted, timeout: float, tell: Callable[[str], object], then: Then
    ) -> None:
        """Begin to take a savepoint.

        Args:
            directory: the leader directory.
            wanted: what is asked for.
            timeout: seconds after which it is given up.
            tell: called from time to time with how far it has come, on the thread of the work.
            then: called by :meth:`woken` with how it has ended.
        """
        work = _Work(timeout, self._leads, tell, then)
        self._begin(work, lambda: take(self._stores, directory, wanted, work.go_on, work.told))

    def stage(self, directory: FencedDirectory, restore: Restore, tell: Callable[[str], object], then: Then) -> None:
        """Begin to copy a savepoint into the job; without a manifest it has been started from there before.

        Args:
            directory: the leader directory.
            restore: the savepoint.
            tell: as for :meth:`take`.
            then: likewise.
        """
        work = _Work(float("inf"), self._leads, tell, then)

        def run() -> Manifest | None:
            if restore.once and restored(directory, restore.where):
                return None
            discard = restore.discard_newer
            return stage(self._stores, directory, restore.where, work.go_on, work.told, discard_newer=discard)

        self._begin(work, run)

    @property
    def busy(self) -> bool:
        """Whether there is any."""
        return self._present is not None

    def abandon(self) -> None:
        """Have the present work end soon; nothing follows it."""
        if self._present is not None:
            self._present.over.set()
            self._present = None

    def woken(self) -> None:
        """Do what follows the work if that has ended."""
        work = self._present
        if work is not None and work.outcome is not None:
            self._present = None
            work.then(work.outcome)

    def _begin(self, work: "_Work", action: Callable[[], Manifest | None]) -> None:
        assert self._present is None, "one at a time"
        self._present = work

        def run() -> None:
            work.outcome = self._run(action)
            self._ended()

        threading.Thread(target=run, name="ha-savepoint", daemon=True).start()

    def _run(self, work: Callable[[], Manifest | None]) -> Outcome:
        if find_spec("pyarrow") is None:
            return Outcome(None, "The leader's host cannot copy checkpoints: pip install 'hybrid-ha[spark]' there.")
        try:
            return Outcome(work())
        except (_Over, LeaderError, StoreError) as error:
            return Outcome(None, str(error))
        except Exception as error:  # noqa: BLE001  # the sidecar goes on, and somebody waits for the answer
            _log.exception("%s: a savepoint has failed.", self._job)
            return Outcome(None, f"{type(error).__name__}: {error}")
