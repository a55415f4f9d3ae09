"""Lookups: who leads a job, asked of ZooKeeper first and of HDFS when ZooKeeper will not do. Bounded in time."""

import logging
import random
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from leader import job as job_tree
from leader.errors import NoLeader, Unreachable
from leader.information import Record, decode
from leader.lease import Attestation, Mode
from leader.names import LeaderDirectory, check_job
from leader.nodes import Node, ReadNode, leader_path
from leader.observation import Observation
from leader.retrieval import Knowledge, Known, Source
from leader.session import check_attestation
from leader.timing import CONFIRMATIONS_PER_SESSION, Timing
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock
from store.errors import NotFound, NotSent, StoreError
from store.outcome import Outcome
from store.zookeeper import Connection, Event, Get, Sync, ZooKeeper

ZOOKEEPER_SHARE = 0.4
"""Of a lookup's time for ZooKeeper; the rest is left for HDFS."""

FIRST_CONNECTION = 0.5
"""Seconds that the very first lookup waits for ZooKeeper to be connected."""

GRACE = 0.3
"""Seconds for which a reader that knew a leader waits for ZooKeeper's next record before it asks HDFS: a successor is
there sooner than that as a rule, and then a failover costs the NameNode nothing."""

PAUSE = 0.05
"""Seconds, on average, between two looks for a successor."""

FILES_PAUSE = 0.5
"""Seconds, on average, between two questions to HDFS while there is no leader."""

