"""SavepointWork: a savepoint that is taken, or copied into the job, on a thread of its own, one at a time.

The sidecar does this work, not the driver: a driver that hangs, or has ended, can be saved as well, no batch waits for
a copy, and a program needs no code for it. The sidecar itself works on meanwhile; an event tells it of the end.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import msgspec

from ha.config.stores import Stores
from ha.hosts.crew import Crew
from ha.sidecar.machine.sidecar_events import SavepointEnded
from ha.spark.savepoints.restoring import restored, stage
from ha.spark.savepoints.taking import WantedSavepoint, take
from ha.verbs.places import DISCARD, FROM, PARTIAL, TIMEOUT, TIMEOUT_S, TO
from leader.errors import LeaderError
from leader.job.fenced_directory import FencedDirectory
from leader.job.request_folder import Request
from store.clock import now
from store.errors import StoreError

TELL_S = 2.0  # seconds between two reports of the progress: each costs the NameNode some eight requests
Tell = Callable[[str], object]

_log = logging.getLogger("ha")


@dataclass(frozen=True, slots=True)
class Restore:
    """A savepoint that a job is to start from."""

    where: str  # its URI, or the name of one of the job's own
    discard_newer: bool = False  # whether what the job has done since may go to its trash
    once: bool = False  # whether a job that has been started from there resumes from where it is


class _Over(Exception):
    """The work is to end; the text says why."""


class _Work:
    """One piece of work."""

    def __init__(self, timeout: float, leads: Callable[[], bool], tell: Tell) -> None:
        self._timeout, self._leads, self._tell = timeout, leads, tell
        self.over = threading.Event()
        self._said = ""
        self._by, self._tell_at = now() + timeout, now() + TELL_S

    def go_on(self) -> None:
        """End the work if it is to end."""
        if self.over.is_set() or not self._leads():
            raise _Over("The leadership has ended meanwhile.")
        if now() >= self._by:
            raise _Over(f"It was not complete within {self._timeout:g} s. {self._said}".rstrip())

    def told(self, said: str) -> None:
        """Note how far it has come, and report it from time to time."""
        self._said = said
        if now() >= self._tell_at and not self.over.is_set():
            self._tell_at = now() + TELL_S
            self._tell(said)


class SavepointWork:
    """The work of one sidecar. Its methods return at once; the end comes as :class:`SavepointEnded`."""

    def __init__(
        self, stores: Stores, job: str, leads: Callable[[], bool], post: Callable[[SavepointEnded], object], crew: Crew
    ) -> None:
        """Do nothing yet; ``leads`` says whether the sidecar leads now, ``post`` gets the end, on the work's thread."""
        self._crew = crew
        self._stores, self._job, self._leads, self._post = stores, job, leads, post
        self._present: _Work | None = None

    def take(self, number: int, directory: FencedDirectory, request: Request, tell: Tell, *, stopped: bool) -> None:
        """Begin to take a savepoint for a request; ``stopped`` if the job was stopped for it."""
        # `tell` is called from time to time with how far it has come, on the thread of the work.
        where, partial = request.arguments.get(TO, "") or request.id, bool(request.arguments.get(PARTIAL))
        wanted = WantedSavepoint(request.id, where, request.by, stopped=stopped, partial=partial)
        work = _Work(float(request.arguments.get(TIMEOUT, TIMEOUT_S)), self._leads, tell)

        def run() -> SavepointEnded:
            manifest = take(self._stores, directory, wanted, work.go_on, work.told)
            elsewhere = manifest.bound(where) if "://" in where else []
            said = " ".join(f"{each}." for each in (f"Savepoint {where}: {manifest.said}", *elsewhere))
            return SavepointEnded(number, said, {"savepoint": where, **msgspec.to_builtins(manifest)})

        self._begin(number, work, run)

    def stage(self, number: int, directory: FencedDirectory, restore: Restore, tell: Tell) -> None:
        """Begin to copy a savepoint into the job; arguments as of :meth:`take`."""
        work = _Work(float("inf"), self._leads, tell)

        def run() -> SavepointEnded:
            if restore.once and restored(directory, restore.where):
                return SavepointEnded(number, known=True)
            discard = restore.discard_newer
            found = stage(self._stores, directory, restore.where, work.go_on, work.told, discard_newer=discard)
            return SavepointEnded(number, f"It goes on from savepoint {found.id}: {found.said}.")

        self._begin(number, work, run)

    def stage_for(self, number: int, directory: FencedDirectory, request: Request, tell: Tell) -> None:
        """Begin to copy the savepoint that a request names."""
        restore = Restore(request.arguments.get(FROM, ""), bool(request.arguments.get(DISCARD)))
        self.stage(number, directory, restore, tell)

    def abandon(self) -> None:
        """Have the present work end soon."""
        if self._present is not None:
            self._present.over.set()
            self._present = None

    def _begin(self, number: int, work: _Work, action: Callable[[], SavepointEnded]) -> None:
        self._present = work
        self._crew(lambda: self._post(self._run(number, action)))

    def _run(self, number: int, action: Callable[[], SavepointEnded]) -> SavepointEnded:
        if find_spec("pyarrow") is None:
            said = "The leader's host cannot copy checkpoints: pip install 'hybrid-ha[spark]' there."
            return SavepointEnded(number, error=said)
        try:
            return action()
        except (_Over, LeaderError, StoreError) as error:
            return SavepointEnded(number, error=str(error))
        except Exception as error:  # noqa: BLE001  # the sidecar goes on, and somebody waits for the answer
            _log.exception("%s: a savepoint has failed.", self._job)
            return SavepointEnded(number, error=f"{type(error).__name__}: {error}")
