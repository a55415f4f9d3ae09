"""HdfsLookup: the HDFS part of a lookup. It verifies and audits ZooKeeper, detects a dead leader, obeys rate limits.

Answers are merged into the job's :class:`leader.lookup.leader_view.LeaderView`; the rate limit repeats the last one.
"""

import threading

import msgspec

from leader.election.rival import RivalLease
from leader.errors import NoLeader
from leader.layout import contact
from leader.layout.contact import ContactAddress
from leader.layout.information import LeaderInformation
from leader.layout.lease import Attestation, Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.lookup.answers import Known
from leader.lookup.leader_view import LeaderView
from leader.lookup.rate_limit import JOB_PAUSE_S, AuditSchedule, HdfsRateLimit
from leader.lookup.store_clients import SHORT_DEADLINE_S, LookupContext, Reading, StoreClients
from leader.timing import PAST
from store.clock import Clock
from store.errors import DeadlineExceeded, NotFound
from store.outcome import Outcome

BACK_OFF_S = 0.3  # seconds, on average, for which HDFS is not asked after it did not answer
ANSWERED_LATELY_S = 2 * JOB_PAUSE_S  # HDFS that has answered so lately is not silent because a short question is
OTHERS_PAUSE_S = 0.05  # seconds, on average, between two looks whether another thread's question has been answered
SHORTEST_AUDIT_WAIT_S = 0.05  # seconds that a watch waits for an audit that is due about now
SUCCESSOR_WITHIN_S = 10.0  # seconds for which a reader expects the next leader once the last one's process has ended


class NoAnswer(msgspec.Struct, frozen=True):
    """The reason why HDFS did not answer a lookup."""

    sentence: str  # for people
    silent: bool = False  # whether HDFS does not answer; else it was not asked, or not for long enough to say so


TOO_OFTEN = NoAnswer("it was asked often lately, and there was no time left to wait.")
SILENT = NoAnswer("it did not answer a moment ago, and there was no time left to ask it again.", silent=True)


