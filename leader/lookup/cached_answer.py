"""CachedAnswer: an answer that is kept until a watch, the connection to ZooKeeper or its age casts doubt on it."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from leader.lookup.store_clients import StoreClients
from store.clock import BOOT_CLOCK, Clock

T = TypeVar("T")

WATCH_TIMEOUT_S = 0.3  # seconds of a lookup for setting a watch; without a watch the answer is merely not kept as long
UNWATCHED_S = 1.0  # seconds for which an answer is kept if no watch guards it, or if no store has just given it
REFRESHES_PER_AUDIT = 10  # of a watched answer, because the result of an audit shows only in the next answer


class CachedAnswer(Generic[T]):
    """One answer, and the function that asks for it again. Any thread may use it."""

    def __init__(
        self,
        stores: StoreClients,  # the clients that set the watch
        path: str,  # the ZooKeeper node that changes when the answer does
        ask: Callable[[float], T],  # gets a new answer, within the seconds it is given
        *,
        audit: float,  # seconds; see `leader.lookup.reader.Reader`
        # Returns the seconds since a store gave an answer. The same object as before counts as older.
        age: Callable[[T], float] = lambda _: 0.0,
        clock: Clock = BOOT_CLOCK,  # the host's boot clock, unless in a test
    ) -> None:
        self._stores = stores
        self._path = path
        self._ask = ask
        self._age = age
        self._clock = clock
        self._watched_s = audit / REFRESHES_PER_AUDIT
        self._value: T | None = None
        self._good_until = float("-inf")
        self._changes = 0
        self._lock = threading.Lock()  # nothing is called while it is held
        self._asking = threading.Lock()
        stores.add_listener(self)

    def __call__(self, _: object) -> None:
        """Forget the answer, because the watched node or the connection has changed."""
        self.forget()

    def forget(self) -> None:
        """Make the next caller ask again."""
        with self._lock:
            self._changes += 1
            self._good_until = float("-inf")

    def get(self, timeout: float) -> T:
        """Return the answer. If it is too old, one of several threads asks, for ``timeout`` seconds at most."""
        if self._clock.now() < self._good_until:
            return self._value  # type: ignore[return-value]  # it is there, or the time would be minus infinity
        end = self._clock.now() + timeout
        with self._asking:
            if self._clock.now() < self._good_until:
                return self._value  # type: ignore[return-value]  # as above
            changes = self._changes  # the answer may miss any change from here on
            watched = self._stores.watch_node(self._path, self, min(WATCH_TIMEOUT_S, timeout / 4))
            asked = self._clock.now()
            value = self._ask(max(0.1 * timeout, end - asked))
            # A remembered answer may have changed before the watch was set, which then has nothing to tell.
            fresh = value is not self._value and self._age(value) <= self._clock.now() - asked
            with self._lock:
                if changes == self._changes:
                    self._value = value
                    good_for = self._watched_s if watched and fresh else min(UNWATCHED_S, self._watched_s)
                    self._good_until = self._clock.now() + good_for
            return value
