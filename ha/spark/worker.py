"""What Python workers ask: where is the job master, what is the newest checkpoint. Cached, and told of changes.

Where an agent runs on the worker's host (``ha agent``, or any ``ha run`` or ``ha daemon``), a worker reads what that
was told, in microseconds, and opens no connection for it. Elsewhere it asks once and then answers from memory until
ZooKeeper's watch goes off or the connection changes; after a tenth of the audit interval it asks again in any case, and
after 1 s while ZooKeeper is away. Checkpoints are always asked for like that.

What it does NOT promise: that a cached address is still the leader's. A leader that is gone refuses or does not
answer, and the epoch in the answer lets the other side refuse what comes from the past.
"""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from ha.client import Client
from ha.settings import load
from leader.answers import Answer
from leader.checkpoint_state import CheckpointState
from leader.errors import InvalidSettings, LeaderError, NoLeader
from leader.names import check_job
from leader.nodes import checkpoints_path, leader_path
from leader.reader import AGENT_PATIENCE
from leader.retrieval import Source
from store.clock import now
from store.errors import StoreError
from store.zookeeper import Connection, Exists

T = TypeVar("T")

TIMEOUT = 2.0
"""Seconds in which a lookup ends, whatever is down."""

LEFT = TIMEOUT - AGENT_PATIENCE
"""Seconds of these for the stores, after an agent did not answer."""

WATCH_TIMEOUT = 0.3
"""Seconds of these to set a watch; without one the answer is just not kept as long."""

FIRST_CONNECTION = 0.3
"""Seconds of the first lookup in which to connect; it takes some 10 ms if ZooKeeper is there at all."""

MOST_KEPT = 1024
"""Jobs whose answers are kept, in the order in which they were asked for first; the others are asked for every time."""

UNWATCHED = 1.0
"""Seconds for which an answer is kept that no watch guards."""

REFRESHES_PER_AUDIT = 10
"""A watched answer is asked for again so often, because the audit's result shows only in the next answer."""

JOB_PROPERTY = "spark.ha.job"


class NoEndpoint(LeaderError):
    """The job has a leader, and it publishes no endpoint of that name; the message says which there are."""


@dataclass(frozen=True, slots=True)
class JobMaster:
    """Where the leader of a job can be reached.

    Attributes:
        job: the job's name.
        address: of the endpoint that was asked for.
        epoch: orders answers; it never goes back.
        session_id: the leader session's UUID, the version of the answer.
        source: where the answer came from when it was asked for last.
    """

    job: str
    address: str
    epoch: int
    session_id: str
    source: Source


def job_master(job: str | None = None, endpoint: str = "jobmaster") -> JobMaster:
    """Return where the job's leader can be reached, from memory if possible, else within 2 s.

    Args:
        job: the job's name; default: Spark's property ``spark.ha.job`` within a task, else ``HA_JOB``.
        endpoint: which of its addresses.

    Raises:
        InvalidName: that is not a job's name.
        InvalidSettings: no job is named, or a setting in the environment is wrong.
        NoEndpoint: the leader publishes no such endpoint.
        NoLeader: the job has no leader now.
        Unreachable: no store answered in time.
    """
    answer = _here().leader(job or _present_job())
    address = answer.endpoints.get(endpoint)
    if address is None:
        there = ", ".join(sorted(answer.endpoints)) or "none at all"
        raise NoEndpoint(
            f"Job {answer.job!r} publishes no endpoint {endpoint!r} (there is: {there}): "
            f"give it to `ha run --endpoint {endpoint}=ADDRESS` or to ha.lead."
        )
    return JobMaster(answer.job, address, answer.epoch, answer.session_id, answer.source)


def checkpoint(job: str | None = None) -> CheckpointState:
    """Return the job's next checkpoint id and each query's newest completed checkpoint; as :func:`job_master` does.

    Raises:
        InvalidName, InvalidSettings, NoLeader, Unreachable: as in :func:`job_master`.
    """
    return _here().checkpoint(job or _present_job())


def _present_job() -> str:
    # Inside a task PySpark has imported this module already; outside of Spark it must not be imported for our sake.
    taskcontext = sys.modules.get("pyspark.taskcontext")
    task = taskcontext.TaskContext.get() if taskcontext is not None else None
    job = (task.getLocalProperty(JOB_PROPERTY) if task is not None else None) or os.environ.get("HA_JOB")
    if not job:
        raise InvalidSettings(
            f"No job is named: give it as an argument, set spark.conf.set({JOB_PROPERTY!r}, ...) before the query "
            "starts, or set HA_JOB in the workers' environment (spark.executorEnv.HA_JOB)."
        )
    return job


