"""Lookups: who leads a job, asked of the host's agent first, then of ZooKeeper, and of HDFS when that will not do.

Bounded in time. Of several threads that find no snapshot, one asks the stores, and the others take what it learns.
"""

import logging
import os
import random
import threading
import weakref
from collections import deque
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
from leader.snapshot import Snapshot, Snapshots
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

AGENT_SHARE = 0.2
"""Of a lookup's time for the host's agent to answer for a job that nobody has asked it about lately."""

AGENT_PATIENCE = 0.3
"""Seconds at most for the same."""

SNAPSHOT_PAUSE = 0.1
"""Seconds, on average, between two looks of a watch at the agent's snapshot."""

STRANGERS = 1024
"""Names of jobs, asked for lately, of which nothing is known: what is kept of them. All others' memory is that of jobs
that exist."""

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


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found; see :meth:`Reader.looks`.

    Attributes:
        started: boot-clock seconds before anybody was asked.
        answer: None if there is no leader, or nobody answered.
        reached: whether somebody answered.
        known: what the reader knows after it; None if it knows nothing of such a job.
    """

    started: float
    answer: Answer | None
    reached: bool
    known: Known | None


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
        self.flight: _Flight | None = None
        self.heard: tuple[Snapshot | None, Known | None] = (None, None)
        """The snapshot that was believed last, and what was known then."""


class _Flight:
    """One look at the stores, whose end other threads wait for."""

    def __init__(self, started: float, deadline: float) -> None:
        self.started = started
        self.deadline = deadline
        self.over = threading.Event()
        self.answered = False
        self.error: NoLeader | Unreachable | None = None


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
            audit: seconds, on average, after which an answer of ZooKeeper is compared with HDFS.
            snapshots: what an agent of this host was told; None to ask the stores themselves always.
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
        self._snapshots = snapshots
        self._jobs: dict[str, _Job] = {}
        self._strangers: weakref.WeakValueDictionary[str, _Job] = weakref.WeakValueDictionary()
        self._lately: deque[_Job] = deque(maxlen=STRANGERS)
        self._lock = threading.Lock()
        self._waited = False
        self._sulking_until = float("-inf")
        _every.add(self)

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
        nobody: NoLeader | None = None
        while True:
            try:
                answer = self._look(job, state, deadline - self._clock.now(), stale=stale)
            except NoLeader as error:
                pause = PAUSE if isinstance(error, _NobodySaysAgent) else FILES_PAUSE
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

    def told(self, job: str, timeout: float = 2.0) -> Answer | None:
        """Return what an agent of this host was told, without asking any store; None if that is nothing to go by.

        Raises:
            InvalidName, NoLeader: as in :meth:`leader`.
        """
        state = self._state(check_job(job))
        return self._from_snapshot(job, state, self._snapshots, timeout) if self._snapshots is not None else None

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

        Yields what each look found, until ``stop`` is set.
        """
        state = self._state(check_job(job))
        changed = threading.Event()
        watcher = _Waker(changed)
        if self._zookeeper is not None:
            self._zookeeper.add_listener(watcher)
        try:
            while not stop.is_set():
                changed.clear()
                started, answer, reached, agent = self._clock.now(), None, True, False
                try:
                    answer = self._look(job, state, timeout, watcher)
                    agent = answer.source is Source.SNAPSHOT
                except NoLeader as nobody:
                    agent = isinstance(nobody, _NobodySaysAgent)
                except Unreachable as error:
                    _log.info("%s", error)
                    reached = False
                yield Look(started, answer, reached, state.knowledge.known)
                if reached:
                    self._wait(changed, stop, min(every, SNAPSHOT_PAUSE if agent else self._interval))
                else:
                    self._clock.wait(changed, self._timing.poll)
        finally:
            if self._zookeeper is not None:
                self._zookeeper.remove_listener(watcher)

    @property
    def _interval(self) -> float:
        watched = self._zookeeper is not None and self._zookeeper.state is Connection.CONNECTED
        return self._audit if watched else 4 * self._timing.poll

    def _wait(self, changed: threading.Event, stop: threading.Event, interval: float) -> None:
        end = self._clock.now() + self._spread(interval)
        while not stop.is_set() and (rest := end - self._clock.now()) > 0:
            if self._clock.wait(changed, min(rest, 0.5)):
                return

    def _forked(self) -> None:
        """Any lock may be held by a thread that is not here, and no other thread's look will ever end."""
        self._lock = threading.Lock()
        for state in [*self._jobs.values(), *self._strangers.values()]:
            state.lock, state.flight = threading.Lock(), None

    def _spread(self, seconds: float) -> float:
        return seconds * self._dice.uniform(0.8, 1.2)

    # --- one lookup

    def _state(self, job: str) -> _Job:
        """What is kept of a job: for ever once something is known of it, else for as long as somebody asks."""
        state = self._jobs.get(job)
        if state is None:
            with self._lock:
                state = self._strangers.get(job)
                if state is None:
                    state = self._strangers[job] = _Job(self._timing)
            self._lately.append(state)
        return state

    def _look(
        self, job: str, state: _Job, timeout: float, watcher: "_Waker | None" = None, *, stale: bool = False
    ) -> Answer:
        """Ask the agent, else the stores."""
        if self._snapshots is not None:
            started = self._clock.now()
            answer = self._from_snapshot(job, state, self._snapshots, timeout)
            if answer is not None:
                return answer
            timeout -= self._clock.now() - started
        try:
            # What a watch asks sets its own watch, so it is asked by itself.
            return (
                self._together(job, state, timeout) if watcher is None else self._lookup(job, state, timeout, watcher)
            )
        except Unreachable:
            if stale and state.knowledge.known is not None:
                return self._answer(job, state, stale=True)
            raise

    def _from_snapshot(self, job: str, state: _Job, snapshots: Snapshots, timeout: float) -> Answer | None:
        """Ask the agent; None if there is nothing to be believed, and the stores must be asked."""
        snapshot = snapshots.find(job) or snapshots.ask(job, min(AGENT_PATIENCE, timeout * AGENT_SHARE))
        if snapshot is None:
            return None
        heard, known = state.heard
        if (
            heard is not snapshot or known is not state.knowledge.known
        ):  # else nothing has changed since it was believed
            with state.lock:
                if not state.knowledge.hear_snapshot(snapshot):
                    if state.knowledge.doubted_by(snapshot):
                        state.audit_due = 0.0
                    return None
                state.heard = (snapshot, state.knowledge.known)
                if snapshot.information is not None:
                    self._jobs[job] = state
        if snapshot.information is None:
            raise _NobodySaysAgent(_nobody(job, snapshot.epoch))
        return self._answer(job, state)

    def _together(self, job: str, state: _Job, timeout: float) -> Answer:
        """One look at the stores at a time, for all threads that want one: the others wait for its end."""
        started = self._clock.now()
        deadline = started + timeout
        while True:
            with state.lock:
                flight = state.flight
                if flight is None:
                    own = state.flight = _Flight(self._clock.now(), deadline)
                    break
            if not self._clock.wait(flight.over, max(0.0, deadline - self._clock.now())):
                raise Unreachable(
                    f"No store said within {round(timeout, 3):g} s who leads job {job!r}: another thread is waiting."
                )
            if flight.answered:
                return self._answer(job, state)  # and not the other's answer: by now something newer may be known
            # An error counts only if that look began no earlier than this one, and was given as much time.
            error = flight.error
            if (
                error is not None
                and flight.started >= started
                and (isinstance(error, NoLeader) or flight.deadline >= deadline)
            ):
                raise type(error)(str(error))
        try:
            answer = self._lookup(job, state, deadline - self._clock.now(), None)
        except (NoLeader, Unreachable) as error:
            own.error = type(error)(str(error))  # the others' own: a traceback is one thread's
            raise
        else:
            own.answered = True
            return answer
        finally:
            state.flight = None
            own.over.set()

    def _lookup(self, job: str, state: _Job, timeout: float, watcher: "_Waker | None") -> Answer:
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
        raise Unreachable(
            f"No store said within {round(timeout, 3):g} s who leads job {job!r}. "
            f"ZooKeeper: {sentence} File system: {cause}"
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
            raise NoLeader(_nobody(job, known.epoch if known is not None else 0))
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
            believed = state.knowledge.hear_zookeeper(information, self._clock.now())
            self._jobs[job] = state
            if not believed:
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
            self._jobs[job] = state
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


class _NobodySaysAgent(NoLeader):
    """An agent of this host was told that nobody leads; to look again costs no store anything."""


def _nobody(job: str, epoch: int) -> str:
    if epoch == 0:
        return f"Job {job!r} has never had a leader."
    return f"Job {job!r} has no leader now; the last epoch was {epoch}."


_every: "weakref.WeakSet[Reader]" = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(_every):
        each._forked()  # noqa: SLF001 - our own class


os.register_at_fork(after_in_child=_after_fork)
