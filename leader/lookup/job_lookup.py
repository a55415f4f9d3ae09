"""JobLookup: one job's lookup from top to bottom. It asks the host's agent, then ZooKeeper, then HDFS.

All their answers are merged into one :class:`leader.lookup.leader_view.LeaderView`, which gives the lookup's answer.
"""

import threading

import msgspec

from leader.errors import NoLeader, Unreachable
from leader.layout.contact import ContactAddress
from leader.layout.information import LeaderInformation, decode
from leader.lookup.answers import Answer, Known, Snapshot, Snapshots, nobody_leads
from leader.lookup.hdfs_lookup import TOO_OFTEN, HdfsLookup
from leader.lookup.leader_view import LeaderView, Verdict
from leader.lookup.rate_limit import LEAST_ASKED, SPREAD_S, HdfsRateLimit
from leader.lookup.single_flight import SingleFlight
from leader.lookup.store_clients import Candidate, Fallback, LookupContext, StoreClients, Waker
from leader.timing import NEVER

AGENT_SHARE = 0.2
"""The share of a lookup's time in which the agent may find out about a job that nobody has asked it about lately."""

AGENT_PATIENCE_S = 0.3
"""Seconds at most for the same."""

ZOOKEEPER_SHARE = 0.4
"""The share of a lookup's time for ZooKeeper; the rest is left for HDFS."""

VERIFICATION_SHARE = 0.9
"""The share of the rest in which HDFS may confirm a record of ZooKeeper. If it is silent, the record is the answer."""

SUCCESSOR_GRACE_S = 0.3
"""Seconds for which a reader that knew a leader waits for ZooKeeper's next record before it asks HDFS. As a rule a
successor is there sooner, and then a failover costs the NameNode nothing."""

ZOOKEEPER_PAUSE_S = 0.05
"""Seconds, on average, between two looks at a snapshot for a successor; the least in which ZooKeeper is asked."""

HDFS_PAUSE_S = 0.5
"""Seconds, on average, between two looks at HDFS for a successor."""


class NoLeaderByAgent(NoLeader):
    """The host's agent knows that nobody leads; looking again costs no store anything."""


class _TooOften(Unreachable):
    """HDFS answers, but must not be asked now."""


class _State(msgspec.Struct):
    """State that earlier looks leave for later ones.

    The five are independent, and all combinations are legal. The last two cover the time since ZooKeeper last gave a
    record that was believed; such an answer clears both.

    Attributes:
        led: the last look found a leader.
        watch_unanswered: ZooKeeper did not answer a watch's last question, so its watch may not be set.
        unverified: ZooKeeper's last record was not used, because HDFS must not be asked about it yet.
        waited_for_successor: the grace for a successor is used up.
        fell_back: HDFS was asked in ZooKeeper's place.
    """

    led: bool = False
    watch_unanswered: bool = False
    unverified: bool = False
    waited_for_successor: bool = False
    fell_back: bool = False

    def zookeeper_answered(self) -> None:
        self.waited_for_successor = self.fell_back = False


