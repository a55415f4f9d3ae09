"""Watch: looks at one job now, after every change that ZooKeeper reports, and from time to time in any case.

While ZooKeeper watches the job, a look asks no store and repeats the last answer. ZooKeeper is asked again once in four
audit intervals, however many looks there are: its watch reports changes, and the audits of HDFS find what it does not.
"""

import logging
import threading
from collections.abc import Iterable, Iterator

from leader.errors import NoLeader, Unreachable
from leader.layout.contact import ContactAddress
from leader.lookup.answers import Answer, Look, Processes, Source
from leader.lookup.job_lookup import JobLookup, NoLeaderByAgent
from leader.lookup.store_clients import ZOOKEEPER_BACK_OFF_S, LookupContext, StoreClients, Waker

SNAPSHOT_PAUSE_S = 0.1
"""Seconds, on average, between two looks at the agent's snapshot, if none is reported."""

AUDITS_PER_QUESTION = 4
"""ZooKeeper is asked at least once in so many audit intervals about a job that it watches."""

SUCCESSOR_PAUSE_S = 0.25
"""Seconds, on average, between two looks after the leader's process has ended; the limits of HDFS hold nevertheless."""

UNANSWERED_PAUSE_S = 1.25 * ZOOKEEPER_BACK_OFF_S
"""Seconds, on average, until the next look if ZooKeeper did not answer, so that its watch may not be set. It is never
before the back-off of ZooKeeper has ended."""

POLLS_WITHOUT_ZOOKEEPER = 4
"""Polls between two looks while there is no connection to ZooKeeper."""

STOP_CHECK_S = 0.5
"""Seconds between two looks at the event that ends the watch."""

_log = logging.getLogger(__name__)


class Watch:
    """One thread's watch of one job."""

    def __init__(
        self,
        lookup: JobLookup,
        stores: StoreClients,
        context: LookupContext,
        stop: threading.Event,
        timeout: float,
        every: float,
        processes: Processes | None = None,
    ) -> None:
        """Look at nothing yet; for the arguments see :meth:`leader.lookup.reader.Reader.looks`."""
        self._lookup = lookup
        self._stores = stores
        self._context = context
        self._clock = context.clock
        self._stop = stop
        self._timeout = timeout
        self._every = every
        self._processes = processes
        self._followed: ContactAddress | None = None
        """The process that is followed now."""
        self._changed = threading.Event()
        self._waker = Waker(self._changed)
        self._watched_until: float | None = None
        """Boot-clock seconds until which ZooKeeper's watch replaces a question; None while no watch is set."""
        self._told_by_agent = False
        """Whether the last question was answered by the host's agent."""

    def looks(self) -> Iterator[Look]:
        """Yield the outcome of each look, until the watch is stopped."""
        self._stores.add_listener(self._waker)
        self._lookup.subscribe(self._changed)
        try:
            while not self._stop.is_set():
                look = self._look()
                self._follow_leader()
                yield look
                self._wait(look)
        finally:
            self._follow(None)
            self._lookup.unsubscribe(self._changed)
            self._stores.remove_listener(self._waker)

    def _look(self) -> Look:
        started = self._clock.now()
        if self._changed.is_set() or self._watched_until is None or started >= self._watched_until:
            return self._ask(started)
        self._told_by_agent = False
        answer = self._lookup.answer_of_watch(started)
        return Look(started, answer, reached=True, known=self._lookup.known)

    def _ask(self, started: float) -> Look:
        """Ask the agent or the stores, and renew ZooKeeper's watch."""
        self._changed.clear()
        self._watched_until = None
        self._told_by_agent = False
        answer, reached = None, True
        try:
            answer = self._lookup.look(self._timeout, self._waker)
            self._told_by_agent = answer.source is Source.SNAPSHOT
            if answer.source is Source.ZOOKEEPER and self._stores.connected and self._lookup.relies_on_zookeeper:
                pause = self._context.jitter.around(self._context.audit * AUDITS_PER_QUESTION)
                self._watched_until = started + pause
        except NoLeader as error:
            self._told_by_agent = isinstance(error, NoLeaderByAgent)
        except Unreachable as error:
            _log.info("%s", error)
            reached = False
        return Look(started, answer, reached, self._lookup.known)

    # --- the leader's process

    def _follow_leader(self) -> None:
        """Follow the leader's process while ZooKeeper would not report its end, and no agent does."""
        away = not self._stores.connected and not self._told_by_agent
        self._follow(self._lookup.contact if away else None)

    def _follow(self, contact: ContactAddress | None) -> None:
        if self._processes is None or contact == self._followed:
            return
        if self._followed is not None:
            self._processes.leave(self._followed, self._on_gone)
        if contact is not None:
            self._processes.follow(contact, self._on_gone)
        self._followed = contact

    def _on_gone(self, contact: ContactAddress) -> None:
        self._lookup.process_gone(contact)
        self._changed.set()

    def _wait(self, look: Look) -> None:
        """Wait for a change, or until it is time for the next look."""
        if not look.reached:
            self._clock.wait(self._changed, self._context.timing.poll)
            return
        end = self._clock.now() + self._context.jitter.around(min(self._every, self._pause()))
        while not self._stop.is_set() and (rest := end - self._clock.now()) > 0:
            if self._clock.wait(self._changed, min(rest, STOP_CHECK_S)):
                return

    def _pause(self) -> float:
        """Return the seconds until the next look, unless a change or a caller brings it forward."""
        if self._told_by_agent:
            return SNAPSHOT_PAUSE_S
        if self._lookup.expects_successor:
            return SUCCESSOR_PAUSE_S
        pause = self._context.audit
        if not self._stores.connected:
            pause = POLLS_WITHOUT_ZOOKEEPER * self._context.timing.poll
        elif self._lookup.watch_unanswered:
            pause = UNANSWERED_PAUSE_S
        pause = min(pause, self._lookup.verification_in)
        return pause if self._watched_until is None else min(pause, self._lookup.audit_in)


def changes(looks: Iterable[Look]) -> Iterator[Answer | None]:
    """Yield the first answer, then every true change; None means no leader. Looks that reach no store are skipped."""
    last: tuple[object, ...] | None = None
    for look in looks:
        answer = look.answer
        version = (answer.epoch, answer.session_id, dict(answer.endpoints)) if answer else (None,)
        if look.reached and version != last:
            last = version
            yield answer
