"""What a Python worker has looked up, and its client; of its own after a fork, and of each cluster it is told of."""

import os
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ha.client import Client
from ha.settings import load
from ha.spark.kept import Kept
from ha.spark.task import PREFIX, Told, settings_of
from leader.answers import Answer
from leader.errors import NoLeader
from leader.names import check_job
from leader.nodes import checkpoints_path, leader_path
from leader.reader import AGENT_PATIENCE, AGENT_SHARE
from store.clock import now

if TYPE_CHECKING:
    from leader.checkpoint_state import CheckpointState

TIMEOUT = 2.0
"""Seconds in which a lookup ends, whatever is down."""

FIRST_CONNECTION = 0.3
"""Seconds of the first lookup in which to connect; it takes some 10 ms if ZooKeeper is there at all."""

MOST_KEPT = 1024
"""Jobs whose answers are kept, in the order in which they were asked for first; the others are asked for every time."""

MOST_CLUSTERS = 8
"""Different settings that the tasks of one worker can have at a time; whoever came first makes room."""


class Lookups:
    """What one worker process knows of one cluster, and its client."""

    def __init__(self, told: Told) -> None:
        """Connect to nothing yet.

        Args:
            told: settings that count before those of the environment.

        Raises:
            InvalidSettings: one of them, or of the environment's, is wrong.
        """
        self.client = Client(load(dict(told), source=f"Spark's properties {PREFIX}*"))
        self._connected = False
        self._leaders: dict[str, Kept[Answer]] = {}
        self._checkpoints: dict[str, Kept[CheckpointState]] = {}

    def leader(self, job: str, timeout: float = TIMEOUT) -> Answer:
        """Return who leads, within ``timeout`` seconds."""
        kept = self._leaders.get(job)
        try:
            told = self.client.told(job, timeout)
        except NoLeader:
            told = self.client.leader(job, _left(timeout))  # which waits for the next one, if there was one
        else:
            if told is None:
                return self._keep(job, kept, _left(timeout))
        if kept is not None:
            kept(None)  # what is kept may be older
        return told

    def report(self, job: str, session_id: str, timeout: float) -> Answer:
        """Say that this leader refused, and return who leads, asked of HDFS unless there is another one."""
        answer = self.client.report(job, session_id, timeout)
        if (kept := self._leaders.get(job)) is not None:
            kept(None)  # what is kept may be older
        return answer

    def _keep(self, job: str, kept: Kept[Answer] | None, timeout: float) -> Answer:
        """Answer without an agent."""
        timeout = self._connect(timeout)
        if kept is None and len(self._leaders) >= MOST_KEPT:
            return self.client.leader(job, timeout)
        if kept is None:
            made = Kept(
                self.client, leader_path(check_job(job)), partial(self.client.leader, job), lambda answer: answer.age
            )
            kept = self._leaders.setdefault(job, made)
        return kept.get(timeout)

    def checkpoint(self, job: str) -> "CheckpointState":
        """Return the newest checkpoints."""
        self._connect(TIMEOUT)
        kept = self._checkpoints.get(job)
        if kept is None and len(self._checkpoints) >= MOST_KEPT:
            return self._ask_checkpoint(job, TIMEOUT)
        if kept is None:
            made = Kept(self.client, checkpoints_path(check_job(job)), partial(self._ask_checkpoint, job))
            kept = self._checkpoints.setdefault(job, made)
        return kept.get(TIMEOUT)

    def _connect(self, timeout: float) -> float:
        """Connect to ZooKeeper, or go on trying in the background; returns what is left of the time.

        It waits only the first time, and 0.3 s at most. Importing kazoo is not waiting: where hundreds of workers start
        on one host that alone takes seconds, and the stores would have no time left to answer in.
        """
        if self._connected:
            return timeout
        share = 0.0
        if (zookeeper := self.client._stores.zookeeper) is not None:  # noqa: SLF001  # see Kept
            zookeeper.start()  # now: a watch can be set only when there is a connection
            share = min(FIRST_CONNECTION, timeout / 4)
            zookeeper.wait(share)
        self._connected = True
        return timeout - share

    def _ask_checkpoint(self, job: str, timeout: float) -> "CheckpointState":
        end = now() + timeout
        with suppress(NoLeader):  # its checkpoints are there nevertheless
            self.leader(job)  # which tells the client whose copy in ZooKeeper counts
        return self.client.checkpoint(job, max(0.1, end - now()))


def _left(timeout: float) -> float:
    """Seconds of these for the stores, after an agent did not answer."""
    return timeout - min(AGENT_PATIENCE, timeout * AGENT_SHARE)


_present: tuple[Any, Lookups] | None = None
"""The task that asked last, and its lookups: the same for all calls of a task."""

_clusters: dict[Told, Lookups] = {}
_inherited: list[Lookups] = []
_starting = threading.Lock()


def lookups_of(task: Any) -> Lookups:
    """Return this process's lookups for what a task was told, made at the first use.

    Raises:
        InvalidSettings: one of its settings, or of the environment's, is wrong.
    """
    present = _present
    return present[1] if present is not None and present[0] is task else _enter(task)


def _enter(task: Any) -> Lookups:
    """Find what an earlier task of this worker has left, or make it."""
    global _present  # noqa: PLW0603  # a worker executes one task at a time
    told = settings_of(task)
    with _starting:
        found = _clusters.get(told)
        if found is None:
            for each in _inherited:
                each.client.close()  # gives the parent's descriptors back; its threads are not here
            found = Lookups(told)
            while len(_clusters) >= MOST_CLUSTERS:
                _clusters.pop(next(iter(_clusters))).client.close()
            _clusters[told] = found
        _present = (task, found)
    return found


def _after_fork() -> None:
    """Forget everything: any lock of the parent's may be held by a thread that is not here."""
    global _present, _starting
    _inherited.extend(_clusters.values())  # kept for ever: some destructors would wait for the parent's threads
    _clusters.clear()
    _present, _starting = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
