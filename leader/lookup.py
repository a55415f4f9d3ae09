"""What the stores say of one job: ZooKeeper first, HDFS when that will not do, and seldom enough for the NameNode."""

import threading

from leader import job as job_tree
from leader.answers import Answer
from leader.errors import NoLeader, Unreachable
from leader.flight import SingleFlight
from leader.information import LeaderInformation, Record, decode
from leader.lease import Attestation, Lease, Mode
from leader.names import LeaderDirectory
from leader.observation import Observation
from leader.retrieval import Knowledge, Known
from leader.snapshot import Snapshot
from leader.sources import LEAST_ASKED, Fallback, Sources, Waker
from store.errors import DeadlineExceeded, NotFound
from store.outcome import Outcome

ZOOKEEPER_SHARE = 0.4
"""Of a lookup's time for ZooKeeper; the rest is left for HDFS."""

GRACE = 0.3
"""Seconds for which a reader that knew a leader waits for ZooKeeper's next record before it asks HDFS: a successor is
there sooner than that as a rule, and then a failover costs the NameNode nothing."""

PAUSE = 0.05
"""Seconds, on average, between two looks for a successor."""

FILES_SULK = 0.3
"""Seconds, on average, for which HDFS is not asked after it did not answer."""

HURRIED = 0.3
"""Seconds: that HDFS did not answer within less is no evidence against it."""

AHEAD = 2.4
"""Seconds over which readers spread their first question to HDFS when ZooKeeper fails them; what they know is new."""

SHORTEST_WAIT = 0.05
"""Seconds: who waits for something that is due about now looks again then."""

SETTLED = 2
"""Times that an audit was set before those that follow each other evenly."""


