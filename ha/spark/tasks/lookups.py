"""The clients of a Python worker: one for each cluster that its tasks name, each with a cache, all new after a fork."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ha.client import Client
from ha.config.sources import load
from ha.spark.tasks.task import SETTING_PREFIX, Told, settings_of
from leader.errors import NoLeader
from leader.layout.names import check_job
from leader.layout.znodes import checkpoints_path, leader_path
from leader.lookup.answers import Answer
from leader.lookup.cached_answer import CachedAnswer
from leader.lookup.job_lookup import AGENT_PATIENCE_S, AGENT_SHARE
from store.clock import now

if TYPE_CHECKING:
    from leader.layout.checkpoint_state import CheckpointState

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
