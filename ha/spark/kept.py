"""An answer that a worker keeps until something says that it may be old: a watch, a connection, or the time."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ha.client import Client
from store import zookeeper as zk  # lazy: what an agent answers needs no kazoo
from store.clock import now
from store.errors import StoreError

T = TypeVar("T")

WATCH_TIMEOUT = 0.3
"""Seconds of a lookup to set a watch; without one the answer is just not kept as long."""

UNWATCHED = 1.0
"""Seconds for which an answer is kept that no watch guards, or that no store has just given."""

REFRESHES_PER_AUDIT = 10
"""A watched answer is asked for again so often, because the audit's result shows only in the next answer."""


class Kept(Generic[T]):
    """One answer, and what asks for it again."""

    def __init__(
        self, client: Client, path: str, ask: Callable[[float], T], age: Callable[[T], float] = lambda _: 0.0
    ) -> None:
        """Ask nothing yet.

        Args:
            client: whose stores are watched.
            path: ZooKeeper's node that changes when the answer does.
            ask: asks, for so many seconds.
            age: of an answer, seconds since a store said so; one that is the very object of the last time is older.
        """
        self._zookeeper = client._stores.zookeeper  # noqa: SLF001  # one connection a worker is enough
        self._sources = client._reader.sources  # noqa: SLF001  # likewise
        self._path = path
        self._ask = ask
        self._age = age
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

    def get(self, timeout: float) -> T:
        """Return the answer; of several threads that find it too old, one asks, for that many seconds at most."""
        if now() < self._good_until:
            return self._value  # type: ignore[return-value]  # it is there, or the time would be minus infinity
        end = now() + timeout
        with self._asking:
            if now() < self._good_until:
                return self._value  # type: ignore[return-value]  # likewise
            changes = self._changes  # what changes from here on is not in the answer, or may not be
            watched = self._watch(min(WATCH_TIMEOUT, timeout / 4))
            asked = now()
            value = self._ask(max(0.1 * timeout, end - asked))
            # What was only remembered may have changed before the watch was set, which then has nothing to tell.
            fresh = value is not self._value and self._age(value) <= now() - asked
            with self._lock:
                if changes == self._changes:
                    self._value = value
                    good_for = self._watched_for if watched and fresh else min(UNWATCHED, self._watched_for)
                    self._good_until = now() + good_for
            return value

    def _watch(self, timeout: float) -> bool:
        """Have this told of the next change; kazoo keeps equal watches once, so setting it again costs nothing."""
        if self._zookeeper is None or self._zookeeper.state is not zk.Connection.CONNECTED:
            return False
        try:
            self._zookeeper.call(zk.Exists(self._path, self), timeout)
        except StoreError:
            return False
        self._sources.answered()
        return True