class Lookup:
    """One job: what is known of it, and how it is found out. Any thread may use it."""

    def __init__(self, job: str, sources: Sources) -> None:
        self.job = job
        self.lock = threading.Lock()
        self.knowledge = Knowledge()
        self.flight = SingleFlight(job, sources.clock)
        self.exists = False
        """Whether any store has ever said something of such a job."""
        self.led = False
        """Whether there was a leader at the last look."""
        self.heard: tuple[Snapshot | None, Known | None] = (None, None)
        """The snapshot that was believed last, and what was known then."""
        self._sources = sources
        self._clock = sources.clock
        self._observation = Observation("", sources.timing)
        self._directory: LeaderDirectory | None = None
        self._pace = sources.new_pace()
        self._audit_due = float("-inf")
        self._audits = 0
        self._decoded: tuple[bytes, LeaderInformation | None] = b"", None
        """ZooKeeper's last record: as a rule the next one is the same."""
        self.watched_at = float("-inf")
        """Boot-clock seconds when somebody last relied on ZooKeeper's watch, and had not been told of a change."""
        self.unanswered = False
        """Whether ZooKeeper did not answer who asked last to watch: the watch may not be set."""
        self._graced = False
        self._fell_back = False
        self._remembers = False
        self._asking = 0
        """Questions to HDFS that are under way, but for audits."""
        self._missing: tuple[str, Known | None] | None = None
        """HDFS has said that there is no such job, and what was known then."""

    def answer(self, *, stale: bool = False) -> Answer:
        """Return what is known.

        Raises:
            NoLeader: nobody leads.
        """
        known = self.knowledge.known
        if known is None or known.information is None:
            raise NoLeader(nobody(self.job, known.epoch if known is not None else 0))
        age = max(0.0, self._clock.now() - known.at)
        return Answer(
            self.job,
            known.epoch,
            known.session_id,
            known.information.endpoints,
            known.source,
            age,
            known.verified,
            stale,
        )

    def look(self, timeout: float, watcher: Waker | None = None) -> Answer:
        """Ask the stores.

        Raises:
            NoLeader: nobody leads.
            Unreachable: no store answered in time.
        """
        deadline = self._clock.now() + timeout
        if self._sources.zookeeper is None:
            self._sources.fell_back("none")
            return self._from_files(deadline, timeout, "none is configured.")
        try:
            self._ask_zookeeper(timeout * ZOOKEEPER_SHARE, watcher)
        except Fallback as fallback:
            kind, sentence = fallback.kind, fallback.sentence
            if watcher is not None:
                self.unanswered = kind == "error"
        else:
            if watcher is not None:
                self.unanswered = False
            self._graced = self._fell_back = False
            self.audit_if_due()
            return self.answer()
        if kind == "no_node" and self._successor_comes(min(GRACE, timeout * ZOOKEEPER_SHARE)):
            return self.answer()
        self._sources.fell_back(kind)
        self._trust_zookeepers_last_word(kind)
        return self._from_files(deadline, timeout, sentence)

    def _from_files(self, deadline: float, timeout: float, zookeeper: str) -> Answer:
        cause = self.ask_files(deadline - self._clock.now())
        if cause is None:
            return self.answer()
        raise Unreachable(
            f"No store said within {round(timeout, 3):g} s who leads job {self.job!r}. "
            f"ZooKeeper: {zookeeper} File system: {cause}"
        )

    def ask_files(self, timeout: float) -> str | None:
        """Ask the file system, or remember what it said a moment ago; returns None if that will do, else a sentence.

        Raises:
            NoLeader: there is no such job.
        """
        deadline = self._clock.now() + timeout
        while (due := self._sources.due(self._pace)) > 0:
            if self._missing is not None and self._missing[1] is self.knowledge.known:
                raise NoLeader(self._missing[0])
            if self._remembers:
                return None
            rest = deadline - self._clock.now()
            if rest <= 0 or (due >= rest and not self._asking):
                return "it did not answer a moment ago, and there was no time left to ask it again."
            # Whoever asks now has taken what may be asked, and what it hears will do.
            self._clock.sleep(min(due, rest, self._sources.spread(PAUSE)) if self._asking else due)
        rest = deadline - self._clock.now()
        if rest <= 0:
            self._pace.failed(float("-inf"))
            return "there was no time left to ask it."
        known = self._directory
        self._count(1)
        try:
            outcome = self._sources.files.outcome("lookup", lambda driver: job_tree.read(driver, self.job, known), rest)
            return self._heard(outcome, deadline, hurried=rest < HURRIED)
        finally:
            self._count(-1)  # now that others may remember it

    def _count(self, more: int) -> None:
        with self.lock:
            self._asking += more

    def audit_if_due(self) -> None:
        """Have HDFS checked in the background, now and then; whoever looks up does not wait for it.

        Soon after the first answer, which nothing was known to compare with; then at a time of one's own, so that many
        hosts that have begun at once do not ask at once; and from then on exactly every ``audit`` seconds.
        """
        audit = self._sources.audit
        with self.lock:
            now = self._clock.now()
            if now < self._audit_due:
                return
            match self._audits:
                case 0:
                    self._audit_due = now + self._sources.phase(min(AHEAD, audit))
                case 1:
                    self._audit_due = now + audit - self._sources.phase(audit / 2)
                case _:
                    self._audit_due += audit * (1 + (now - self._audit_due) // audit)
            self._audits = min(self._audits + 1, SETTLED)
            if self._audits == 1:
                return
            known = self._directory

        def done(outcome: Outcome[tuple[LeaderDirectory, Record]]) -> None:
            if outcome.done:
                self._learn(outcome)

        self._sources.files.submit(
            "audit",
            lambda driver: job_tree.read(driver, self.job, known),
            self._sources.timing.call_timeout,
            done,
        )

    @property
    def audit_in(self) -> float:
        """Seconds until :meth:`audit_if_due` has something to do, but for a moment."""
        return max(SHORTEST_WAIT, self._audit_due - self._clock.now())

    def _audited(self, at: float) -> None:
        """HDFS itself was asked then: else all hosts would audit at once when ZooKeeper is there again."""
        with self.lock:
            self._audit_due, self._audits = max(self._audit_due, at + self._sources.audit), max(self._audits, 1)

    def hurry(self) -> None:
        """Somebody has reason to think that there is something new: ask HDFS as often as it may be asked."""
        self._pace.answered(self._clock.now(), news=True)

    def audit_soon(self) -> None:
        """Have HDFS checked at the next look."""
        self._audit_due, self._audits = min(self._audit_due, self._clock.now()), max(self._audits, 1)

    def forked(self) -> None:
        """Any lock may be held by a thread that is not here."""
        self.lock, self._asking = threading.Lock(), 0
        self.flight.forked()

    # --- ZooKeeper

    def _ask_zookeeper(self, timeout: float, watcher: Waker | None = None, *, hurried: bool = False) -> None:
        """Ask ZooKeeper; raises :class:`Fallback` unless it is believed."""
        data = self._sources.get(self.job, timeout, watcher, hurried=hurried)
        if data != self._decoded[0]:
            self._decoded = data, decode(data, self.job)
        information = self._decoded[1]
        if information is None:
            raise Fallback("undecodable", "its record cannot be read.")
        with self.lock:
            self.exists = True
            if not self.knowledge.hear_zookeeper(information, self._clock.now()):
                raise Fallback("mismatch", "its record is older than what is known, or of another session.")
            self._directory = LeaderDirectory(information.epoch, information.session_id)

    def _successor_comes(self, timeout: float) -> bool:
        """Whether ZooKeeper has a record again within that time; waited for once after each disappearance."""
        if not self.led or self._graced:
            return False
        self._graced = True
        end = self._clock.now() + timeout
        while (rest := end - self._clock.now()) > 0:
            self._clock.sleep(min(rest, self._sources.spread(PAUSE)))
            try:
                self._ask_zookeeper(max(rest, PAUSE), hurried=True)
            except Fallback as fallback:
                if fallback.kind != "no_node":
                    return False
            else:
                return True
        return False

    def _trust_zookeepers_last_word(self, kind: str) -> None:
        """Readers lose ZooKeeper together: each asks HDFS at a time of its own, while what it knows is new."""
        known, before = self.knowledge.known, self._fell_back
        self._fell_back = True
        if kind != "error" or before or known is None or known.information is None:
            return
        now = self._clock.now()
        ahead = min(AHEAD, self._sources.audit / LEAST_ASKED)
        if now - max(known.at, self.watched_at) < ahead:
            self._remembers = True
            self._pace.hold(now + self._sources.phase(ahead))

    # --- HDFS

    def _heard(self, outcome: Outcome[tuple[LeaderDirectory, Record]], deadline: float, *, hurried: bool) -> str | None:
        if isinstance(outcome.error, NotFound):
            self._missing = f"{outcome.error}", self.knowledge.known
            self._pace.answered(self._clock.now(), news=True)
            raise NoLeader(self._missing[0])
        if hurried and isinstance(outcome.error, DeadlineExceeded):
            self._pace.failed(float("-inf"))
            return f"{outcome.error}"
        if not outcome.done:
            self._remembers = False
            self._pace.failed(self._clock.now() + self._sources.spread(FILES_SULK))
            return f"{outcome.error}"
        before = self.knowledge.known
        self._missing = None
        self._remembers = True
        self._audited(outcome.started)
        self._learn(outcome)
        self._bury(outcome.result()[1].lease, deadline)
        known = self.knowledge.known
        news = known is None or known.information is None or not _same(before, known)
        self._pace.answered(self._clock.now(), news=news)
        return None

    def _learn(self, outcome: Outcome[tuple[LeaderDirectory, Record]]) -> None:
        directory, record = outcome.result()
        with self.lock:
            self.exists = True
            if self.knowledge.hear_files(directory, record, self.job, outcome.started, outcome.ended):
                self._directory = directory
                if record.lease is not None:
                    self._observation.see(record.lease, outcome.ended)

    def _bury(self, lease: Lease | None, deadline: float) -> None:
        """Say that there is no leader if the lease just read has run out, or its ZooKeeper session is gone."""
        if lease is not None and lease.mode is Mode.ZOOKEEPER and self._sources.connected:
            with self.lock:
                self._observation.doubt(self._clock.now())
                token = self._observation.check(Attestation(answers=True), self._clock.now())
            if token is not None:
                present = self._sources.attested(token, deadline)
                with self.lock:
                    self._observation.checked(token, present, self._clock.now())
        with self.lock:
            if self._observation.lease == lease and self._observation.seizable(self._clock.now()):
                self.knowledge.nobody(self._clock.now())


def _same(before: Known | None, after: Known) -> bool:
    return before is not None and (before.epoch, before.session_id, before.information) == (
        after.epoch,
        after.session_id,
        after.information,
    )


def nobody(job: str, epoch: int) -> str:
    """Return the sentence that nobody leads a job whose last epoch that was; 0 if it never had one."""
    if epoch == 0:
        return f"Job {job!r} has never had a leader."
    return f"Job {job!r} has no leader now; the last epoch was {epoch}."
