"""Functions for user code in Spark's Python workers: find the job master and its checkpoints, and call it.

Where an agent runs on the worker's host, a worker reads the agent's snapshots, within microseconds, and opens no
connection. Elsewhere it asks the stores once and then answers from memory until ZooKeeper's watch tells of a change or
the connection changes. It asks again after a tenth of the audit interval in any case, and after 1 s while ZooKeeper is
away. Checkpoints are always asked for in this way.

This module does NOT promise that a cached address is still the leader's. A leader that is gone refuses or does not
answer, and the epoch in the answer lets the other side refuse requests from the past.
"""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ha.client import Client
from ha.config.sources import load
from ha.jobmaster.master import MASTER_TIMEOUT_S, JobMaster, master_of
from ha.spark.tasks.task import SETTING_PREFIX, Told, current_task, job_of, settings_of
from leader.errors import NoLeader
from leader.layout.names import check_job
from leader.layout.znodes import checkpoints_path, leader_path
from leader.lookup.answers import Answer
from leader.lookup.cached_answer import CachedAnswer
from leader.lookup.job_lookup import AGENT_PATIENCE_S, AGENT_SHARE
from store.clock import now

if TYPE_CHECKING:
    from ha.jobmaster.exchange import Reply
    from leader.layout.checkpoint_state import CheckpointState

__all__ = ["call", "checkpoint", "job_master", "report"]

T = TypeVar("T")

LOOKUP_TIMEOUT_S = 2.0  # seconds in which a lookup ends, whatever is down

WORKER_CONNECTION_S = 0.3
"""Seconds of the first lookup for connecting to ZooKeeper; it takes some 10 ms if ZooKeeper is there at all."""

MAX_CACHED = 1024
"""Jobs whose answers are cached, in the order of their first lookups. The stores are asked about others every time."""

MAX_CLUSTERS = 8  # different settings that the tasks of one worker can have at a time; the oldest ones make room


class CachingClient(Client):
    """A client that keeps what the stores say, and always takes what an agent of its host says instead."""

    def __init__(self, told: Told) -> None:
        """Connect to nothing yet; the settings that a task was given count before those of the environment."""
        super().__init__(load(dict(told), source=f"Spark's properties {SETTING_PREFIX}*"))
        self._connected = False
        self._leaders: dict[str, CachedAnswer[Answer]] = {}
        self._states: dict[str, CachedAnswer[CheckpointState]] = {}

    def leader(self, job: str, timeout: float = LOOKUP_TIMEOUT_S, *, stale: bool = False) -> Answer:
        """See :meth:`ha.client.Client.leader`."""
        try:
            answer = self.cached_leader(job, timeout)
        except NoLeader:
            answer = super().leader(job, _after_agent(timeout), stale=stale)  # it waits for a successor
        if answer is None and stale:  # a stale answer is not cached
            return super().leader(job, _after_agent(timeout), stale=True)
        if answer is None:
            ask = partial(super().leader, job)
            return self._cached(self._leaders, job, leader_path, ask, _after_agent(timeout), lambda found: found.age)
        self._forget_leader(job)
        return answer

    def report(self, job: str, session_id: str, timeout: float = LOOKUP_TIMEOUT_S) -> Answer:
        """See :meth:`ha.client.Client.report`."""
        answer = super().report(job, session_id, timeout)
        self._forget_leader(job)
        return answer

    def checkpoint(self, job: str, timeout: float = LOOKUP_TIMEOUT_S) -> "CheckpointState":
        """See :meth:`ha.client.Client.checkpoint`."""
        return self._cached(self._states, job, checkpoints_path, partial(self._ask_checkpoint, job), timeout)

    def _ask_checkpoint(self, job: str, timeout: float) -> "CheckpointState":
        end = now() + timeout
        with suppress(NoLeader):  # its checkpoints are there nevertheless
            self.leader(job, timeout / 2)  # now the reader knows which leader's mirror in ZooKeeper counts
        return super().checkpoint(job, max(0.1, end - now()))

    def _cached(
        self,
        answers: dict[str, CachedAnswer[T]],
        job: str,
        path: Callable[[str], str],
        ask: Callable[[float], T],
        timeout: float,
        age: Callable[[T], float] = lambda _: 0.0,
    ) -> T:
        timeout = self._connect(timeout)
        cached = answers.get(job)
        if cached is None:
            if len(answers) >= MAX_CACHED:
                return ask(timeout)
            made = CachedAnswer(
                self._reader.stores, path(check_job(job)), ask, audit=self.settings.leadership.audit, age=age
            )
            cached = answers.setdefault(job, made)
        return cached.get(timeout)

    def _forget_leader(self, job: str) -> None:
        """Drop the cached leader, which may be older than what was just said."""
        cached = self._leaders.get(job)
        if cached is not None:
            cached.forget()

    def _connect(self, timeout: float) -> float:
        """Connect to ZooKeeper, or retry in the background; returns what is left of the time."""
        # A watch can be set only on a connection, so the first lookup waits for it, for 0.3 s at most. The import of
        # kazoo does not count: it takes seconds where hundreds of workers start on one host.
        if self._connected:
            return timeout
        share = min(WORKER_CONNECTION_S, timeout / 4) if self._stores.zookeeper is not None else 0.0
        self._reader.stores.connect(share)
        self._connected = True
        return timeout - share


