"""What an operator does to a job from outside: look at its history, ask its leader to hand over."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_after_delay,
    wait_fixed,
)

from leader import job as job_tree
from leader.errors import InvalidName, NoLeader
from leader.lease import ANYBODY, Lease, Mode, check_contender
from leader.names import HISTORY, RECORD, LeaderDirectory, check_job
from leader.nodes import contenders_path, leader_path
from leader.own import OwnDirectory
from leader.status import pick
from store.bounded import BoundedFiles
from store.errors import NotFound, StoreError
from store.files import Files
from store.zookeeper import Children, Connection, Get, Set, ZooKeeper

ATTEMPTS = 10
"""Tries to change a lease that its leader renews at the same time."""

LOOK = 0.1
"""Seconds between two looks for a successor."""

_HISTORY = re.compile(
    r"([0-9]{10})-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})~([a-z-]+)~([A-Za-z0-9][A-Za-z0-9._-]{0,63})"
)


@dataclass(frozen=True, slots=True, order=True)
class PastGrant:
    """One grant of the past.

    Attributes:
        epoch: of the grant.
        session_id: of the grant.
        reason: why the lease could be seized, in one word.
        contender: who it was granted to.
        at_ms: the file system's wall clock, milliseconds since 1970; for display only.
    """

    epoch: int
    session_id: str
    reason: str
    contender: str
    at_ms: int

    @classmethod
    def parse(cls, name: str, at_ms: int) -> "PastGrant | None":
        """Read the name of an entry; None if it is no grant's."""
        match = _HISTORY.fullmatch(name)
        return cls(int(match[1]), match[2], match[3], match[4], at_ms) if match else None


class Operations:
    """An operator's hand on the jobs under one root."""

    def __init__(self, files: BoundedFiles, zookeeper: ZooKeeper | None, call_timeout: float) -> None:
        """Touch nothing yet.

        Args:
            files: closed by whoever opened it.
            zookeeper: likewise; only makes a request noticed sooner. None if there is none.
            call_timeout: seconds for each store call.
        """
        self._files = files
        self._zookeeper = zookeeper
        self._timeout = call_timeout

    def jobs(self) -> list[str]:
        """Return the names of all jobs, sorted.

        Raises:
            StoreError: the file system did not answer.
        """

        def read(files: Files) -> list[str]:
            try:
                entries = files.list("")
            except NotFound:
                return []  # nobody has used this root yet
            return sorted(entry.name for entry in entries if entry.is_directory and _is_job(entry.name))

        return self._files.call("jobs", read, self._timeout)

    def history(self, job: str) -> list[PastGrant]:
        """Return the job's grants, oldest first.

        Raises:
            NoLeader: there is no such job.
            StoreError: the file system did not answer.
        """
        check_job(job)

        def read(files: Files) -> list[PastGrant]:
            directory = job_tree.find(files, job)
            entries = files.list(f"{job}/{directory.name}/{HISTORY}")
            return sorted(filter(None, (PastGrant.parse(entry.name, entry.modified_ms) for entry in entries)))

        try:
            return self._files.call("history", read, self._timeout)
        except NotFound as error:
            raise NoLeader(f"{error}") from error

    def directory(self, job: str) -> OwnDirectory:
        """Return the job's leader directory as a store: until the next leader claims it.

        Raises:
            NoLeader: there is no such job.
            StoreError: the file system did not answer.
        """
        check_job(job)
        try:
            found = self._files.call("find", lambda files: job_tree.find(files, job), self._timeout)
        except NotFound as error:
            raise NoLeader(f"{error}") from error
        return OwnDirectory(self._files, job, found, self._timeout)

    def lease(self, job: str) -> tuple[LeaderDirectory, Lease]:
        """Return the job's leader directory and lease.

        Raises:
            NoLeader: there is no such job, or it holds no lease.
            StoreError: the file system did not answer.
        """
        check_job(job)
        try:
            directory, record = self._files.call("lease", lambda files: job_tree.read(files, job), self._timeout)
        except NotFound as error:
            raise NoLeader(f"{error}") from error
        if record.lease is None:
            raise NoLeader(f"The record of job {job!r} holds no lease.")
        return directory, record.lease

    def state(self, job: str, directory: LeaderDirectory) -> str | None:
        """Return the job's state as its leader directory says it: one list; None if it says none that is known.

        Raises:
            StoreError: the file system did not answer.
        """
        try:
            entries = self._files.call("state", lambda files: files.list(f"{job}/{directory.name}"), self._timeout)
        except NotFound:
            return None  # the next leader has just claimed it
        found = pick(entry.name for entry in entries)
        return found.status.value if found is not None else None

    def contenders(self, job: str) -> list[str] | None:
        """Return the contenders that have announced themselves in ZooKeeper; None if it does not answer.

        What cannot be a contender's name is somebody else's node and is left out.
        """
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

    def ask_to_hand_over(self, job: str, successor: str = ANYBODY) -> LeaderDirectory:
        """Ask the leader to hand over, and return the leadership that is asked to end.

        The request is a change of the lease's name: the leader finds it when it renews, or at once if ZooKeeper can
        tell it that something has changed.

        Raises:
            InvalidName: the successor cannot be a contender's name.
            NoLeader: nobody leads the job.
            StoreError: the file system did not take the request.
        """
        if successor != ANYBODY:
            check_contender(successor)
        attempts = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(StoreError), reraise=True)
        directory = attempts(self._ask, job, successor)
        self._poke(job)
        return directory

    def handed_over(self, job: str, since: LeaderDirectory, timeout: float) -> tuple[LeaderDirectory, Lease] | None:
        """Wait until that leadership has ended and another has begun; None if it takes more than ``timeout`` seconds.

        Raises:
            StoreError: the file system did not answer.
        """
        looks = Retrying(
            stop=stop_after_delay(timeout), wait=wait_fixed(LOOK), retry=retry_if_result(lambda r: r is None)
        )
        try:
            return looks(self._successor, job, since)
        except RetryError:
            return None

    def _ask(self, job: str, successor: str) -> LeaderDirectory:
        """Try once to mark the lease as it is now; refused if its leader has just renewed it."""
        directory, lease = self.lease(job)
        if lease.mode is Mode.RELEASED:
            raise NoLeader(f"Nobody leads job {job!r}: its lease is free.")
        if lease.successor != successor:
            record = f"{job}/{directory.name}/{RECORD}"
            change = _rename(f"{record}/{lease.name}", f"{record}/{lease.asked_to(successor).name}")
            self._files.call("request", change, self._timeout)
        return directory

    def _successor(self, job: str, since: LeaderDirectory) -> tuple[LeaderDirectory, Lease] | None:
        directory, lease = self.lease(job)
        return (directory, lease) if directory.epoch > since.epoch and lease.owner == directory.session_id else None

    def _poke(self, job: str) -> None:
        """Write the same again into the leader's node: the leader watches it, and looks at HDFS when it changes."""
        if self._zookeeper is None:
            return
        self._zookeeper.start()
        if self._zookeeper.wait(self._timeout) is not Connection.CONNECTED:
            return
        try:
            data, stat = self._zookeeper.call(Get(leader_path(job)), self._timeout)
            self._zookeeper.call(Set(leader_path(job), data, stat.version), self._timeout)
        except StoreError:
            return  # the leader finds the request when it renews


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
