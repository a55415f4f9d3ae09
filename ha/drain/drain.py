"""Drain: bars a host's contender from its jobs, and moves the leaderships that it holds, a few at a time.

A repeated request resumes an interrupted drain: bars are written once, and moved jobs have other leaders. Decision 60.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import msgspec

from ha.config.stores import Stores
from leader.errors import Fenced, LeaderError, NoLeader
from leader.job import barring
from leader.job.admin import JobAdmin
from leader.layout.bar import Bar, bars
from leader.layout.checkpoint import CheckpointEntry
from leader.layout.hosts import covers
from leader.layout.lease import ANYBODY, Mode
from leader.layout.names import CHECKPOINTS, LeaderDirectory
from store.clock import BOOT_CLOCK, Clock
from store.errors import PermissionDenied, StoreError
from store.files import DIRECTORY_MODE, Files

READERS = 8  # jobs that are looked at, or barred, at the same time
POLL_S = 0.5  # seconds between two looks for a completed batch
TELL_S = 10.0  # seconds between two lines about a job that is waited for
LOOKS = 3  # tries while leaders claim a job between two calls
NOT_YOURS = "another user's job, which you may not read"


class SeenJob(msgspec.Struct, frozen=True):
    """One job, as it was last seen."""

    job: str  # its name
    epoch: int  # of its newest leadership
    holder: str | None  # the contender that holds the lease; None if it is free
    contenders: list[str] | None  # that have announced themselves in ZooKeeper; None if ZooKeeper does not answer
    barred: frozenset[str] = frozenset()  # contenders, and hosts, that may not take it over now
    checkpoint: int = 0  # id of its newest completed checkpoint; 0 if it has none

    def involves(self, host: str) -> bool:
        """Whether that host contends for the job, or may do so unseen."""
        return self.contenders is None or any(covers(host, each) for each in self.contenders) or self.led_by(host)

    def led_by(self, host: str) -> bool:
        """Whether that host holds its lease."""
        return self.holder is not None and covers(host, self.holder)

    def successors(self, host: str, drained: Collection[str]) -> list[str] | None:
        """The contenders that may take the job over from a host; None if they are unknown."""
        if self.contenders is None:
            return None
        barred = {host, *drained, *self.barred}
        return [each for each in self.contenders if not any(covers(name, each) for name in barred)]


class DrainPlan(msgspec.Struct, frozen=True):
    """What is to be done."""

    bar: list[SeenJob]  # jobs from which the host is barred
    move: list[SeenJob]  # jobs that it leads, and that others can lead
    stuck: list[SeenJob]  # jobs that it leads, and that have no other contender: they are left alone


def plan(seen: Iterable[SeenJob], host: str, drained: Collection[str]) -> DrainPlan:
    """Decide about each job. A job that only this host contends for is left alone, whether it leads it or waits."""
    involved = [each for each in seen if each.involves(host)]
    alone = [
        each for each in involved if each.successors(host, drained) == [] and (each.holder is None or each.led_by(host))
    ]
    bar = [each for each in involved if each not in alone]
    return DrainPlan(bar, [each for each in bar if each.led_by(host)], [each for each in alone if each.led_by(host)])


def least_loaded(candidates: Collection[str], leads: Counter[str]) -> str:
    """The contender that leads the fewest jobs, by name among equals; it is counted as the leader of one more."""
    chosen = min(candidates, key=lambda each: (leads[each], each))
    leads[chosen] += 1
    return chosen


class MovedJob(msgspec.Struct, frozen=True):
    """One leadership that has moved.

    Attributes:
        job: its name.
        epoch: of the next leadership.
        to: the contender that leads it.
        seconds: from the request to a completed batch of it, or to its grant if the job has never completed any.
        checkpoint: id of that batch's checkpoint; null if the job has none.
    """

    job: str
    epoch: int
    to: str
    seconds: float
    checkpoint: int | None


class LeftJob(msgspec.Struct, frozen=True):
    """One job that the host still leads, or whose next leader has not completed a batch, and why."""

    job: str
    why: str


class Drained(msgspec.Struct, frozen=True):
    """How a drain has ended: it is complete if nothing is left."""

    host: str
    barred: int
    moved: list[MovedJob]
    left: list[LeftJob]


Note = Callable[[Callable[[Files], None]], object]
"""Has a change made to the orders beside all jobs."""


def for_all_users(stores: Stores) -> Note:
    """Return what makes folders that each user of the root can read, whatever the mode of the jobs' own is."""

    def note(change: Callable[[Files], None]) -> None:
        with closing(stores.open(stores.settings.stores.files, DIRECTORY_MODE)) as files:
            files.call("drain", change, stores.patience)

    return note