class _Kept(Generic[T]):
    """One answer that is kept until something says that it may be old: a watch, a connection, or the time."""

    def __init__(self, client: Client, path: str, ask: Callable[[], T]) -> None:
        self._zookeeper = client._stores.zookeeper  # noqa: SLF001  # one connection a worker is enough
        self._path = path
        self._ask = ask
        self._watched_for = client.settings.audit / REFRESHES_PER_AUDIT
        self._value: T | None = None
        self._good_until = float("-inf")
        self._changes = 0
        self._lock = threading.Lock()  # nothing is called while it is held
        self._asking = threading.Lock()
        if self._zookeeper is not None:
            self._zookeeper.add_listener(self)

    def __call__(self, _: object) -> None:
        """Something has changed: the watched node, or the connection."""
        with self._lock:
            self._changes += 1
            self._good_until = float("-inf")

    def get(self) -> T:
        """Return the answer; of several threads that find it too old, one asks."""
        if now() < self._good_until:
            return self._value  # type: ignore[return-value]  # it is there, or the time would be minus infinity
        with self._asking:
            if now() < self._good_until:
                return self._value  # type: ignore[return-value]  # likewise
            changes = self._changes  # what changes from here on is not in the answer, or may not be
            watched = self._watch()
            value = self._ask()
            with self._lock:
                if changes == self._changes:
                    self._value = value
                    self._good_until = now() + (self._watched_for if watched else min(UNWATCHED, self._watched_for))
            return value

    def _watch(self) -> bool:
        """Have this told of the next change; kazoo keeps equal watches once, so setting it again costs nothing."""
        if self._zookeeper is None or self._zookeeper.state is not Connection.CONNECTED:
            return False
        try:
            self._zookeeper.call(Exists(self._path, self), WATCH_TIMEOUT)
        except StoreError:
            return False
        return True


class Lookups:
    """What one worker process knows, and its client."""

    def __init__(self) -> None:
        """Connect to nothing yet.

        Raises:
            InvalidSettings: a setting in the environment is wrong.
        """
        self.client = Client(load())
        self._connected = False
        self._leaders: dict[str, _Kept[Answer]] = {}
        self._checkpoints: dict[str, _Kept[CheckpointState]] = {}

    def leader(self, job: str) -> Answer:
        """Return who leads."""
        kept = self._leaders.get(job)
        try:
            told = self.client.told(job)
        except NoLeader:
            told = self.client.leader(job, LEFT)  # which waits for the next one, if there was one
        else:
            if told is None:
                return self._keep(job, kept)
        if kept is not None:
            kept(None)  # what is kept may be older
        return told

    def _keep(self, job: str, kept: _Kept[Answer] | None) -> Answer:
        """Answer without an agent."""
        self._connect()
        if kept is None and len(self._leaders) >= MOST_KEPT:
            return self.client.leader(job, LEFT)
        if kept is None:
            made = _Kept(self.client, leader_path(check_job(job)), lambda: self.client.leader(job, LEFT))
            kept = self._leaders.setdefault(job, made)
        return kept.get()

    def checkpoint(self, job: str) -> CheckpointState:
        """Return the newest checkpoints."""
        self._connect()
        kept = self._checkpoints.get(job)
        if kept is None and len(self._checkpoints) >= MOST_KEPT:
            return self._ask_checkpoint(job)
        if kept is None:
            made = _Kept(self.client, checkpoints_path(check_job(job)), lambda: self._ask_checkpoint(job))
            kept = self._checkpoints.setdefault(job, made)
        return kept.get()

    def _connect(self) -> None:
        """Connect to ZooKeeper, or go on trying in the background; takes 0.3 s at most, and only the first time."""
        if self._connected:
            return
        if (zookeeper := self.client._stores.zookeeper) is not None:  # noqa: SLF001  # see _Kept
            zookeeper.start()  # now: a watch can be set only when there is a connection
            zookeeper.wait(FIRST_CONNECTION)
        self._connected = True

    def _ask_checkpoint(self, job: str) -> CheckpointState:
        end = now() + TIMEOUT
        with suppress(NoLeader):  # its checkpoints are there nevertheless
            self.leader(job)  # which tells the client whose copy in ZooKeeper counts
        return self.client.checkpoint(job, max(0.1, end - now()))


_lookups: Lookups | None = None
_inherited: list[Lookups] = []
_starting = threading.Lock()


def _here() -> Lookups:
    """Return this process's lookups, made at the first use."""
    return _lookups or _start()


def _start() -> Lookups:
    global _lookups  # noqa: PLW0603  # one for the process is the point
    with _starting:
        if _lookups is None:
            for each in _inherited:
                each.client.close()  # gives the parent's descriptors back; its threads are not here
            _lookups = Lookups()
        return _lookups


def _after_fork() -> None:
    """Forget everything: any lock of the parent's may be held by a thread that is not here."""
    global _lookups, _starting
    if _lookups is not None:
        _inherited.append(_lookups)  # kept for ever: some destructors would wait for the parent's threads
    _lookups, _starting = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
