"""Lookups: who leads a job, asked of the host's agent first, then of ZooKeeper, and of HDFS when that will not do.

Bounded in time. Of several threads that find no snapshot, one asks the stores, and the others take what it learns.
"""

import logging
import os
import random
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from leader.answers import Answer, Look
from leader.errors import NoLeader, Unreachable
from leader.lookup import PAUSE, Lookup, nobody
from leader.names import check_job
from leader.retrieval import Source
from leader.snapshot import Snapshots
from leader.sources import SULK, Sources, Waker
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock
from store.zookeeper import ZooKeeper

FILES_PAUSE = 0.5
"""Seconds, on average, between two questions to HDFS while there is no leader."""

AGENT_SHARE = 0.2
"""Of a lookup's time for the host's agent to answer for a job that nobody has asked it about lately."""

AGENT_PATIENCE = 0.3
"""Seconds at most for the same."""

SNAPSHOT_PAUSE = 0.1
"""Seconds, on average, between two looks of a watch at the agent's snapshot."""

WATCHED = 2
"""So many times in an audit interval ZooKeeper is asked at least about a job that it watches for us."""

UNANSWERED = 1.25 * SULK
"""Seconds, on average, until a watch looks again that ZooKeeper did not answer: it may not be set. Never before
ZooKeeper is asked again at all."""

STRANGERS = 1024
"""Names of jobs, asked for lately, of which nothing is known: what is kept of them. All others' memory is that of jobs
that exist."""

_log = logging.getLogger(__name__)