def _after_agent(timeout: float) -> float:
    """Return the seconds that are left for the stores after an agent did not answer."""
    return timeout - min(AGENT_PATIENCE_S, timeout * AGENT_SHARE)


_present: tuple[Any, CachingClient] | None = None
"""The task that asked last, and its client: the same for all calls of a task."""

_clients: dict[Told, CachingClient] = {}
_inherited: list[CachingClient] = []
_starting = threading.Lock()


def client_of(task: Any) -> CachingClient:
    """Return this process's client for what a task was told; it is made at the first use."""
    present = _present
    return present[1] if present is not None and present[0] is task else _enter(task)


def _enter(task: Any) -> CachingClient:
    """Return the client of an earlier task of this worker with the same settings, or make one."""
    global _present  # noqa: PLW0603  # a worker executes one task at a time
    told = settings_of(task)
    with _starting:
        found = _clients.get(told)
        if found is None:
            for each in _inherited:
                each.close()  # gives the parent's descriptors back; its threads are not here
            found = CachingClient(told)
            while len(_clients) >= MAX_CLUSTERS:
                _clients.pop(next(iter(_clients))).close()
            _clients[told] = found
        _present = (task, found)
    return found


def _after_fork() -> None:
    """Forget everything: a thread of the parent's may hold any lock."""
    global _present, _starting
    _inherited.extend(_clients.values())  # kept for ever: some destructors would wait for the parent's threads
    _clients.clear()
    _present, _starting = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def job_master(job: str | None = None, endpoint: str = "jobmaster") -> JobMaster:
    """Return the address of the job's leader, from memory if possible, else within 2 s after the first imports.

    Args:
        job: the job's name; default: Spark's property ``spark.ha.job`` within a task, else ``HA_JOB``.
        endpoint: which of the leader's addresses.

    Raises:
        InvalidName: the argument is not a job's name.
        InvalidSettings: no job is named, or a setting of the task or the environment is wrong.
        NoEndpoint: the leader publishes no such endpoint.
        NoLeader: the job has no leader now.
        Unreachable: no store answered in time.
    """
    task = current_task()
    return master_of(client_of(task).leader(job or job_of(task)), endpoint)


def report(master: JobMaster, timeout: float = LOOKUP_TIMEOUT_S) -> JobMaster:
    """Report that a job master refused or did not answer, and return the present one; asks HDFS if necessary.

    Args:
        master: as :func:`job_master` returned it.
        timeout: seconds.

    Raises:
        InvalidSettings, NoEndpoint, NoLeader, Unreachable: as in :func:`job_master`.
    """
    return master_of(client_of(current_task()).report(master.job, master.session_id, timeout), master.endpoint)


def checkpoint(job: str | None = None) -> "CheckpointState":
    """Return the job's next checkpoint id and each query's newest completed checkpoint; as :func:`job_master` does.

    Raises:
        InvalidName, InvalidSettings, NoLeader, Unreachable: as in :func:`job_master`.
    """
    task = current_task()
    return client_of(task).checkpoint(job or job_of(task))


def call(
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    job: str | None = None,
    endpoint: str = "jobmaster",
    timeout: float = MASTER_TIMEOUT_S,
    idempotent: bool = False,
) -> "Reply":
    """Send an HTTP request to the job's master: :meth:`ha.jobmaster.Caller.http` has the arguments.

    Job and endpoint are those of :func:`ha.spark.worker.job_master`.

    Raises:
        CallRefused: no master has executed the request, and none will.
        CallUnknown: a master may have executed the request.
        InvalidName: the job or the leader's address is not one.
        InvalidSettings: no job is named, or a setting is wrong.
        ValueError: the method, path or a header cannot be sent.
    """
    from ha.jobmaster.caller import Caller  # noqa: PLC0415  # a worker that only looks up never pays for http.client

    task = current_task()
    caller = Caller(client_of(task), job or job_of(task), endpoint)
    return caller.http(method, path, body, headers, timeout=timeout, idempotent=idempotent)