class JobLookup:
    """Looks up one job. Any thread may use it."""

    def __init__(
        self,
        job: str,
        stores: StoreClients,
        limit: HdfsRateLimit,
        verifications: HdfsRateLimit,
        context: LookupContext,
        snapshots: Snapshots | None = None,
    ) -> None:
        """Ask nothing yet; for the arguments see :class:`leader.lookup.reader.Reader`."""
        self.job = job
        self._stores = stores
        self._context = context
        self._clock = context.clock
        self._snapshots = snapshots
        self._lock = threading.Lock()
        self._view = LeaderView()
        self._hdfs = HdfsLookup(job, self._view, self._lock, stores, limit, verifications, context)
        self._flight = SingleFlight(job, context.clock)
        self._verifying = SingleFlight(job, context.clock)
        """Watches ask ZooKeeper themselves, but each of its records is verified once."""
        self._state = _State()
        self._watch_relied_on_at = float("-inf")
        """Boot-clock seconds when a watch last had no reason to ask ZooKeeper again."""
        self._merged_snapshot: tuple[Snapshot | None, Known | None] = None, None
        """The snapshot that was believed last, and what was known after it: as a rule nothing has changed since."""
        self._decoded: tuple[bytes, LeaderInformation | None] = b"", None
        """ZooKeeper's last record: as a rule the next one is the same."""

    @property
    def known(self) -> Known | None:
        """Knowledge of the job; None as long as no store and no agent has named an epoch."""
        return self._view.known

    # --- one lookup

    def leader(self, timeout: float, *, stale: bool = False) -> Answer:
        """Return the leader, or wait for the next one; see :meth:`leader.lookup.reader.Reader.leader`.

        Raises:
            NoLeader: nobody leads.
            Unreachable: no store answered in time.
        """
        deadline = self._clock.now() + timeout
        said: NoLeader | None = None
        while True:
            try:
                return self.look(deadline - self._clock.now(), stale=stale)
            except NoLeader as error:
                pause = ZOOKEEPER_PAUSE_S if isinstance(error, NoLeaderByAgent) else HDFS_PAUSE_S
                if not self._state.led or deadline - self._clock.now() <= pause:
                    self._state.led = False
                    raise
                said = error
                self._clock.sleep(self._context.jitter.around(pause))
            except Unreachable:
                if said is not None:  # a store did say so a moment ago; there was only no time to ask again
                    raise said from None
                raise

    def report(self, session_id: str, timeout: float) -> Answer:
        """Ask HDFS whether this leader still leads; see :meth:`leader.lookup.reader.Reader.report`."""
        deadline = self._clock.now() + timeout
        answer = self.leader(timeout)
        if answer.session_id != session_id:
            return answer
        self._hdfs.hurry()
        cause = self._hdfs.ask(deadline - self._clock.now())
        if cause is not None:
            raise Unreachable(f"The leader of job {self.job!r} cannot be verified: {cause}")
        return self.leader(deadline - self._clock.now())

    def look(self, timeout: float, watcher: Waker | None = None, *, stale: bool = False) -> Answer:
        """Ask the agent, or else the stores, once; do not wait for a leader.

        Args:
            timeout: seconds.
            watcher: woken by the next change of ZooKeeper's record.
            stale: if no store answers, return the last known answer.

        Raises:
            NoLeader, Unreachable: as in :meth:`leader`.
        """
        started = self._clock.now()
        try:
            answer = self.ask_agent(timeout)
            if answer is None:
                rest = timeout - (self._clock.now() - started)
                if watcher is None:
                    answer = self._flight.run(self._ask_stores, self._answer, rest)
                else:  # a watch's question sets its own watch, so no other thread can ask it
                    answer = self._ask_stores(rest, watcher)
        except Unreachable:
            if stale and self._view.known is not None:
                return self._answer(stale=True)
            raise
        self._state.led = True
        return answer

    def ask_agent(self, timeout: float) -> Answer | None:
        """Answer from the agent's snapshot; None without a snapshot that can be believed.

        Raises:
            NoLeaderByAgent: the agent says that nobody leads.
        """
        if self._snapshots is None:
            return None
        snapshot = self._snapshots.find(self.job)
        if snapshot is None:
            snapshot = self._snapshots.ask(self.job, min(AGENT_PATIENCE_S, timeout * AGENT_SHARE))
        if snapshot is None:
            return None
        merged, known = self._merged_snapshot
        unchanged = merged is snapshot and known is self._view.known
        if not unchanged and not self._merge_snapshot(snapshot):
            return None
        if snapshot.information is None:
            raise NoLeaderByAgent(nobody_leads(self.job, snapshot.epoch))
        return self._answer()

    def _merge_snapshot(self, snapshot: Snapshot) -> bool:
        with self._lock:
            if self._view.merge_snapshot(snapshot):
                self._merged_snapshot = snapshot, self._view.known
                return True
            if self._view.contradicted_by(snapshot):
                self._hdfs.audit_soon()
            return False

    def _ask_stores(self, timeout: float, watcher: Waker | None = None) -> Answer:
        deadline = self._clock.now() + timeout
        fallback = self._ask_zookeeper(timeout * ZOOKEEPER_SHARE, watcher)
        if fallback is None:
            return self._answer()
        self._stores.count_fallback(fallback.reason)
        if fallback.candidate is not None:
            cause = self._verify(fallback.candidate, (deadline - self._clock.now()) * VERIFICATION_SHARE)
        else:
            self._fall_back(fallback)
            cause = self._hdfs.ask(deadline - self._clock.now())
        if cause is None:
            return self._answer()
        raise Unreachable(
            f"No store said within {round(timeout, 3):g} s who leads job {self.job!r}. "
            f"ZooKeeper: {fallback.sentence} File system: {cause}"
        )

    def _ask_zookeeper(self, timeout: float, watcher: Waker | None) -> Fallback | None:
        """Merge ZooKeeper's record, or its successor's. Returns why HDFS must be asked, or None."""
        fallback = self._merge_zookeeper(timeout, watcher)
        if watcher is not None:
            self._state.watch_unanswered = fallback is not None and fallback.reason == "error"
        if fallback is None:
            self._state.zookeeper_answered()
            self._hdfs.audit_if_due()
        elif fallback.reason == "no_node":
            return self._wait_for_successor(fallback, min(SUCCESSOR_GRACE_S, timeout), watcher)
        return fallback

    def _merge_zookeeper(
        self, timeout: float, watcher: Waker | None = None, *, short_deadline: bool = False
    ) -> Fallback | None:
        started = self._clock.now()
        data = self._stores.read_zookeeper(self.job, timeout, watcher, short_deadline=short_deadline)
        if isinstance(data, Fallback):
            return data
        if data != self._decoded[0]:
            self._decoded = data, decode(data, self.job)
        information = self._decoded[1]
        if information is None:
            return Fallback("undecodable", "its record cannot be read.")
        with self._lock:
            verdict = self._view.merge_zookeeper(information, started, self._clock.now())
        if verdict is Verdict.UNVERIFIED:
            candidate = Candidate(information, started)
            return Fallback("unverified", "its record is not confirmed by the file system.", candidate)
        self._state.unverified = False
        if verdict is Verdict.BELIEVED:
            return None
        return Fallback("mismatch", "its record is older than what is known, or of another session.")

    def _verify(self, candidate: Candidate, timeout: float) -> str | None:
        """Have HDFS confirm ZooKeeper's record. Returns None if the view is good enough now, else the reason why not.

        HDFS decides what is true. If it is silent, the record is believed, so that one store is enough for a lookup. If
        it must not be asked, its last answer counts.
        """
        try:
            self._verifying.run(lambda rest: self._ask_about(candidate.information, rest), lambda: None, timeout)
        except Unreachable as error:
            with self._lock:
                silent = not isinstance(error, _TooOften)
                if not (silent and self._view.believe_unverified(*candidate, self._clock.now())):
                    return f"{error}"
            self._hdfs.verify_later()
        with self._lock:
            verdict = self._view.merge_zookeeper(*candidate, self._clock.now())
        self._state.unverified = verdict is Verdict.UNVERIFIED
        if verdict is Verdict.BELIEVED:
            self._state.zookeeper_answered()
            self._hdfs.audit_if_due()
        return None

    def _ask_about(self, candidate: LeaderInformation, timeout: float) -> None:
        cause = self._hdfs.ask(timeout, candidate)
        if cause is not None:
            raise _TooOften(cause) if cause is TOO_OFTEN else Unreachable(cause)

    def _wait_for_successor(self, no_node: Fallback, timeout: float, watcher: Waker | None) -> Fallback | None:
        """Wait until ZooKeeper has a record again, once after each disappearance; return what it says of that."""
        if not self._state.led or self._state.waited_for_successor:
            return no_node
        self._state.waited_for_successor = True
        waker, watched = watcher or Waker(threading.Event()), watcher is not None
        end = self._clock.now() + timeout
        while (rest := end - self._clock.now()) > 0:
            if watched:  # a watch is set on a missing node, too
                self._clock.wait(waker.changed, rest)
                waker.changed.clear()
            watched = True
            fallback = self._merge_zookeeper(max(rest, ZOOKEEPER_PAUSE_S), waker, short_deadline=True)
            if fallback is None or fallback.candidate is not None:
                return fallback
            if fallback.reason != "no_node":
                break
        return no_node

    def _fall_back(self, fallback: Fallback) -> None:
        """Trust ZooKeeper's last answer briefly: readers lose ZooKeeper together, and must not ask HDFS together."""
        known, first = self._view.known, not self._state.fell_back
        self._state.fell_back = True
        if fallback.reason != "error" or not first or known is None or known.information is None:
            return
        now = self._clock.now()
        spread = min(SPREAD_S, self._context.audit / LEAST_ASKED)
        if now - max(known.at, self._watch_relied_on_at) < spread:
            self._hdfs.trust_view(now + self._context.jitter.within(spread))

    def _answer(self, *, stale: bool = False) -> Answer:
        """Return the answer that the view gives.

        Raises:
            NoLeader: nobody leads.
        """
        known = self._view.known
        if known is None or known.information is None:
            raise NoLeader(nobody_leads(self.job, known.epoch if known is not None else 0))
        age = max(0.0, self._clock.now() - known.at)
        endpoints = known.information.endpoints
        return Answer(self.job, known.epoch, known.session_id, endpoints, known.source, age, known.verified, stale)

    # --- for a watch, between two questions

    def subscribe(self, changed: threading.Event) -> None:
        """Set the event when the host's agent has news."""
        if self._snapshots is not None:
            self._snapshots.subscribe(self.job, changed)

    def unsubscribe(self, changed: threading.Event) -> None:
        """Undo :meth:`subscribe`."""
        if self._snapshots is not None:
            self._snapshots.unsubscribe(self.job, changed)

    def answer_of_watch(self, at: float) -> Answer | None:
        """Answer without a question: ZooKeeper watches the job and has reported no change up to that time."""
        self._watch_relied_on_at = at
        self._hdfs.audit_if_due()
        try:
            return self._answer()
        except NoLeader:  # HDFS said so at the last audit
            return None

    @property
    def watch_unanswered(self) -> bool:
        """Whether ZooKeeper did not answer the last question of a watch."""
        return self._state.watch_unanswered

    @property
    def contact(self) -> ContactAddress | None:
        """See :attr:`leader.lookup.hdfs_lookup.HdfsLookup.contact`."""
        return self._hdfs.contact

    def process_gone(self, contact: ContactAddress) -> None:
        """Expect the next leader, if the process that listened there is the known leader's."""
        if contact == self._hdfs.contact:
            self._hdfs.expect_successor()

    @property
    def expects_successor(self) -> bool:
        """See :attr:`leader.lookup.hdfs_lookup.HdfsLookup.expects_successor`."""
        return self._hdfs.expects_successor

    @property
    def relies_on_zookeeper(self) -> bool:
        """Whether ZooKeeper has answered a watch, with a record that was believed, so that the watch reports news."""
        return not self._state.watch_unanswered and not self._state.unverified

    @property
    def audit_in(self) -> float:
        """Seconds until an audit is due."""
        return self._hdfs.audit_in

    @property
    def verification_in(self) -> float:
        """Seconds until ZooKeeper's last record can be verified; infinite if there is nothing to verify."""
        return self._hdfs.verification_in if self._state.unverified else NEVER

    def forked(self) -> None:
        """Go on in a forked child: a thread that does not exist here may hold any lock."""
        self._lock = threading.Lock()
        self._hdfs.forked(self._lock)
        self._flight.forked()
        self._verifying.forked()
