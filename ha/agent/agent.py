"""The agent of a host: keeps jobs warm for its processes, and writes the stores' answers as snapshots.

Every ``ha host agent``, ``ha host daemon`` and ``ha run`` has one. One of those with the same stores writes. The others
wait to take its place, and pass it the jobs that they were given.
"""

import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from ha.agent.finder import WANTED_EVERY, leave_mark
from ha.agent.snapshots import SnapshotWriter
from ha.agent.warmer import Subscriptions, Warmer
from ha.config.snapshot_dir import SnapshotDirectory, open_directory
from ha.listening.throttle import Outage
from leader.lookup.answers import Look, Looks, Snapshot
from leader.lookup.rate_limit import JOB_PAUSE_S
from store.clock import now

LOOKS_PER_FRESHNESS = 3  # a snapshot is replaced twice before it runs out

LEAST_PAUSE = 0.05
"""Seconds between two looks at a job at least. If a snapshot is fresh for less, there is none now and then."""

ASKS_WITHIN_S = 0.4
"""Seconds within which an agent that is awake has asked HDFS who leads, once the limits allow the next question."""

SCAN_EVERY_S = 0.05  # seconds between two scans for the marks of other processes

LOCK_EVERY_S = 1.0
"""Seconds between two tries to become the agent that writes. Every sidecar of a host tries that for all its life."""

THREAD_ENDS_S = 2.0  # seconds that :meth:`Agent.close` waits for the agent's thread

_log = logging.getLogger("ha")


class Agent:
    """One process's agent. It works on its own threads."""

    def __init__(
        self,
        reader: Looks,
        place: SnapshotDirectory | None,
        named: Iterable[str],
        *,
        audit: float,
        fresh: float,
    ) -> None:
        """Prepare."""
        # `reader`: asks the stores. `place`: where the snapshots lie; None to write none. `named`: jobs that are kept
        # warm even if no process asks for them. `audit`: seconds after which the reader compares what ZooKeeper says
        # with HDFS; written into each snapshot. `fresh`: seconds for which a snapshot may be used.
        self._place = place
        self._named = frozenset(named)
        self._audit = audit
        self.fresh = fresh
        self.http = ""
        """Where the HTTP API answers; written into the directory for people."""
        self.subscriptions = Subscriptions()
        self._writer: SnapshotWriter | None = None
        self._writing = threading.Lock()
        self._outage = Outage(_log, lambda: f"Writing snapshots in {place.path if place else ''}")
        self._said = False
        self._stop = threading.Event()
        self.warmer = Warmer(reader, max(LEAST_PAUSE, fresh / LOOKS_PER_FRESHNESS), self._looked)
        self._thread = threading.Thread(target=self._run, name="ha-agent", daemon=True)

    @property
    def writes(self) -> bool:
        """Whether this process writes the snapshots of its host."""
        return self._writer is not None

    def latest(self, job: str) -> Look | None:
        """Return the last look at the job, unless it is older than a snapshot may be."""
        look = self.warmer.latest(job)
        return look if look is not None and now() < look.started + self.fresh else None

    def start(self) -> None:
        """Start the agent's thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop, and remove what was written."""
        self._stop.set()
        self.warmer.close()
        if self._thread.is_alive():
            self._thread.join(THREAD_ENDS_S)

    # --- snapshots

    def _looked(self, job: str, look: Look) -> None:
        if look.reached:
            self._write(job, look)
            self.subscriptions.notify(job)

    def _write(self, job: str, look: Look) -> None:
        snapshot = snapshot_of(job, look, self.fresh)
        with self._the_writer() as writer:
            if writer is not None and self.warmer.keeps(job):  # otherwise the file of a forgotten job would stay
                writer.write(snapshot)

    # --- the agent that writes

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
                self._stop.wait(SCAN_EVERY_S if self._writer is not None else LOCK_EVERY_S)
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
            self._said = False
            return
        except OSError as error:
            self._outage.fails(error.strerror or error)
            return
        with self._writing:
            self._writer = writer
        for job in self._named:
            self.warmer.want(job)
        for job in self.warmer.jobs:
            look = self.warmer.latest(job)
            if look is not None:
                self._write(job, look)

    def _beat(self, good_until: float) -> None:
        with self._the_writer() as writer:
            if writer is not None:
                writer.beat(good_until, self.http)
                self._works()

    def _works(self) -> None:
        self._outage.works()
        if not self._said and self._place is not None and not self._outage.lasts:
            self._said = True
            _log.info("This process answers lookups of this host, in %s.", self._place.path)

    def _scan(self) -> None:
        wanted: list[str] = []
        with self._the_writer() as writer:
            wanted = list(writer.wanted()) if writer is not None else []
        for job in wanted:
            self.warmer.want(job)

    def _forget(self) -> None:
        for job in self._named if self._writer is not None else ():
            self.warmer.want(job)
        for job in self.warmer.forget():
            with self._writing, suppress(OSError):
                if self._writer is not None:
                    self._writer.remove(job)

    def _leave_marks(self) -> None:
        """Ask the agent that writes to keep the jobs that this process was given."""
        if self._place is None:
            return
        with suppress(OSError):
            directory = open_directory(self._place)
            for job in self._named:
                leave_mark(directory, job)

    @contextmanager
    def _the_writer(self) -> Iterator[SnapshotWriter | None]:
        """Give the writer, if there is one, to one thread. One that fails is closed: its lock is taken again later."""
        with self._writing:
            try:
                yield self._writer
            except OSError as error:
                assert self._writer is not None, "only the agent that writes can fail to"
                self._writer.close()
                self._writer = None
                self._outage.fails(error.strerror or error)


def snapshot_of(job: str, look: Look, fresh: float) -> Snapshot:
    """Return a look as a snapshot, which may be used for ``fresh`` seconds from the beginning of the look."""
    known, good_until = look.known, look.started + fresh
    if look.answer is None:  # that repeats what HDFS said last, and is soon wrong
        good_until = min(good_until, look.asked + JOB_PAUSE_S + ASKS_WITHIN_S)
    if known is None or known.epoch == 0:
        return Snapshot(job, 0, "", None, look.started, good_until, verified=known is not None)
    information = known.information if look.answer is not None else None
    at = known.at if information is not None else look.started
    return Snapshot(job, known.epoch, known.session_id, information, at, good_until, known.verified)