class HostDrain:
    """The drain of one host."""

    def __init__(
        self,
        admin: JobAdmin,
        note: Note,
        order: Bar,
        wall: float,
        tell: Callable[[str], None] = lambda _: None,
        clock: Clock = BOOT_CLOCK,
    ) -> None:
        """Do nothing yet."""
        # `note`: as :func:`for_all_users` makes it. `order`: the host, as `known_as` spells it; until when, by whom and
        # why. `wall`: seconds since 1970, to tell which other bars are over. `tell`: takes a line for people; called
        # from several threads. `clock`: measures and waits.
        self._admin, self._note, self._order, self._wall = admin, note, order, wall
        self._tell, self._clock = tell, clock
        self._host = order.contender
        self._lock = threading.Lock()
        self._leads: Counter[str] = Counter()
        self._drained: set[str] = set()
        self._closed: list[str] = []  # jobs of others that this user may not read

    def run(self, timeout: float, concurrency: int) -> Drained:
        """Drain the host."""
        # `timeout`: seconds for all of it. `concurrency`: leaderships that move at the same time.
        # StoreError: the file system does not answer; ask again.
        deadline = self._clock.now() + timeout
        self._drained = self._in_force(self._admin.call("drained", barring.drained).values()) - {self._host}
        seen = self._look(self._admin.jobs())
        wanted = plan(seen, self._host, self._drained)
        self._leads = Counter(each.holder for each in seen if each.holder)
        stuck = [LeftJob(each.job, "no other contender may lead it: start one elsewhere") for each in wanted.stuck]
        unknown = f"{NOT_YOURS}, so it is not known whether {self._host} leads it"
        closed = [LeftJob(each, unknown) for each in self._closed]
        if stuck and not wanted.move:
            return Drained(self._host, 0, [], [*stuck, *closed])
        self._admin.call("root", lambda files: files.make_root())  # with the mode of the jobs' own directories
        self._note(lambda files: barring.drain(files, self._order))
        done: list[MovedJob | LeftJob] = [*stuck, *closed, *self._bar(wanted)]
        with ThreadPoolExecutor(concurrency, "ha-drain") as crew:
            done += crew.map(lambda each: self._move(each, deadline), wanted.move)
        done += self._back(wanted, done, deadline)
        moved = [each for each in done if isinstance(each, MovedJob)]
        return Drained(self._host, len(wanted.bar), moved, [each for each in done if isinstance(each, LeftJob)])

    def _back(self, wanted: DrainPlan, done: Iterable[MovedJob | LeftJob], deadline: float) -> list[MovedJob | LeftJob]:
        """Look once more: a release that was heard may have been seized here before the bar was read."""
        left = {each.job for each in done if isinstance(each, LeftJob)}
        again = [each for each in self._look(each.job for each in wanted.bar) if each.led_by(self._host)]
        return [self._move(each, deadline) for each in again if each.job not in left]

    # --- looking

    def _look(self, jobs: Iterable[str]) -> list[SeenJob]:
        with ThreadPoolExecutor(READERS, "ha-drain") as crew:
            return [each for each in crew.map(self._seen, jobs) if each is not None]

    def _seen(self, job: str) -> SeenJob | None:
        """Look at a job; None if it has gone, or holds no lease."""
        for _ in range(LOOKS):
            with suppress(Fenced):  # a leader has claimed the job between two calls
                try:
                    return self._look_once(job)
                except NoLeader:
                    return None
                except PermissionDenied:
                    self._closed.append(job)
                    return None
        return self._look_once(job)

    def _look_once(self, job: str) -> SeenJob:
        leader, record = self._admin.record(job)
        lease = record.lease
        assert lease is not None, "a record that was returned has a lease"
        return SeenJob(
            job,
            leader.epoch,
            lease.contender if lease.mode is not Mode.RELEASED else None,
            self._admin.contenders(job),
            frozenset(self._in_force(bars(record).values()) - {self._host}),
            self._checkpoint(job, leader),
        )

    def _checkpoint(self, job: str, leader: LeaderDirectory) -> int:
        entries = self._admin.directory(job, leader).list(CHECKPOINTS)
        found = filter(None, (CheckpointEntry.parse(entry.name) for entry in entries))
        return max((each.checkpoint.id for each in found), default=0)

    def _in_force(self, found: Iterable[Bar]) -> set[str]:
        return {each.contender for each in found if each.until > self._wall}

    # --- changing

    def _bar(self, wanted: DrainPlan) -> list[LeftJob]:
        """Bar the host from its jobs; returns those where that failed and that it may lead later."""

        def one(seen: SeenJob) -> LeftJob | None:
            try:
                barring.bar(self._admin, seen.job, self._order)
            except (LeaderError, StoreError) as error:
                return LeftJob(seen.job, f"it is not barred: {error}")
            return None

        with ThreadPoolExecutor(READERS, "ha-drain") as crew:
            failed = list(filter(None, crew.map(one, wanted.bar)))
        self._tell(f"{self._host} is barred from {len(wanted.bar) - len(failed)} jobs and leads {len(wanted.move)}.")
        return failed

    def _move(self, seen: SeenJob, deadline: float) -> MovedJob | LeftJob:
        """Move one leadership, and wait for a batch of the next one."""
        try:
            began, after = self._clock.now(), self._hand_over(seen, deadline)
            if after is None:
                return LeftJob(seen.job, "it was not taken over in time: see `ha job list` and its leader's log")
            if not after.checkpoint or self._completes(after, deadline):
                return self._moved(after, began)
        except (LeaderError, StoreError) as error:
            return LeftJob(seen.job, f"{error}")
        return LeftJob(seen.job, f"{after.holder} leads it and has completed no batch in time: that needs input")

    def _moved(self, after: SeenJob, began: float) -> MovedJob:
        seconds = round(self._clock.now() - began, 3)
        newest = self._seen(after.job) or after
        to = newest.holder or after.holder or ""
        moved = MovedJob(after.job, newest.epoch, to, seconds, newest.checkpoint or None)
        batch = f", completed a batch after {seconds:g} s" if moved.checkpoint else ""
        self._tell(f"{moved.job}: {moved.to} leads epoch {moved.epoch}{batch}")
        return moved

    def _hand_over(self, seen: SeenJob, deadline: float) -> SeenJob | None:
        """Ask until another contender leads; None if that takes too long."""
        now: SeenJob | None = seen
        while now is not None and self._clock.now() < deadline:
            if now.holder is not None and not now.led_by(self._host):
                return now
            if now.holder is None:
                self._clock.sleep(POLL_S)
            else:
                with suppress(NoLeader):  # it has just given its lease back
                    before = self._admin.ask_to_hand_over(seen.job, self._successor(now), self._order.by)
                    if before is not None:
                        self._admin.handed_over(seen.job, before, max(0.0, deadline - self._clock.now()))
            now = self._seen(seen.job)
        return None

    def _successor(self, seen: SeenJob) -> str:
        candidates = seen.successors(self._host, self._drained)
        if not candidates:
            return ANYBODY  # they are unknown; the bar keeps the job from coming back here
        with self._lock:
            return least_loaded(candidates, self._leads)

    def _completes(self, after: SeenJob, deadline: float) -> bool:
        """Wait for a batch that no earlier leader has completed: one more than there was after the change."""
        begun = told = self._clock.now()
        while (at := self._clock.now()) < deadline:
            now = self._seen(after.job)
            if now is not None and now.checkpoint > after.checkpoint:
                return True
            if at >= told + TELL_S:
                told = at
                self._tell(f"{after.job}: {after.holder} leads it, and has completed no batch in {at - begun:.0f} s.")
            self._clock.sleep(POLL_S)
        return False
