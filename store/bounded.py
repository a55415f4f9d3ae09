"""Store calls that end in time, whatever the store does.

Drivers may block without limit: hdfs-native has no RPC timeout, and a stopped NameNode held a call for 40 seconds. So a
call runs on a thread of our own. When its deadline passes, the caller gets an outcome and the thread is written off:
Python cannot stop it, but it has no caller left, and later calls use another thread and another driver.
"""

import os
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self, TypeVar, cast

from store.files import Files
from store.outcome import Outcome
from store.pool import Call, CallHook, Pool

T = TypeVar("T")


class BoundedFiles:
    """The only way to call a driver: every call has a deadline, and ends as done, refused or unknown.

    An operation is a function of the driver; it may make several driver calls, which share the deadline::

        entries = files.call("list", lambda driver: driver.list("job"), timeout=2.0)

    A call that a thread has begun and that is not back at its deadline is ``Unknown`` (``DeadlineExceeded``): it may
    still happen. A call that no thread has begun by then is ``Refused`` (``NotSent``), and is never sent later. A
    forked child starts again, with threads and a driver of its own; the parent's are not touched.
    """

    def __init__(
        self,
        open_driver: Callable[[], Files],  # called on a worker thread, at the first call and after each abandoned one
        *,
        workers: int = 8,  # most calls at the same time; up to 1,000 more wait, no longer than their deadline
        max_stuck: int = 32,  # most abandoned calls that have not come back; beyond it every call is NotSent
        # Told every call's name and outcome, once, from whichever thread ends it; must not block.
        on_call: CallHook | None = None,
        uri: str = "",  # the root's, for messages
    ) -> None:
        if workers < 1 or max_stuck < 1:
            raise ValueError(f"workers and max_stuck must be at least 1, not {workers} and {max_stuck}.")
        self.uri = uri
        self._make = partial(Pool, open_driver, workers, max_stuck, on_call)
        self._pool = self._make()
        self._inherited: list[Pool] = []
        _every.add(self)

    @property
    def stuck(self) -> int:
        """Abandoned calls that have not come back yet."""
        return self._pool.stuck

    @property
    def late(self) -> int:
        """Abandoned calls that came back after all, so far."""
        return self._pool.late

    def at(self, path: str) -> str:
        """Return the URI of a path below the root."""
        return f"{self.uri.rstrip('/')}/{path}".rstrip("/")

    def call(self, name: str, operation: Callable[[Files], T], timeout: float) -> T:
        """Run the operation and return its result; messages and metrics call it ``name``."""
        return self.outcome(name, operation, timeout).result()

    def outcome(self, name: str, operation: Callable[[Files], T], timeout: float) -> Outcome[T]:
        """Run the operation and return how it ended; raises nothing."""
        pool = self._pool
        call = Call(name, operation, timeout)
        pool.add(call)
        if not call.answered.acquire(timeout=max(timeout, 0.0)):
            pool.expire(call)
            # Either that has just settled it, or a worker has and is about to say so: this never waits for the store.
            call.answered.acquire()
        return cast("Outcome[T]", call.outcome)

    def submit(
        self, name: str, operation: Callable[[Files], T], timeout: float, done: Callable[[Outcome[T]], None]
    ) -> None:
        """Run the operation, and tell ``done`` how it ended: exactly once, at the deadline at the latest."""
        # `done` is called on an internal thread; it must not block, and its errors are logged.
        self._pool.add(Call(name, operation, timeout, done))

    def close(self) -> None:
        """Refuse further calls; does not wait for the running ones."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _forked(self) -> None:
        # The threads are gone and their locks may be held for ever. The old pool is kept, not dropped: a driver's
        # destructor would shake hands with threads that do not exist here.
        self._inherited.append(self._pool)
        self._pool = self._make()


_every: "weakref.WeakSet[BoundedFiles]" = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(_every):
        each._forked()  # noqa: SLF001 - our own class


os.register_at_fork(after_in_child=_after_fork)
