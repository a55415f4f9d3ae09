"""JobLookup: one job's lookup from top to bottom. It asks the host's agent, then ZooKeeper, then HDFS.

:class:`leader.lookup.leader_view.LeaderView` merges all their answers into the lookup's.
"""

import threading

import msgspec

from leader.errors import NoLeader, Unreachable
from leader.layout.contact import ContactAddress
from leader.layout.information import LeaderInformation, decode
from leader.lookup.answers import Answer, Known, Snapshot, Snapshots, nobody_leads
from leader.lookup.hdfs_lookup import HdfsLookup, NoAnswer
from leader.lookup.leader_view import LeaderView, Verdict
from leader.lookup.rate_limit import LEAST_ASKED, SPREAD_S, HdfsRateLimit
from leader.lookup.single_flight import SingleFlight, StillAsking
from leader.lookup.store_clients import Candidate, Fallback, LookupContext, StoreClients, Waker
from leader.timing import NEVER

AGENT_SHARE = 0.2  # of a lookup's time, in which the agent may find out about a job that is new to it
AGENT_PATIENCE_S = 0.3  # seconds at most for the same
ZOOKEEPER_SHARE = 0.4  # the share of a lookup's time for ZooKeeper; the rest is left for HDFS
VERIFICATION_SHARE = 0.9  # the share of the rest for HDFS, if ZooKeeper may have the answer in case HDFS is silent
LONGEST_PAUSE_SHARE = 0.5  # the share of the rest that a lookup sleeps at most: the next look needs time, too
SUCCESSOR_GRACE_S = 0.3  # a reader that knew a leader waits so long for ZooKeeper's next record before it asks HDFS
ZOOKEEPER_PAUSE_S = 0.05  # on average, between two looks at a snapshot for a successor; ZooKeeper gets at least that
HDFS_PAUSE_S = 0.5  # seconds, on average, between two looks at HDFS for a successor


class NoLeaderByAgent(NoLeader):
    """The host's agent knows that there is no leader; looking again costs no call of a store."""


class _NotSilent(Unreachable):
    """HDFS was not asked, or not for long enough to say that it does not answer."""


