"""The agent of a host: keeps the jobs warm that its processes ask for, and writes what it is told as snapshots.

Every ``ha agent``, ``ha daemon`` and ``ha run`` has one. Of those that ask the same stores one writes; the others wait
to take its place, and have it keep the jobs that they were given.
"""

import logging
import threading
from collections.abc import Iterable
from contextlib import suppress

from ha.agent.bulletin import Bulletin
from ha.agent.finding import WANTED_EVERY, leave_mark
from ha.agent.place import Place, open_directory
from ha.agent.warm import Looks, Warm
from ha.agent.writing import SnapshotWriter
from leader.answers import Look
from leader.snapshot import Snapshot
from store.clock import now

LOOKS_PER_FRESHNESS = 3
"""So that a snapshot is replaced twice before it runs out."""

LEAST_PAUSE = 0.05
"""Seconds between two looks at a job, however short a snapshot is fresh: then there is none now and then."""

SCAN = 0.05
"""Seconds between two looks at what other processes ask for."""

LOCK_AGAIN = 1.0
"""Seconds between two tries to become the one that writes."""

STOP_WITHIN = 2.0

_log = logging.getLogger("ha")


class Agent:
    """One process's part in it; works on threads of its own."""

    def __init__(
        self, reader: Looks, place: Place | None, named: Iterable[str], *, audit: float, fresh: float, http: str = ""
    ) -> None:
        """Prepare.

        Args:
            reader: asks the stores.
            place: where the snapshots lie; None to write none.
            named: jobs that are kept warm whether anybody asks or not.
            audit: seconds after which the reader compares what ZooKeeper says with HDFS; written into each snapshot.
            fresh: seconds for which a snapshot may be used.
            http: where the HTTP API answers, for whoever looks into the directory.
        """
        self._place = place
        self._named = frozenset(named)
        self._audit = audit
        self.fresh = fresh
        self.http = http
        self.bulletin = Bulletin()
        self._writer: SnapshotWriter | None = None
        self._writing = threading.Lock()
        self._complained = ""
        self._stop = threading.Event()
        self.warm = Warm(reader, max(LEAST_PAUSE, fresh / LOOKS_PER_FRESHNESS), self._told)
        self._thread = threading.Thread(target=self._run, name="ha-agent", daemon=True)

    @property
    def writes(self) -> bool:
        """Whether this process is the one that writes."""
        return self._writer is not None

    def latest(self, job: str) -> Look | None:
        """What was found of the job, unless that is older than a snapshot may be."""
        look = self.warm.latest(job)
        return look if look is not None and now() < look.started + self.fresh else None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Write nothing more, and take away what was written."""
        self._stop.set()
        self.warm.close()
        if self._thread.is_alive():
            self._thread.join(STOP_WITHIN)

    # --- what was found

    def _told(self, job: str, look: Look) -> None:
        if look.reached:
            self._write(job, look)
            self.bulletin.tell(job)

    def _write(self, job: str, look: Look) -> None:
        snapshot = snapshot_of(job, look, self.fresh)
        with self._writing:
            if self._writer is not None and self.warm.keeps(job):  # or its file would stay when it was forgotten
                try:
                    self._writer.write(snapshot)
                except OSError as error:
                    self._let_go(error)

    # --- the one that writes

    def _run(self) -> None:
        beat_at = mark_at = forget_at = float("-inf")
        try:
            while not self._stop.is_set():
                at = now()
                if at >= forget_at:
                    forget_at = at + WANTED_EVERY
                    self._forget()
                if self._writer is None:
                    self._try_to_write()
                    beat_at = float("-inf")
                if self._writer is not None:
                    if at >= beat_at:
                        beat_at = at + self.fresh / LOOKS_PER_FRESHNESS
                        self._beat(at + self.fresh)
                    self._scan()
                elif at >= mark_at:
                    mark_at = at + WANTED_EVERY
                    self._leave_marks()
                self._stop.wait(SCAN if self._writer is not None else LOCK_AGAIN)
        finally:
            with self._writing:
                if self._writer is not None:
                    self._writer.close()
                    self._writer = None

    def _try_to_write(self) -> None:
        if self._place is None:
            return
        try:
            writer = SnapshotWriter(self._place, self._audit)
        except BlockingIOError:
            self._complained = ""
            return
        except OSError as error:
            self._complain(error)
            return
        self._complained = ""
        with self._writing:
            self._writer = writer
        _log.info("This process answers lookups of this host, in %s.", self._place.path)
        for job in self._named:
            self.warm.want(job)
        for job in self.warm.jobs:
            look = self.warm.latest(job)
            if look is not None:
                self._write(job, look)

    def _beat(self, good_until: float) -> None:
        with self._writing:
            if self._writer is not None:
                try:
                    self._writer.beat(good_until, self.http)
                except OSError as error:
                    self._let_go(error)

    def _scan(self) -> None:
        with self._writing:
            try:
                wanted = list(self._writer.wanted()) if self._writer is not None else []
            except OSError as error:
                self._let_go(error)
                return
        for job in wanted:
            self.warm.want(job)

    def _forget(self) -> None:
        for job in self._named if self._writer is not None else ():
            self.warm.want(job)
        for job in self.warm.forget():
            with self._writing:
                if self._writer is not None:
                    with suppress(OSError):
                        self._writer.remove(job)

    def _leave_marks(self) -> None:
        """Have the one that writes keep what this process was given."""
        if self._place is None:
            return
        with suppress(OSError):
            directory = open_directory(self._place)
            for job in self._named:
                leave_mark(directory, job)

    def _let_go(self, error: OSError) -> None:
        """Begin anew, with the directory and the lock; called with the lock of the writer held."""
        assert self._writer is not None, "only who writes can fail to"
        self._writer.close()
        self._writer = None
        self._complain(error)

    def _complain(self, error: OSError) -> None:
        sentence = f"{error.strerror or error}"
        if sentence != self._complained:
            self._complained = sentence
            place = self._place.path if self._place is not None else ""
            _log.warning("This process writes no snapshots in %s (%s); it will try again.", place, sentence)


def snapshot_of(job: str, look: Look, fresh: float) -> Snapshot:
    """What a look at the stores has found, as it may be passed on: for ``fresh`` seconds from before it was begun."""
    known, good_until = look.known, look.started + fresh
    if known is None or known.epoch == 0:
        return Snapshot(job, 0, "", None, look.started, good_until, verified=known is not None)
    information = known.information if look.answer is not None else None
    at = known.at if information is not None else look.started
    return Snapshot(job, known.epoch, known.session_id, information, at, good_until, known.verified)
