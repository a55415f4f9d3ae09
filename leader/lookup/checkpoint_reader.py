"""CheckpointReader: finds a job's newest checkpoints, in ZooKeeper or else in HDFS.

HDFS is asked less and less often about one job, as for its leader. In between, the reader repeats the last answer.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from leader.errors import NoLeader, Unreachable
from leader.layout import checkpoint_list, checkpoint_state
from leader.layout.checkpoint import Checkpoint
from leader.layout.checkpoint_list import CheckpointList
from leader.layout.checkpoint_state import CheckpointState
from leader.layout.names import LeaderDirectory, check_job
from leader.layout.tree import READ_ATTEMPTS, find
from leader.layout.znodes import checkpoints_path
from leader.lookup.job_lookup import ZOOKEEPER_SHARE
from leader.lookup.observed import CheckpointsRead
from leader.lookup.rate_limit import JobRateLimit
from leader.lookup.reader import Reader
from leader.observer import Observer
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock
from store.errors import NotFound, StoreError
from store.files import Files
from store.zookeeper import Connection, Get, ZooKeeper

SESSIONS_PER_JOB = 4
"""Sessions of each job: a leader directory that comes back, because a claim was forgotten, is one of the last."""


class CheckpointReader:
    """Answers for any number of jobs, from any thread. No answer is older than the one before.

    Raises:
        InvalidName: the argument is not a job's name.
        NoLeader: there is no such job.
        Unreachable: no store answered in time.
        Unreadable: HDFS holds a name among the checkpoints that cannot be read.
    """

    def __init__(
        self,
        files: BoundedFiles,
        zookeeper: ZooKeeper | None,
        reader: Reader,
        clock: Clock = BOOT_CLOCK,
        observer: Observer | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            files: closed by the caller.
            zookeeper: likewise; None if the file system carries everything.
            reader: knows the present epoch, and when HDFS may be asked.
            clock: the host's boot clock, unless in a simulation.
            observer: learns of every answer.
        """
        self._observer = observer
        self._clock = clock
        self._files = files
        self._zookeeper = zookeeper
        self._reader = reader
        self._newest: dict[str, CheckpointState] = {}
        self._sessions: dict[str, deque[str]] = {}
        self._limits: dict[str, JobRateLimit] = {}

    def checkpoint(self, job: str, timeout: float = 2.0) -> CheckpointState:
        """Return the job's next checkpoint id and each query's newest checkpoint, within ``timeout`` seconds."""
        started = self._clock.now()
        state = self._checkpoint(check_job(job), started + timeout, timeout)
        if self._observer is not None:
            self._observer(job, CheckpointsRead(started, state))
        return state

    def _checkpoint(self, job: str, deadline: float, timeout: float) -> CheckpointState:
        state = self._from_zookeeper(job, timeout * ZOOKEEPER_SHARE)
        known = self._newest.get(job)
        if state is None or (known is not None and not _newer(state, known)):
            if known is not None and not self._may_ask_files(job):
                return known
            state = self._from_files(job, known, deadline - self._clock.now())
        # A NameNode lists changes that its journal may lose, so HDFS itself can go back by unacknowledged changes.
        state = self._floor(known, state) if known is not None else state
        self._newest[job] = state
        self._sessions.setdefault(job, deque(maxlen=SESSIONS_PER_JOB)).append(state.session_id)
        return state

    def retained(self, job: str, timeout: float = 2.0) -> dict[str, list[Checkpoint]]:
        """Return all checkpoints that HDFS holds, by query, the newest one last, within ``timeout`` seconds."""
        found, _ = self._list(check_job(job), None, timeout)
        return {query: found.retained(query) for query in found.entries}

    def _floor(self, known: CheckpointState, state: CheckpointState) -> CheckpointState:
        """Return the state, raised to what is already known, unless the job is another one of the same name."""
        forgotten = state.session_id in self._sessions[state.job]  # a claim was listed and has been forgotten
        if state.epoch < known.epoch and not forgotten:
            return state
        if state.epoch == known.epoch and state.session_id != known.session_id:
            return state
        behind = {query: newest for query, newest in known.latest.items() if _is_behind(state.latest, newest)}
        return replace(
            state, next_id=max(state.next_id, known.next_id), latest=MappingProxyType({**state.latest, **behind})
        )

    def _from_zookeeper(self, job: str, timeout: float) -> CheckpointState | None:
        if self._zookeeper is None or self._zookeeper.state is not Connection.CONNECTED:
            return None
        try:
            data, _ = self._zookeeper.call(Get(checkpoints_path(job)), timeout)
        except StoreError:
            return None
        state = checkpoint_state.decode(data, job)
        # The mirror counts only under the leader whose epoch ZooKeeper and HDFS agree on.
        return state if state is not None and self._reader.epoch_is(job, state.epoch, state.session_id) else None

    def _may_ask_files(self, job: str) -> bool:
        """Whether HDFS may be asked again about the job; if so, take the tokens."""
        limit = self._limits.get(job)
        return limit is None or self._reader.rate_limit.try_acquire(limit)

    def _from_files(self, job: str, known: CheckpointState | None, timeout: float) -> CheckpointState:
        last = LeaderDirectory(known.epoch, known.session_id) if known is not None else None
        found, directory = self._list(job, last, timeout)
        limit = self._limits.get(job)
        if limit is None:
            limit = self._limits[job] = self._reader.rate_limit.of_job()
        limit.answered(self._clock.now(), news=False)  # otherwise each batch would be news
        return found.state(job, directory)

    def _list(self, job: str, last: LeaderDirectory | None, timeout: float) -> tuple[CheckpointList, LeaderDirectory]:
        def read(files: Files) -> tuple[list[str], LeaderDirectory]:
            directory = last
            for _ in range(READ_ATTEMPTS - 1):
                directory = directory or find(files, job)
                try:
                    return checkpoint_list.names(files, job, directory), directory
                except NotFound:
                    directory = None
            directory = find(files, job)
            return checkpoint_list.names(files, job, directory), directory

        try:
            names, directory = self._files.call("checkpoints", read, timeout)
        except NotFound as error:
            raise NoLeader(f"{error}") from error
        except StoreError as error:
            raise Unreachable(f"The checkpoints of job {job!r} cannot be read: {error}") from error
        return checkpoint_list.parse(names, job, directory), directory


def _is_behind(latest: Mapping[str, Checkpoint], newest: Checkpoint) -> bool:
    """Whether a query's newest checkpoint in ``latest`` is older than this one, or missing."""
    found = latest.get(newest.query)
    return found is None or found.order < newest.order


def _newer(state: CheckpointState, known: CheckpointState) -> bool:
    if state.epoch != known.epoch:
        return state.epoch > known.epoch
    behind = any(_is_behind(state.latest, newest) for newest in known.latest.values())
    return state.session_id == known.session_id and state.next_id >= known.next_id and not behind
