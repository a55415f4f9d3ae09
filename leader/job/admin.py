"""JobAdmin: an operator's view of a job from outside. It reads the history, or asks the leader to hand over."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_after_delay,
    wait_fixed,
)

from leader.errors import Fenced, InvalidName, Leaderless, NoLeader, Paused
from leader.job import grants
from leader.job.exceptions import Exceptions, JobException
from leader.job.fenced_directory import LOOKS, FencedDirectory
from leader.layout import tree as job_tree
from leader.layout.information import Record
from leader.layout.lease import ANYBODY, LOOK, PAUSED, Lease, Mode, check_contender
from leader.layout.names import HISTORY, RECORD, LeaderDirectory, check_job
from leader.layout.pause import present
from leader.layout.znodes import contenders_path, leader_path
from store.bounded import BoundedFiles
from store.errors import NotFound, StoreError, Unknown
from store.files import Files
from store.outcome import doubts
from store.zookeeper import Children, Connection, Get, Set, ZooKeeper

T = TypeVar("T")

ATTEMPTS = 10  # tries to change a lease that its leader renews at the same time
POLL_S = 0.1  # seconds between two looks for a successor


class JobAdmin:
    """An operator's access to the jobs under one root; takes no lease."""

    # Unless it says otherwise, a method raises StoreError if the file system does not answer, NoLeader without the job.

    def __init__(self, files: BoundedFiles, zookeeper: ZooKeeper | None, call_timeout: float) -> None:
        """Connect to nothing yet; the caller closes the stores. With ZooKeeper a leader notices a request sooner."""
        self._files = files
        self._zookeeper = zookeeper
        self._timeout = call_timeout

    def call(self, name: str, change: Callable[[Files], T]) -> T:
        """Make some calls to the file system beside all jobs, within the call time-out; metrics count them by name."""
        found: T = self._files.call(name, change, self._timeout)
        return found

    def jobs(self) -> list[str]:
        """Return the names of all jobs, sorted."""

        def read(files: Files) -> list[str]:
            try:
                entries = files.list("")
            except NotFound:
                return []  # no job has used this root yet
            return sorted(entry.name for entry in entries if entry.is_directory and _is_job(entry.name))

        return self._files.call("jobs", read, self._timeout)

    def history(self, job: str) -> list[grants.PastGrant]:
        """Return the job's grants, oldest first."""
        check_job(job)

        def read(files: Files) -> list[grants.PastGrant]:
            directory = job_tree.find(files, job)
            entries = files.list(f"{job}/{directory.name}/{HISTORY}")
            return grants.read(entries)

        try:
            return self._files.call("history", read, self._timeout)
        except NotFound as error:
            raise NoLeader(f"{error}") from error

    def exceptions(self, job: str) -> list[JobException]:
        """Return the newest failures of the job, oldest first."""
        for _ in range(LOOKS):
            with suppress(Fenced):  # a leader has claimed the job between two calls
                return Exceptions(self.directory(job)).list()
        return Exceptions(self.directory(job)).list()

    def directory(self, job: str, known: LeaderDirectory | None = None) -> FencedDirectory:
        """Return the job's leader directory as a store; the next leader's claim fences it. No call if it is known."""
        check_job(job)
        if known is None:
            try:
                known = self._files.call("find", lambda files: job_tree.find(files, job), self._timeout)
            except NotFound as error:
                raise NoLeader(f"{error}") from error
        return FencedDirectory(self._files, job, known, self._timeout)

    def lease(self, job: str) -> tuple[LeaderDirectory, Lease]:
        """Return the job's leader directory and lease; raises as :meth:`record` does."""
        directory, record = self.record(job)
        assert record.lease is not None, "it was looked at"
        return directory, record.lease

    def record(self, job: str) -> tuple[LeaderDirectory, Record]:
        """Return the job's leader directory and record; NoLeader also if the record holds no lease."""
        check_job(job)
        try:
            directory, record = self._files.call("lease", lambda files: job_tree.read(files, job), self._timeout)
        except NotFound as error:
            raise NoLeader(f"{error}") from error
        if record.lease is None:
            raise NoLeader(f"The record of job {job!r} holds no lease.")
        return directory, record

    def contenders(self, job: str) -> list[str] | None:
        """Return the contenders that have announced themselves in ZooKeeper; None if ZooKeeper does not answer."""
        if self._zookeeper is None:
            return None
        self._zookeeper.start()
        if self._zookeeper.wait(self._timeout) is not Connection.CONNECTED:
            return None
        try:
            found: list[str] = self._zookeeper.call(Children(contenders_path(check_job(job))), self._timeout)
        except NotFound:
            return []
        except StoreError:
            return None
        return sorted(filter(_is_contender, found))

    def ask_to_hand_over(self, job: str, successor: str = ANYBODY, operator: str = "") -> LeaderDirectory | None:
        """Ask the leader to hand over, and return the leadership that will end; None if the successor leads already.

        The request is a change of the lease's name. The leader finds it when it renews the lease, or at once if
        ZooKeeper can tell it. If the same was asked before, and the lease is free meanwhile, that leadership is
        returned.

        Args:
            job: name of the job.
            successor: contender that should lead next; default: any.
            operator: who asks, for the history; empty to write nothing there.

        Raises:
            InvalidName: the successor cannot be a contender's name.
            NoLeader: the job has no leader.
            Paused: no process may take over.
            Unknown: it may have been asked; the message says what to do.
        """
        if successor != ANYBODY:
            check_contender(successor)
        remedy = f"see `ha job list`, and ask again if epoch and holder of {job} stay the same"
        with doubts(f"the leader of job {job!r} is asked to hand over", remedy):
            try:
                directory, leader = self._mark(
                    job, lambda lease: lease if lease.contender == successor else lease.asked_to(successor)
                )
            except Leaderless:
                directory, lease = self.lease(job)
                if lease.mode is Mode.RELEASED and lease.successor and successor in (ANYBODY, lease.successor):
                    return directory
                raise
        if leader == successor:
            return None
        if operator:
            grants.record_operator(self._files, job, directory, operator, leader, self._timeout)
        self.poke(job)
        return directory

    def handed_over(self, job: str, since: LeaderDirectory, timeout: float) -> tuple[LeaderDirectory, Lease] | None:
        """Wait until a leadership has ended and another one has begun; None after ``timeout`` seconds."""
        looks = Retrying(
            stop=stop_after_delay(timeout), wait=wait_fixed(POLL_S), retry=retry_if_result(lambda r: r is None)
        )
        try:
            return looks(self._successor, job, since)
        except RetryError:
            return None

    def check_led(self, job: str) -> None:
        """Raise ``NoLeader`` if the job's lease has no holder. A holder may be dead; then the next one answers."""
        if self.lease(job)[1].mode is Mode.RELEASED:
            raise _free(job)

    def ask_to_look(self, job: str) -> None:
        """Have the leader look for requests: it finds this when it renews the lease. NoLeader without one."""
        self._mark(job, Lease.asked_to_look)
        self.poke(job)

    def _mark(self, job: str, mark: Callable[[Lease], Lease]) -> tuple[LeaderDirectory, str]:
        """Mark the present lease, and return whose it is; that is refused if its leader has just renewed it."""
        # If the answer is lost and that leadership is over when it looks again, that one was asked: no second one is.
        perhaps: tuple[LeaderDirectory, str] | None = None
        for attempt in attempts():
            with attempt:
                directory, record = self.record(job)
                lease = record.lease
                assert lease is not None, "it was looked at"
                if perhaps is not None and (directory != perhaps[0] or lease.mode is Mode.RELEASED):
                    return perhaps
                try:
                    return self._mark_once(job, directory, record, mark)
                except Unknown:
                    perhaps = directory, lease.contender
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _mark_once(
        self, job: str, directory: LeaderDirectory, record: Record, mark: Callable[[Lease], Lease]
    ) -> tuple[LeaderDirectory, str]:
        lease = record.lease
        assert lease is not None, "it was looked at"
        if lease.mode is Mode.RELEASED:
            raise _free(job)
        marked = mark(lease)
        if marked == lease:
            return directory, lease.contender
        if lease.paused and not marked.paused:
            raise Paused(f"Job {job!r} is {present(record)}: it cannot be handed over before `ha job resume {job}`.")
        again = marked.successor in (LOOK, PAUSED)  # each request to look is one more
        if again or marked.successor != lease.successor:
            self.rename_lease(job, directory, lease, marked)
        return directory, lease.contender

    def rename_lease(self, job: str, leader: LeaderDirectory, lease: Lease, marked: Lease) -> None:
        """Replace the lease that was read by a marked one; refused if its leader has just renewed it."""
        record = f"{job}/{leader.name}/{RECORD}"
        change = _rename(f"{record}/{lease.name}", f"{record}/{marked.name}")
        self._files.call("request", change, self._timeout)

    def _successor(self, job: str, since: LeaderDirectory) -> tuple[LeaderDirectory, Lease] | None:
        directory, lease = self.lease(job)
        return (directory, lease) if directory.epoch > since.epoch and lease.owner == directory.session_id else None

    def poke(self, job: str) -> None:
        """Write the leader's node again, unchanged: the leader watches it, and looks at HDFS when it changes."""
        if self._zookeeper is None:
            return
        self._zookeeper.start()
        if self._zookeeper.wait(self._timeout) is not Connection.CONNECTED:
            return
        try:
            data, stat = self._zookeeper.call(Get(leader_path(job)), self._timeout)
            self._zookeeper.call(Set(leader_path(job), data, stat.version), self._timeout)
        except StoreError:
            return  # the leader finds the request when it renews the lease


def attempts() -> Retrying:
    """Return the tries of a change to a lease; the last one's error is raised."""
    known = (StoreError, Fenced)  # a leader has renewed the lease, or has claimed the job, between two calls
    return Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(known), reraise=True)


def _free(job: str) -> Leaderless:
    return Leaderless(f"Job {job!r} has no leader: its lease is free.")


def _rename(old: str, new: str) -> Callable[[Files], None]:
    return lambda files: files.rename(old, new)


def _is_job(name: str) -> bool:
    try:
        return check_job(name) == name
    except InvalidName:
        return False


def _is_contender(name: str) -> bool:
    try:
        return check_contender(name) == name
    except InvalidName:
        return False
