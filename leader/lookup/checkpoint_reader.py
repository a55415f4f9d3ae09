"""CheckpointReader: finds a job's newest checkpoints, in ZooKeeper or else in HDFS.

HDFS is asked about one job at growing intervals, as for its leader. In between, the reader repeats the last answer.
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
from leader.layout.names import HISTORY, LeaderDirectory, check_job
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

# That are remembered: a directory that comes back after a forgotten claim is one of them, or has one in its history.
SESSIONS_PER_JOB = 4


class CheckpointReader:
    """Answers for any number of jobs, from any thread. No answer is older than the one before.

    Raises what :class:`Reader` raises, and Unreadable if HDFS holds a name among the checkpoints that cannot be read.
    """

    def __init__(
        self,
        files: BoundedFiles,  # closed by the caller
        zookeeper: ZooKeeper | None,  # closed by the caller; None if the file system carries everything
        reader: Reader,  # knows the present epoch, and when HDFS may be asked
        clock: Clock = BOOT_CLOCK,  # the host's boot clock, unless in a simulation
        observer: Observer | None = None,  # learns of every answer
    ) -> None:
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
        if known is not None and self._is_same_job(known, state, deadline - self._clock.now()):
            state = _floor(known, state)
        self._newest[job] = state
        sessions = self._sessions.setdefault(job, deque(maxlen=SESSIONS_PER_JOB))
        if state.session_id not in sessions:
            sessions.append(state.session_id)
        return state

    def retained(self, job: str, timeout: float = 2.0) -> dict[str, list[Checkpoint]]:
        """Return all checkpoints that HDFS holds, by query, the newest one last, within ``timeout`` seconds."""
        found, _ = self._list(check_job(job), None, timeout)
        return {query: found.retained(query) for query in found.entries}

    def _is_same_job(self, known: CheckpointState, state: CheckpointState, timeout: float) -> bool:
        """Whether the state is not that of another job of the same name, which somebody has created since."""
        # An epoch that is no higher, with another session, comes of a claim that was listed and then forgotten, too.
        # The history of the leader directory then has a session that was known.
        job, sessions = state.job, self._sessions[state.job]
        if state.epoch > known.epoch or state.session_id in sessions:
            return True
        place = f"{job}/{LeaderDirectory(state.epoch, state.session_id).name}/{HISTORY}"
        try:
            lines = self._files.call("history", lambda files: files.list(place), timeout)
        except StoreError as error:
            raise Unreachable(f"The history of job {job!r} cannot be read: {error}") from error
        return any(session in each.name for each in lines for session in sessions)

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


def _floor(known: CheckpointState, state: CheckpointState) -> CheckpointState:
    """Return the state, raised to what is already known."""
    behind = {query: newest for query, newest in known.latest.items() if _is_behind(state.latest, newest)}
    return replace(
        state, next_id=max(state.next_id, known.next_id), latest=MappingProxyType({**state.latest, **behind})
    )


def _is_behind(latest: Mapping[str, Checkpoint], newest: Checkpoint) -> bool:
    """Whether a query's newest checkpoint in ``latest`` is older than this one, or missing."""
    found = latest.get(newest.query)
    return found is None or found.order < newest.order


def _newer(state: CheckpointState, known: CheckpointState) -> bool:
    if state.epoch != known.epoch:
        return state.epoch > known.epoch
    behind = any(_is_behind(state.latest, newest) for newest in known.latest.values())
    return state.session_id == known.session_id and state.next_id >= known.next_id and not behind
