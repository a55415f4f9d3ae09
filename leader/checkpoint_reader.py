"""What is the newest checkpoint: asked of ZooKeeper first, and of HDFS when ZooKeeper will not do.

HDFS is asked about a job less and less often, as for its leader; in between, what it said last is the answer.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from leader import checkpoint_list, checkpoint_state
from leader.checkpoint import Checkpoint
from leader.checkpoint_list import CheckpointList
from leader.checkpoint_state import CheckpointState
from leader.errors import NoLeader, Unreachable
from leader.job import find
from leader.names import LeaderDirectory, check_job
from leader.nodes import checkpoints_path
from leader.pace import Pace
from leader.reader import Reader
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock
from store.errors import NotFound, StoreError
from store.files import Files
from store.zookeeper import Connection, Get, ZooKeeper

ZOOKEEPER_SHARE = 0.4
"""Of a lookup's time for ZooKeeper; the rest is left for HDFS."""

READ_ATTEMPTS = 5
"""A leader directory can be renamed between two lists; as often in a row means that something else is wrong."""

REMEMBERED_SESSIONS = 4
"""Of each job: a leader directory that comes back, because a claim was forgotten, is one of the last."""


class CheckpointReader:
    """Answers for any number of jobs, from any thread; never older than what it answered before."""

    def __init__(
        self, files: BoundedFiles, zookeeper: ZooKeeper | None, reader: Reader, clock: Clock = BOOT_CLOCK
    ) -> None:
        """Read nothing yet; ``reader`` tells which epoch is the present one."""
        self._clock = clock
        self._files = files
        self._zookeeper = zookeeper
        self._reader = reader
        self._newest: dict[str, CheckpointState] = {}
        self._sessions: dict[str, deque[str]] = {}
        self._paces: dict[str, Pace] = {}

    def checkpoint(self, job: str, timeout: float = 2.0) -> CheckpointState:
        """Return the job's checkpoints, within ``timeout`` seconds.

        Raises:
            InvalidName: that is not a job's name.
            NoLeader: there is no such job.
            Unreachable: no store answered in time.
            Unreadable: HDFS was asked, and holds a name there that cannot be read.
        """
        deadline = self._clock.now() + timeout
        state = self._from_zookeeper(check_job(job), timeout * ZOOKEEPER_SHARE)
        known = self._newest.get(job)
        if state is None or (known is not None and not _newer(state, known)):
            if known is not None and self._remembered(job):
                return known
            state = self._from_files(job, known, deadline - self._clock.now())
        # A NameNode lists what its journal may never have, so HDFS itself can go back by what was never acknowledged.
        state = self._floor(known, state) if known is not None else state
        self._newest[job] = state
        self._sessions.setdefault(job, deque(maxlen=REMEMBERED_SESSIONS)).append(state.session_id)
        return state

    def retained(self, job: str, timeout: float = 2.0) -> dict[str, list[Checkpoint]]:
        """Return all checkpoints that HDFS holds of each query, the newest one last, within ``timeout`` seconds.

        Raises:
            InvalidName, NoLeader, Unreachable, Unreadable: as in :meth:`checkpoint`.
        """
        found, _ = self._list(check_job(job), None, timeout)
        return {query: found.retained(query) for query in found.entries}

    def _floor(self, known: CheckpointState, state: CheckpointState) -> CheckpointState:
        """The state, but nothing in it older than what is known; unless it is of another job of the same name."""
        forgotten = state.session_id in self._sessions[state.job]  # a claim was shown, and is no more
        if state.epoch < known.epoch and not forgotten:
            return state
        if state.epoch == known.epoch and state.session_id != known.session_id:
            return state
        behind = {query: told for query, told in known.latest.items() if _older(state.latest, told)}
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
        # The copy counts only under the leader whose epoch ZooKeeper and HDFS agree on.
        return state if state is not None and self._reader.epoch_is(job, state.epoch, state.session_id) else None

    def _remembered(self, job: str) -> bool:
        """Whether HDFS was asked so lately, or so often, that what is known will do."""
        pace = self._paces.get(job)
        return pace is not None and self._reader.sources.due(pace) > 0

    def _from_files(self, job: str, known: CheckpointState | None, timeout: float) -> CheckpointState:
        last = LeaderDirectory(known.epoch, known.session_id) if known is not None else None
        found, directory = self._list(job, last, timeout)
        pace = self._paces.get(job)
        if pace is None:
            pace = self._paces[job] = self._reader.sources.new_pace()
        pace.answered(self._clock.now(), news=False)  # each batch would be some
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


def _older(latest: Mapping[str, Checkpoint], told: Checkpoint) -> bool:
    """Whether the newest checkpoint of that query is an older one than that."""
    found = latest.get(told.query)
    return found is None or found.order < told.order


def _newer(state: CheckpointState, known: CheckpointState) -> bool:
    if state.epoch != known.epoch:
        return state.epoch > known.epoch
    older = any(_older(state.latest, told) for told in known.latest.values())
    return state.session_id == known.session_id and state.next_id >= known.next_id and not older