class _State(msgspec.Struct):
    """State that earlier looks leave for later ones; all combinations are legal."""

    # The last two cover the time since ZooKeeper last gave a record that was believed; such an answer clears both.

    led: bool = False  # the last look found a leader
    watch_unanswered: bool = False  # ZooKeeper did not answer a watch's last question, so its watch may not be set
    unverified: bool = False  # ZooKeeper's last record was not used, because HDFS must not be asked about it yet
    waited_for_successor: bool = False  # the grace for a successor is used up
    fell_back: bool = False  # HDFS was asked in ZooKeeper's place

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
        # Watches ask ZooKeeper themselves, but each record is verified once.
        self._verifying = SingleFlight(job, context.clock)
        self._state = _State()
        self._watch_relied_on_at = float("-inf")  # boot-clock seconds; then a watch had no reason to ask ZooKeeper
        # The one that was believed last, and what was known after it.
        self._merged_snapshot: tuple[Snapshot | None, Known | None] = None, None
        # ZooKeeper's last record: mostly the next is the same.
        self._decoded: tuple[bytes, LeaderInformation | None] = b"", None

    @property
    def known(self) -> Known | None:
        """Knowledge of the job; None as long as no store and no agent has named an epoch."""
        return self._view.known

    # --- one lookup

    def leader(self, timeout: float, *, stale: bool = False) -> Answer:
        """Return the leader, or wait for the next one; see :meth:`leader.lookup.reader.Reader.leader`."""
        deadline = self._clock.now() + timeout
        said: NoLeader | None = None
        while True:
            try:
                return self.look(deadline - self._clock.now(), stale=stale)
            except NoLeader as error:
                pause = ZOOKEEPER_PAUSE_S if isinstance(error, NoLeaderByAgent) else HDFS_PAUSE_S
                rest = deadline - self._clock.now()
                if not self._state.led or rest <= pause:
                    self._state.led = False
                    raise
                said = error
                self._clock.sleep(min(self._context.jitter.around(pause), rest * LONGEST_PAUSE_SHARE))
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
            raise Unreachable(f"The leader of job {self.job!r} cannot be verified: {cause.sentence}")
        try:
            return self.leader(deadline - self._clock.now())
        except Unreachable:  # HDFS has just answered; there was only no time to ask again
            return self._answer()

    def look(self, timeout: float, watcher: Waker | None = None, *, stale: bool = False) -> Answer:
        """Ask the agent, or else the stores, once; do not wait for a leader. It raises as :meth:`leader` does."""
        # The next change of ZooKeeper's record wakes the watcher. With `stale`, the last known answer is returned if no
        # store answers.
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
        """Answer from the agent's snapshot, or raise NoLeaderByAgent; None without a snapshot that can be believed."""
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
            believed = self._view.merge_snapshot(snapshot)
            if believed:
                self._merged_snapshot = snapshot, self._view.known
            if self._view.contradicted_by(snapshot):
                self._hdfs.audit_soon()
            return believed

    def _ask_stores(self, timeout: float, watcher: Waker | None = None) -> Answer:
        deadline = self._clock.now() + timeout
        fallback = self._ask_zookeeper(timeout * ZOOKEEPER_SHARE, watcher)
        if fallback is None:
            return self._answer()
        self._stores.count_fallback(fallback.reason)
        if fallback.candidate is not None:
            cause = self._verify(fallback.candidate, (deadline - self._clock.now()) * VERIFICATION_SHARE)
        elif (cause := self._ask_files(fallback, deadline)) is not None and fallback.reason == "error":
            fallback, cause = self._ask_zookeeper_again(cause, deadline, watcher)
        if cause is None:
            return self._answer()
        raise Unreachable(
            f"No store said within {round(timeout, 3):g} s who leads job {self.job!r}. "
            f"ZooKeeper: {fallback.sentence} File system: {cause.sentence}"
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
        self, timeout: float, watcher: Waker | None = None, *, last_resort: bool = False
    ) -> Fallback | None:
        started = self._clock.now()
        data = self._stores.read_zookeeper(self.job, timeout, watcher, last_resort=last_resort)
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

    def _verify(self, candidate: Candidate, timeout: float) -> NoAnswer | None:
        """Have HDFS confirm ZooKeeper's record. Returns None if the view is good enough now, else why it is not."""
        cause: NoAnswer | None = None
        try:
            self._verifying.run(lambda rest: self._ask_about(candidate.information, rest), lambda: None, timeout)
        except Unreachable as error:
            silent = self._hdfs.is_silent or not isinstance(error, _NotSilent | StillAsking)
            cause = NoAnswer(f"{error}", silent)
        return self._settle(candidate, cause)

    def _ask_about(self, candidate: LeaderInformation, timeout: float) -> None:
        cause = self._hdfs.ask(timeout, candidate)
        if cause is not None:
            raise Unreachable(cause.sentence) if cause.silent else _NotSilent(cause.sentence)

    def _settle(self, candidate: Candidate, cause: NoAnswer | None) -> NoAnswer | None:
        """Decide about a record that HDFS did not confirm for that cause; returns as :meth:`_verify` does."""
        # HDFS decides what is true. If it is silent, the record is believed, so that one store is enough for a lookup.
        # If it was not asked, or not for long enough, what is known counts.
        with self._lock:
            if cause is not None and cause.silent:
                self._view.believe_unverified(*candidate, self._clock.now())
            if cause is not None and (self._view.known is None or self._view.doubted):
                return cause
            verdict = self._view.merge_zookeeper(*candidate, self._clock.now())
        if cause is not None and cause.silent:
            self._hdfs.verify_later()
        self._state.unverified = verdict is Verdict.UNVERIFIED
        if verdict is Verdict.BELIEVED:
            self._state.zookeeper_answered()
            self._hdfs.audit_if_due()
        return None

    def _ask_files(self, fallback: Fallback, deadline: float) -> NoAnswer | None:
        """Ask HDFS in ZooKeeper's place; returns as :meth:`_verify` does."""
        self._fall_back(fallback)
        share = VERIFICATION_SHARE if fallback.reason == "error" else 1.0
        return self._hdfs.ask((deadline - self._clock.now()) * share)

    def _ask_zookeeper_again(
        self, cause: NoAnswer, deadline: float, watcher: Waker | None
    ) -> tuple[Fallback, NoAnswer | None]:
        """Ask ZooKeeper again, which did not answer before HDFS did not either; returns what each of them says."""
        fallback = self._merge_zookeeper(deadline - self._clock.now(), watcher, last_resort=True)
        if fallback is None:
            return Fallback("none", ""), None
        return fallback, cause if fallback.candidate is None else self._settle(fallback.candidate, cause)

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
            fallback = self._merge_zookeeper(max(rest, ZOOKEEPER_PAUSE_S), waker)
            if fallback is None or fallback.candidate is not None:
                return fallback
            if fallback.reason != "no_node":
                break
        return no_node

    def _fall_back(self, fallback: Fallback) -> None:
        """Trust ZooKeeper's last answer briefly: readers lose ZooKeeper together, and must not ask HDFS together."""
        known, first = self._view.known, not self._state.fell_back
        self._state.fell_back = True
        knows = known is not None and known.information is not None and not self._view.doubted
        if known is None or fallback.reason != "error" or not first or not knows:
            return
        now = self._clock.now()
        spread = min(SPREAD_S, self._context.audit / LEAST_ASKED)
        if now - max(known.at, self._watch_relied_on_at) < spread:
            self._hdfs.trust_view(now + self._context.jitter.within(spread))

    def _answer(self, *, stale: bool = False) -> Answer:
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
    def asked_at(self) -> float:
        """See :attr:`leader.lookup.hdfs_lookup.HdfsLookup.asked_at`."""
        return self._hdfs.asked_at

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
        """Reset in a forked child: a thread that does not exist here may hold any lock."""
        self._lock = threading.Lock()
        self._hdfs.forked(self._lock)
        self._flight.forked()
        self._verifying.forked()