SULK = 1.0
"""Seconds for which ZooKeeper is not asked after it did not answer in time."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """Who leads a job.

    Attributes:
        job: the job's name.
        epoch: orders answers; it never goes back.
        session_id: the leader session's UUID, the version of the answer.
        endpoints: address by name.
        source: where the answer comes from.
        age: seconds since a store said so.
        verified: whether HDFS has said the same.
        stale: whether no store could be reached, and this is the last that was known.
    """

    job: str
    epoch: int
    session_id: str
    endpoints: Mapping[str, str]
    source: Source
    age: float
    verified: bool
    stale: bool = False


class _Fallback(Exception):
    """ZooKeeper will not do: the kind of reason, for counting, and a sentence."""


class _Job:
    """What the reader keeps of one job; guarded by its lock."""

    def __init__(self, timing: Timing) -> None:
        self.lock = threading.Lock()
        self.knowledge = Knowledge()
        self.observation = Observation("", timing)
        self.directory: LeaderDirectory | None = None
        self.audit_due = 0.0
        self.led = False
        self.graced = False


class Reader:
    """Answers lookups for any number of jobs, from any thread."""

    def __init__(
        self,
        files: BoundedFiles,
        zookeeper: ZooKeeper | None,
        timing: Timing,
        *,
        audit: float = 30.0,
        clock: Clock = BOOT_CLOCK,
        dice: random.Random | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            files: closed by whoever opened it.
            zookeeper: likewise; None if the file system carries everything.
            timing: all durations.
            audit: seconds, on average, after which an answer of ZooKeeper is compared with HDFS.
            clock: the host's boot clock, unless in a simulation.
            dice: spreads the readers of many hosts over time.
        """
        self._clock = clock
        self._dice = dice or random.Random()  # noqa: S311  # to spread readers, not to hide anything
        self.fallbacks: dict[str, int] = {}
        self._files = files
        self._zookeeper = zookeeper
        self._timing = timing
        self._audit = audit
        self._jobs: dict[str, _Job] = {}
        self._waited = False
        self._sulking_until = float("-inf")

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
        state = self._state(check_job(job))
        deadline = self._clock.now() + timeout
        pause = FILES_PAUSE
        nobody: NoLeader | None = None
        while True:
            try:
                answer = self._lookup(job, deadline - self._clock.now(), None, stale=stale)
            except NoLeader as error:
                if not state.led or deadline - self._clock.now() <= pause:
                    state.led = False
                    raise
                nobody = error
                self._clock.sleep(self._spread(pause))
            except Unreachable:
                if nobody is not None:  # a moment ago a store did say; there was just no time to ask it again
                    raise nobody from None
                raise
            else:
                state.led = True
                return answer

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        """The leader of this session id refused or did not answer: ask HDFS, unless something newer is known already.

        Raises:
            InvalidName, NoLeader, Unreachable: as in :meth:`leader`.
        """
        state = self._state(check_job(job))
        known = state.knowledge.known
        if known is None or known.session_id == session_id or not known.verified:
            cause = self._ask_files(job, state, timeout)
            if cause is not None:
                raise Unreachable(f"The leader of job {job!r} cannot be verified: {cause}")
        return self.leader(job, timeout)

    def epoch_is(self, job: str, epoch: int, session_id: str) -> bool:
        """Whether that is the newest epoch this reader knows of the job, or one it knows nothing newer than."""
        known = self._state(check_job(job)).knowledge.known
        return known is None or known.epoch < epoch or (known.epoch, known.session_id) == (epoch, session_id)

    def watch(self, job: str, stop: threading.Event, timeout: float = 2.0) -> Iterator[Answer | None]:
        """Yield the leader, then every true change, with None when there is no leader; until ``stop`` is set.

        While no store can be reached nothing is yielded.
        """
        check_job(job)
        changed = threading.Event()
        watcher = _Waker(changed)
        if self._zookeeper is not None:
            self._zookeeper.add_listener(watcher)
        last: tuple[object, ...] | None = None
        try:
            while not stop.is_set():
                changed.clear()
                try:
                    answer: Answer | None = self._lookup(job, timeout, watcher, stale=False)
                except NoLeader:
                    answer = None
                except Unreachable as error:
                    _log.info("%s", error)
                    self._clock.wait(changed, self._timing.poll)
                    continue
                version = (answer.epoch, answer.session_id, dict(answer.endpoints)) if answer else (None,)
                if version != last:
                    last = version
                    yield answer
                self._wait(changed, stop)
        finally:
            if self._zookeeper is not None:
                self._zookeeper.remove_listener(watcher)

    def _wait(self, changed: threading.Event, stop: threading.Event) -> None:
        watched = self._zookeeper is not None and self._zookeeper.state is Connection.CONNECTED
        interval = self._audit if watched else 4 * self._timing.poll
        end = self._clock.now() + self._spread(interval)
        while not stop.is_set() and (rest := end - self._clock.now()) > 0:
            if self._clock.wait(changed, min(rest, 0.5)):
                return

    def _spread(self, seconds: float) -> float:
        return seconds * self._dice.uniform(0.8, 1.2)

    # --- one lookup

    def _state(self, job: str) -> _Job:
        return self._jobs.setdefault(job, _Job(self._timing))

    def _lookup(self, job: str, timeout: float, watcher: "_Waker | None", *, stale: bool) -> Answer:
        state = self._state(job)
        deadline = self._clock.now() + timeout
        try:
            self._ask_zookeeper(job, state, timeout * ZOOKEEPER_SHARE, watcher)
        except _Fallback as fallback:
            kind, sentence = fallback.args
        else:
            state.graced = False
            self._audit_if_due(job, state)
            return self._answer(job, state)
        if kind == "no_node" and self._successor_comes(job, state, min(GRACE, timeout * ZOOKEEPER_SHARE)):
            return self._answer(job, state)
        self.fallbacks[kind] = self.fallbacks.get(kind, 0) + 1
        cause = self._ask_files(job, state, deadline - self._clock.now())
        if cause is None:
            return self._answer(job, state)
        if stale and state.knowledge.known is not None:
            return self._answer(job, state, stale=True)
        raise Unreachable(
            f"No store said within {timeout:g} s who leads job {job!r}. ZooKeeper: {sentence} File system: {cause}"
        )

    def _successor_comes(self, job: str, state: _Job, timeout: float) -> bool:
        """Whether ZooKeeper has a record again within that time; waited for once after each disappearance."""
        if not state.led or state.graced:
            return False
        state.graced = True
        end = self._clock.now() + timeout
        while (rest := end - self._clock.now()) > 0:
            self._clock.sleep(min(rest, self._spread(PAUSE)))
            try:
                self._ask_zookeeper(job, state, max(rest, PAUSE), None)
            except _Fallback as fallback:
                if fallback.args[0] != "no_node":
                    return False
            else:
                return True
        return False

    def _answer(self, job: str, state: _Job, *, stale: bool = False) -> Answer:
        known = state.knowledge.known
        if known is None or known.information is None:
            raise NoLeader(_nobody(job, known))
        information = known.information
        age = max(0.0, self._clock.now() - known.at)
        return Answer(
            job, known.epoch, known.session_id, information.endpoints, known.source, age, known.verified, stale
        )

    def _ask_zookeeper(self, job: str, state: _Job, timeout: float, watcher: "_Waker | None") -> None:
        """Ask ZooKeeper; raises :class:`_Fallback` unless it is believed."""
        if self._zookeeper is None:
            raise _Fallback("none", "none is configured.")
        if not self._waited:
            self._zookeeper.start()
            self._zookeeper.wait(min(timeout, FIRST_CONNECTION))
            self._waited = True
        if self._clock.now() < self._sulking_until:
            raise _Fallback("error", "it did not answer a moment ago.")
        try:
            data, _ = self._zookeeper.call(Get(leader_path(job), watcher), timeout)
        except NotFound:
            raise _Fallback("no_node", "it holds no record.") from None
        except StoreError as error:
            if not isinstance(error, NotSent):
                self._sulking_until = self._clock.now() + SULK
            raise _Fallback("error", f"{error}") from error
        information = decode(data, job)
        if information is None:
            raise _Fallback("undecodable", "its record cannot be read.")
        with state.lock:
            if not state.knowledge.hear_zookeeper(information, self._clock.now()):
                raise _Fallback("mismatch", "its record is older than what is known, or of another session.")

    def _ask_files(self, job: str, state: _Job, timeout: float) -> str | None:
        """Ask the file system; returns None if it has answered, else a sentence."""
        if timeout <= 0:
            return "there was no time left to ask it."
        known, deadline = state.directory, self._clock.now() + timeout
        outcome = self._files.outcome("lookup", lambda driver: job_tree.read(driver, job, known), timeout)
        return self._heard(job, state, outcome, deadline)

    def _heard(
        self, job: str, state: _Job, outcome: Outcome[tuple[LeaderDirectory, Record]], deadline: float
    ) -> str | None:
        if isinstance(outcome.error, NotFound):
            raise NoLeader(f"{outcome.error}")
        if not outcome.done:
            return f"{outcome.error}"
        directory, record = outcome.result()
        with state.lock:
            if state.knowledge.hear_files(directory, record, job, outcome.started, outcome.ended):
                state.directory = directory
                if record.lease is not None:
                    state.observation.see(record.lease, outcome.ended)
        self._bury(state, record, deadline)
        return None

    def _bury(self, state: _Job, record: Record, deadline: float) -> None:
        """Say that there is no leader if its lease has run out, or its ZooKeeper session is gone."""
        usable = self._zookeeper is not None and self._zookeeper.state is Connection.CONNECTED
        if record.lease is not None and record.lease.mode is Mode.ZOOKEEPER and usable:
            with state.lock:
                state.observation.doubt(self._clock.now())
                token = state.observation.check(Attestation(usable=True), self._clock.now())
            if token is not None:
                present = self._attested(token, deadline)
                with state.lock:
                    state.observation.checked(token, present, self._clock.now())
        with state.lock:
            if state.observation.lease == record.lease and state.observation.seizable(self._clock.now()):
                state.knowledge.nobody(self._clock.now())

    def _attested(self, token: str, deadline: float) -> bool | None:
        steps = check_attestation(token)
        outcome: Outcome[Node | None] | None = None
        while True:
            try:
                command = next(steps) if outcome is None else steps.send(outcome)
            except StopIteration as stop:
                return bool(stop.value) if stop.value is not None else None
            timeout = min(self._timing.session_timeout / CONFIRMATIONS_PER_SESSION, deadline - self._clock.now())
            outcome = self._run_node(command.path, timeout, read=isinstance(command, ReadNode))

    def _run_node(self, path: str, timeout: float, *, read: bool) -> Outcome[Node | None]:
        assert self._zookeeper is not None, "only asked when there is one"
        started = self._clock.now()
        try:
            if not read:
                self._zookeeper.call(Sync(path), timeout)
                return Outcome(None, None, started, self._clock.now())
            data, stat = self._zookeeper.call(Get(path), timeout)
            return Outcome(Node(data, stat.ephemeral_owner, stat.version), None, started, self._clock.now())
        except StoreError as error:
            return Outcome(None, error, started, self._clock.now())

    def _audit_if_due(self, job: str, state: _Job) -> None:
        """Have HDFS checked in the background, now and then; whoever looks up does not wait for it."""
        with state.lock:
            if self._clock.now() < state.audit_due:
                return
            state.audit_due = self._clock.now() + self._spread(self._audit)
            known = state.directory

        def done(outcome: Outcome[tuple[LeaderDirectory, Record]]) -> None:
            if not outcome.done:
                return
            directory, record = outcome.result()
            with state.lock:
                if state.knowledge.hear_files(directory, record, job, outcome.started, outcome.ended):
                    state.directory = directory

        self._files.submit("audit", lambda driver: job_tree.read(driver, job, known), self._timing.call_timeout, done)


@dataclass(frozen=True, slots=True)
class _Waker:
    """Wakes a watching thread; equal to itself, so that a client keeps it once."""

    changed: threading.Event

    def __call__(self, _: Event | Connection) -> None:
        self.changed.set()


def _nobody(job: str, known: Known | None) -> str:
    if known is None or known.epoch == 0:
        return f"Job {job!r} has never had a leader."
    return f"Job {job!r} has no leader now; the last epoch was {known.epoch}."
