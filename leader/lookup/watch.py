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
from leader.lookup.rate_limit import JOB_PAUSE_S
from leader.lookup.store_clients import ZOOKEEPER_BACK_OFF_S, LookupContext, StoreClients, Waker
from leader.timing import NEVER

SNAPSHOT_PAUSE_S = 0.1  # seconds, on average, between two looks at the agent's snapshot, if none is reported
AUDITS_PER_QUESTION = 4  # ZooKeeper is asked at least once in so many audit intervals about a job that it watches
SUCCESSOR_PAUSE_S = 0.25  # seconds, on average, between two looks after the leader's process has ended

# Until the next look if ZooKeeper did not answer: never before its back-off has ended.
UNANSWERED_PAUSE_S = 1.25 * ZOOKEEPER_BACK_OFF_S

POLLS_WITHOUT_ZOOKEEPER = 4  # polls between two looks while there is no connection to ZooKeeper
STOP_CHECK_S = 0.5  # seconds between two looks at the event that ends the watch

SLEPT_S = 2 * STOP_CHECK_S
"""Seconds without a look at the clock that mean sleep: ZooKeeper's session may be lost; silence proves nothing."""

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
        self._followed: ContactAddress | None = None  # the process that is followed now
        self._changed = threading.Event()
        self._waker = Waker(self._changed)
        self._watched_until: float | None = None  # until then, a watch replaces a question; None without a watch
        self._awake_at = self._clock.now()  # boot-clock seconds when the watch last saw its clock
        self._told_by_agent = False  # whether the last question was answered by the host's agent

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
        slept, started = self._has_slept(), self._awake_at
        if slept or self._changed.is_set() or self._watched_until is None or started >= self._watched_until:
            return self._ask(started)
        if (answer := self._lookup.answer_of_watch(started)) is None:
            return self._ask(started)
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
        self._awake_at = self._clock.now()
        return Look(started, answer, reached, self._lookup.known, self._lookup.asked_at)

    def _has_slept(self) -> bool:
        before, self._awake_at = self._awake_at, self._clock.now()
        if self._awake_at - before < SLEPT_S:
            return False
        self._watched_until = None
        return True

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
        if not look.reached:
            self._clock.wait(self._changed, self._context.timing.poll)
            return
        pause = self._context.jitter.around(min(self._every, self._pause()))
        if look.answer is None and self._every < NEVER:  # an agent replaces that when HDFS can be asked again
            again = look.asked + JOB_PAUSE_S - self._clock.now()
            pause = min(pause, max(again, self._context.jitter.around(SUCCESSOR_PAUSE_S)))
        end = self._clock.now() + pause
        while not self._stop.is_set() and (rest := end - self._clock.now()) > 0:
            if self._clock.wait(self._changed, min(rest, STOP_CHECK_S)) or self._has_slept():
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