class HdfsLookup:
    """Asks HDFS about one job. Any thread may use it.

    Two facts decide the answer while HDFS must not be asked. All four combinations occur:

    - ``_no_such_job`` is set when HDFS says that there is no such job. It counts only until something else becomes
      known, and takes precedence over the other.
    - ``_remembers`` says that the view is good enough to answer from. It is set when HDFS answers, or when ZooKeeper's
      last answer is still new (:meth:`trust_view`), and cleared when HDFS fails.

    A candidate, a record of ZooKeeper that HDFS has not confirmed, has its own rate limits: a lookup that asks in
    ZooKeeper's place has mostly used up its limit by then.
    """

    def __init__(
        self,
        job: str,
        view: LeaderView,
        lock: threading.Lock,
        stores: StoreClients,
        limit: HdfsRateLimit,
        verifications: HdfsRateLimit,
        context: LookupContext,
    ) -> None:
        """Ask nothing yet; ``lock`` guards the view."""
        self._job = job
        self._view = view
        self._lock = lock
        self._stores = stores
        self._limit = _JobQuestions(limit, context.clock)
        self._verifications = _JobQuestions(verifications, context.clock)
        self._clock = context.clock
        self._jitter = context.jitter
        self._audits = AuditSchedule(context.audit, context.jitter)
        self._rival = RivalLease("", context.timing)
        self._remembers = False
        self._no_such_job: tuple[str, Known | None] | None = None  # HDFS's sentence, and what was known when it came
        self._asking = 0  # threads that are asking HDFS now, without audits
        self.is_silent = False  # whether HDFS gave no answer when it was last asked for long enough to tell
        self._answered_at = PAST  # boot-clock seconds of its last answer
        self.asked_at = PAST  # boot-clock seconds before the question to which that was the answer
        self._believed: Reading | None = None  # the last believed answer; few lookups need its contact
        self._successor_until = PAST  # boot-clock seconds until which the next leader is expected

    # --- a question with a waiting caller

    def ask(self, timeout: float, candidate: LeaderInformation | None = None) -> NoAnswer | None:
        """Ask HDFS, or rely on its last answer. Returns why the view is not good enough now, None if it is."""
        # `candidate` is ZooKeeper's record, for HDFS to confirm. NoLeader if there is no such job.
        deadline = self._clock.now() + timeout
        limit = self._limit if candidate is None and not self.expects_successor else self._verifications
        while not limit.try_acquire():
            if self._no_such_job is not None and self._no_such_job[1] is self._view.known:
                raise NoLeader(self._no_such_job[0])
            if self._last_answer_serves(candidate):
                return None
            wait, rest = limit.wait(), deadline - self._clock.now()
            if rest <= 0 or (wait >= rest and not self._asking):
                return SILENT if self.is_silent else TOO_OFTEN
            # A thread that is asking now has the tokens; its answer will serve this thread, too.
            self._clock.sleep(min(wait, rest, self._jitter.around(OTHERS_PAUSE_S)) if self._asking else wait)
        rest = deadline - self._clock.now()
        if rest <= 0:
            limit.failed()
            return self._without_evidence("there was no time left to ask it.", candidate, silent=False)
        self._count_asking(1)
        try:
            outcome = self._stores.read_hdfs(self._job, self._directory_of(candidate), rest)
            if rest < SHORT_DEADLINE_S and isinstance(outcome.error, DeadlineExceeded):
                limit.failed()
                return self._without_evidence(f"{outcome.error}", candidate, silent=True)
            return self._take_in(outcome, limit, candidate, deadline)
        finally:
            self._count_asking(-1)  # only now can other threads rely on the answer

    def _last_answer_serves(self, candidate: LeaderInformation | None) -> bool:
        return self._remembers and (candidate is None or self._is_verified)

    def _without_evidence(self, sentence: str, candidate: LeaderInformation | None, *, silent: bool) -> NoAnswer | None:
        """Judge a question that was too short to tell whether HDFS answers: its last answer counts while it is new."""
        lately = self._clock.now() < self._answered_at + ANSWERED_LATELY_S and not self.is_silent
        if lately and self._last_answer_serves(candidate):
            return None
        return NoAnswer(sentence, silent=self.is_silent or (silent and not lately))

    def _directory_of(self, candidate: LeaderInformation | None) -> LeaderDirectory | None:
        return self._view.directory if candidate is None else LeaderDirectory(candidate.epoch, candidate.session_id)

    def _take_in(
        self, outcome: Outcome[Reading], limit: "_JobQuestions", candidate: LeaderInformation | None, deadline: float
    ) -> NoAnswer | None:
        if isinstance(outcome.error, NotFound):
            self.is_silent, self.asked_at, self._answered_at = False, outcome.started, outcome.ended
            self._no_such_job = f"{outcome.error}", self._view.known
            limit.answered(news=True)
            raise NoLeader(self._no_such_job[0])
        if not outcome.done:
            self._remembers, self.is_silent = False, True
            limit.failed(self._clock.now() + self._jitter.around(BACK_OFF_S))
            return NoAnswer(f"{outcome.error}", silent=True)
        before = self._view.known
        self.is_silent, self.asked_at, self._answered_at = False, outcome.started, outcome.ended
        self._no_such_job = None
        self._remembers = True
        with self._lock:
            self._audits.count(outcome.started)
            self._merge(outcome)
            if candidate is not None:
                self._view.refute(candidate, outcome.result()[0])
        if candidate is None:
            self._check_session(outcome.result()[1].lease, deadline)
        news, known = _is_news(before, self._view.known), self._view.known
        if news and known is not None and known.information is not None:
            self._successor_until = PAST
        limit.answered(news=news or self.expects_successor)
        return None

    def _merge(self, outcome: Outcome[Reading]) -> None:
        """Merge what HDFS said; called with the lock held."""
        directory, record = outcome.result()
        believed = self._view.merge_files(directory, record, self._job, outcome.started, outcome.ended)
        if believed:
            self._believed = directory, record
        elif not self._is_verified:  # the read is older than the view, which is yet to be compared
            self._compare_soon()
        if believed and record.lease is not None:
            self._rival.observe(record.lease, outcome.ended)
            self._mark_if_dead(record.lease, outcome.started)

    def _mark_if_dead(self, lease: Lease, at: float) -> None:
        """Mark the leader as dead if the lease, which is unchanged until then, has ended; called with the lock held."""
        if self._rival.lease == lease and self._rival.expired_reason(at):
            self._view.mark_dead(self._clock.now())

    def _check_session(self, lease: Lease | None, deadline: float) -> None:
        """Mark the leader as dead if the session that attests the lease is gone."""
        # This is not asked about a candidate: the leader's own session has written that.
        if lease is not None and lease.mode is Mode.ZOOKEEPER and self._stores.connected:
            with self._lock:
                self._rival.recheck(self._clock.now())
                token = self._rival.next_check(Attestation(answers=True), self._clock.now())
            if token is not None:
                lives = self._stores.session_lives(token, deadline)
                with self._lock:
                    self._rival.on_checked(token, lives, self._clock.now())
                    self._mark_if_dead(lease, PAST)

    def _count_asking(self, more: int) -> None:
        with self._lock:
            self._asking += more

    # --- when the next question comes

    def hurry(self) -> None:
        """Ask HDFS as often as the limit allows: the caller has reason to expect news."""
        self._limit.answered(news=True)

    @property
    def contact(self) -> ContactAddress | None:
        """Where the process of the known leader can be asked whether it lives; None if HDFS did not say so."""
        known = self._view.known
        if known is None or known.information is None or self._believed is None:
            return None
        directory, record = self._believed
        leads = directory == LeaderDirectory(known.epoch, known.session_id)
        return contact.holders(record, directory) if leads else None

    def expect_successor(self) -> None:
        """Ask HDFS within the limits of verifications for a while: the leader's process is gone."""
        self._successor_until = self._clock.now() + SUCCESSOR_WITHIN_S

    @property
    def expects_successor(self) -> bool:
        """Whether the leader's process is gone, and HDFS has not named another leader yet."""
        return self._clock.now() < self._successor_until

    def trust_view(self, until: float) -> None:
        """Do not ask before that boot-clock time: until then ZooKeeper's last answer is new enough."""
        self._remembers = True
        self._limit.hold(until)

    @property
    def verification_in(self) -> float:
        """Seconds until HDFS may be asked about a candidate."""
        return max(SHORTEST_AUDIT_WAIT_S, self._verifications.wait())

    def verify_later(self) -> None:
        """Compare HDFS with the view soon, and again and again while it is silent: the view is not verified."""
        with self._lock:
            self._compare_soon()

    def _compare_soon(self) -> None:
        self._audits.hasten(self._clock.now() + self._jitter.around(JOB_PAUSE_S))

    @property
    def _is_verified(self) -> bool:
        return self._view.known is not None and self._view.known.verified

    # --- audits, without a waiting caller

    def audit_if_due(self) -> None:
        """Start a background comparison of HDFS with the view, if one is due."""
        with self._lock:
            if not self._audits.begin(self._clock.now()):
                return
            directory = self._view.directory
        self._stores.audit_hdfs(self._job, directory, self._audited)

    def _audited(self, outcome: Outcome[Reading]) -> None:
        if outcome.done:
            self.is_silent, self.asked_at, self._answered_at = False, outcome.started, outcome.ended
            self._remembers = True
            with self._lock:
                self._merge(outcome)
        elif not self._is_verified:
            self.verify_later()

    def audit_soon(self) -> None:
        """Audit HDFS at the next look: an agent heard it contradict the view, so it answers. With the lock held."""
        self.is_silent = False
        self._audits.hasten(self._clock.now())

    @property
    def audit_in(self) -> float:
        """Seconds until :meth:`audit_if_due` has something to do."""
        return max(SHORTEST_AUDIT_WAIT_S, self._audits.wait(self._clock.now()))

    def forked(self, lock: threading.Lock) -> None:
        """Reset in a forked child: no thread of the parent asks here, and its lock may be held for ever."""
        self._lock, self._asking = lock, 0


class _JobQuestions:
    """Questions of one kind about one job, within the limits of the job and of the process; see those."""

    def __init__(self, process: HdfsRateLimit, clock: Clock) -> None:
        self._process = process
        self._job = process.of_job()
        self._clock = clock

    def try_acquire(self) -> bool:
        return self._process.try_acquire(self._job)

    def wait(self) -> float:
        return self._process.wait(self._job)

    def answered(self, *, news: bool) -> None:
        self._job.answered(self._clock.now(), news=news)

    def failed(self, not_before: float = PAST) -> None:
        self._job.failed(not_before)

    def hold(self, until: float) -> None:
        self._job.hold(until)


def _is_news(before: Known | None, after: Known | None) -> bool:
    """Whether an answer of HDFS was new. "No leader" always counts as new, since somebody soon will lead."""
    if before is None or after is None or after.information is None:
        return True
    return (before.epoch, before.session_id, before.information) != (after.epoch, after.session_id, after.information)