class Reader:
    """Answers lookups for any number of jobs, from any thread; a forked child may go on using it."""

    def __init__(
        self,
        files: BoundedFiles,
        zookeeper: ZooKeeper | None,
        timing: Timing,
        *,
        audit: float = 30.0,
        snapshots: Snapshots | None = None,
        clock: Clock = BOOT_CLOCK,
        dice: random.Random | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            files: closed by whoever opened it.
            zookeeper: likewise; None if the file system carries everything.
            timing: all durations.
            audit: seconds after which an answer of ZooKeeper is compared with HDFS.
            snapshots: what an agent of this host was told; None to ask the stores themselves always.
            clock: the host's boot clock, unless in a simulation.
            dice: spreads the readers of many hosts over time.
        """
        self._clock = clock
        self.sources = Sources(
            files,
            zookeeper,
            timing,
            audit,
            clock,
            dice or random.Random(),  # noqa: S311  # to spread readers, not to hide anything
        )
        self._snapshots = snapshots
        self._jobs: dict[str, Lookup] = {}
        self._strangers: weakref.WeakValueDictionary[str, Lookup] = weakref.WeakValueDictionary()
        self._lately: deque[Lookup] = deque(maxlen=STRANGERS)
        self._lock = threading.Lock()
        _every.add(self)

    @property
    def fallbacks(self) -> dict[str, int]:
        """How often ZooKeeper would not do, by reason: none, error, no_node, undecodable, mismatch."""
        return self.sources.fallbacks

    def leader(self, job: str, timeout: float = 2.0, *, stale: bool = False) -> Answer:
        """Return who leads the job, within ``timeout`` seconds whatever is down.

        If this reader knew a leader and there is none now, it waits for the next one within its time-out.

        Args:
            job: the job's name.
            timeout: seconds, for all stores together.
            stale: if no store can be reached, return what was known last, marked as stale.

        Raises:
            InvalidName: that is not a job's name.
            NoLeader: the job has no leader now, or does not exist.
            Unreachable: no store answered in time.
        """
        lookup = self._of(check_job(job))
        deadline = self._clock.now() + timeout
        said: NoLeader | None = None
        while True:
            try:
                return self._look(lookup, deadline - self._clock.now(), stale=stale)
            except NoLeader as error:
                pause = PAUSE if isinstance(error, _NobodySaysAgent) else FILES_PAUSE
                if not lookup.led or deadline - self._clock.now() <= pause:
                    lookup.led = False
                    raise
                said = error
                self._clock.sleep(self.sources.spread(pause))
            except Unreachable:
                if said is not None:  # a moment ago a store did say; there was just no time to ask it again
                    raise said from None
                raise

    def told(self, job: str, timeout: float = 2.0) -> Answer | None:
        """Return what an agent of this host was told, without asking any store; None if that is nothing to go by.

        Raises:
            InvalidName, NoLeader: as in :meth:`leader`.
        """
        return self._from_snapshot(self._of(check_job(job)), timeout)

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        """The leader of this session id refused or did not answer: ask HDFS, unless there is another leader by now.

        Raises:
            InvalidName, NoLeader, Unreachable: as in :meth:`leader`.
        """
        deadline = self._clock.now() + timeout
        answer = self.leader(job, timeout)
        if answer.session_id != session_id:
            return answer
        lookup = self._of(job)
        lookup.hurry()
        cause = lookup.ask_files(deadline - self._clock.now())
        if cause is not None:
            raise Unreachable(f"The leader of job {job!r} cannot be verified: {cause}")
        return self.leader(job, deadline - self._clock.now())

    def epoch_is(self, job: str, epoch: int, session_id: str) -> bool:
        """Whether that is the newest epoch this reader knows of the job, or one it knows nothing newer than."""
        known = self._of(check_job(job)).knowledge.known
        return known is None or known.epoch < epoch or (known.epoch, known.session_id) == (epoch, session_id)

    def watch(self, job: str, stop: threading.Event, timeout: float = 2.0) -> Iterator[Answer | None]:
        """Yield the leader, then every true change, with None when there is no leader; until ``stop`` is set.

        While no store can be reached nothing is yielded.
        """
        last: tuple[object, ...] | None = None
        for look in self.looks(job, stop, timeout):
            answer = look.answer
            version = (answer.epoch, answer.session_id, dict(answer.endpoints)) if answer else (None,)
            if look.reached and version != last:
                last = version
                yield answer

    def looks(
        self, job: str, stop: threading.Event, timeout: float = 2.0, *, every: float = float("inf")
    ) -> Iterator[Look]:
        """Look at once, after every change that is heard of, and after ``every`` seconds at the latest.

        Yields what each look found, until ``stop`` is set. While ZooKeeper watches the job for us, it is asked again
        twice in an audit interval, however often that is looked at what it has said.
        """
        lookup = self._of(check_job(job))
        changed = threading.Event()
        watcher = Waker(changed)
        zookeeper = self.sources.zookeeper
        if zookeeper is not None:
            zookeeper.add_listener(watcher)
        ask_again = float("-inf")
        try:
            while not stop.is_set():
                started, answer, reached, by_agent = self._clock.now(), None, True, False
                if changed.is_set() or started >= ask_again:
                    changed.clear()
                    ask_again = float("-inf")
                    try:
                        answer = self._look(lookup, timeout, watcher)
                        by_agent = answer.source is Source.SNAPSHOT
                        if answer.source is Source.ZOOKEEPER and self.sources.connected and not lookup.unanswered:
                            ask_again = started + self.sources.spread(self.sources.audit / WATCHED)
                    except NoLeader as said:
                        by_agent = isinstance(said, _NobodySaysAgent)
                    except Unreachable as error:
                        _log.info("%s", error)
                        reached = False
                else:
                    lookup.watched_at = started
                    lookup.audit_if_due()
                    with suppress(NoLeader):  # HDFS said so at the last audit
                        answer = lookup.answer()
                yield Look(started, answer, reached, lookup.knowledge.known)
                if reached:
                    pause = SNAPSHOT_PAUSE if by_agent else self._pause(lookup)
                    self._wait(changed, stop, min(every, pause, lookup.audit_in if ask_again > started else every))
                else:
                    self._clock.wait(changed, self.sources.timing.poll)
        finally:
            if zookeeper is not None:
                zookeeper.remove_listener(watcher)

    def _pause(self, lookup: Lookup) -> float:
        """Seconds until a watch looks again, unless it is told of a change."""
        if not self.sources.connected:
            return 4 * self.sources.timing.poll
        return UNANSWERED if lookup.unanswered else self.sources.audit

    def _wait(self, changed: threading.Event, stop: threading.Event, interval: float) -> None:
        end = self._clock.now() + self.sources.spread(interval)
        while not stop.is_set() and (rest := end - self._clock.now()) > 0:
            if self._clock.wait(changed, min(rest, 0.5)):
                return

    def _forked(self) -> None:
        self._lock = threading.Lock()
        self.sources.forked()
        for lookup in [*self._jobs.values(), *self._strangers.values()]:
            lookup.forked()

    # --- one look

    def _of(self, job: str) -> Lookup:
        """What is kept of a job: for ever once something is known of it, else for as long as somebody asks."""
        lookup = self._jobs.get(job)
        if lookup is None:
            with self._lock:
                lookup = self._strangers.get(job)
                if lookup is None:
                    lookup = self._strangers[job] = Lookup(job, self.sources)
            self._lately.append(lookup)
        return lookup

    def _look(self, lookup: Lookup, timeout: float, watcher: Waker | None = None, *, stale: bool = False) -> Answer:
        """Ask the agent, else the stores."""
        started = self._clock.now()
        try:
            answer = self._from_snapshot(lookup, timeout)
            if answer is None:
                answer = self._from_stores(lookup, timeout - (self._clock.now() - started), watcher)
        except Unreachable:
            if stale and lookup.knowledge.known is not None:
                return lookup.answer(stale=True)
            raise
        lookup.led = True
        return answer

    def _from_stores(self, lookup: Lookup, timeout: float, watcher: Waker | None) -> Answer:
        try:
            if watcher is not None:  # what a watch asks sets its own watch, so it is asked by itself
                return lookup.look(timeout, watcher)
            return lookup.flight.run(lookup.look, lookup.answer, timeout)
        finally:
            if lookup.exists:
                self._jobs[lookup.job] = lookup

    def _from_snapshot(self, lookup: Lookup, timeout: float) -> Answer | None:
        """Ask the agent; None if there is nothing to be believed, and the stores must be asked."""
        job, snapshots = lookup.job, self._snapshots
        if snapshots is None:
            return None
        snapshot = snapshots.find(job) or snapshots.ask(job, min(AGENT_PATIENCE, timeout * AGENT_SHARE))
        if snapshot is None:
            return None
        heard, known = lookup.heard
        if heard is not snapshot or known is not lookup.knowledge.known:  # else nothing has changed since
            with lookup.lock:
                if not lookup.knowledge.hear_snapshot(snapshot):
                    if lookup.knowledge.doubted_by(snapshot):
                        lookup.audit_soon()
                    return None
                lookup.heard = (snapshot, lookup.knowledge.known)
                if snapshot.information is not None:
                    lookup.exists = True
                    self._jobs[job] = lookup
        if snapshot.information is None:
            raise _NobodySaysAgent(nobody(job, snapshot.epoch))
        return lookup.answer()


class _NobodySaysAgent(NoLeader):
    """An agent of this host was told that nobody leads; to look again costs no store anything."""


_every: "weakref.WeakSet[Reader]" = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(_every):
        each._forked()  # noqa: SLF001 - our own class


os.register_at_fork(after_in_child=_after_fork)
