"""The threads behind :class:`store.bounded.BoundedFiles`: those of one process, and the driver they share."""

import atexit
import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from store import counting
from store.alarm import Alarm
from store.clock import now
from store.errors import DeadlineExceeded, NotSent, Refused, StoreError, Unknown
from store.files import Files
from store.outcome import Outcome

MAX_QUEUED = 1000  # calls that may wait for a thread; with more the store is far too slow, and waiting does not help
EXIT_WITHIN = 0.5  # seconds that the end of the process waits for running calls. A stuck one is left behind
Receiver = Callable[[Outcome[Any]], None]
CallHook = Callable[[str, Outcome[Any]], None]

_log = logging.getLogger(__name__)

_QUEUED, _OPENING, _RUNNING, _SETTLED = range(4)


class _Driver:
    """An open driver and how many calls are inside it: it is closed when it is retired and the last one is back."""

    __slots__ = ("files", "retired", "users")

    def __init__(self, files: Files) -> None:
        self.files = files
        self.users = 0
        self.retired = False


class Call:
    """One call. Its state changes only under the pool's lock; the thread that settles it reports its outcome, once."""

    __slots__ = (
        "answered",
        "deadline",
        "done",
        "driver",
        "name",
        "obstacle",
        "operation",
        "outcome",
        "started",
        "state",
    )

    def __init__(
        self, name: str, operation: Callable[[Files], Any], timeout: float, done: Receiver | None = None
    ) -> None:
        self.name = name
        self.operation = operation
        self.started = now()
        self.deadline = self.started + timeout
        self.done = done
        self.driver: _Driver | None = None
        self.outcome: Outcome[Any] | None = None
        self.state = _QUEUED
        self.obstacle = "no thread or driver was free in time"
        # A bare lock is the cheapest thing to wait for: an Event is a condition, a lock and a list.
        self.answered = threading.Lock()
        self.answered.acquire()

    def failed(self, error: StoreError) -> Outcome[Any]:
        """Return the outcome for this error, as of now."""
        return Outcome(None, error, self.started, now())


class _Worker:
    """A thread's mailbox: a call is put in and ``wake`` released; woken without a call, the thread ends."""

    __slots__ = ("call", "wake")

    def __init__(self, call: Call) -> None:
        self.call: Call | None = call
        self.wake = threading.Lock()
        self.wake.acquire()


# Workers that are, or may be, inside a driver, of all pools; adding and discarding are atomic.
_running: set[_Worker] = set()


def _before_exit() -> None:
    """Let running calls come back, and let one that comes back later do no harm."""
    # A thread that leaves native code while the interpreter goes down is ended by Python, and hdfs-native cannot be
    # unwound: glibc says "FATAL: exception not rethrown" and aborts the process, which then ends with 134 whatever its
    # code was. Python 3.14 halts such a thread, and so do we: its abort waits for the end of the process.
    end = now() + EXIT_WITHIN
    while _running and now() < end:
        threading.Event().wait(0.002)
    if _running:
        import ctypes  # noqa: PLC0415  # lookups should not pay for it

        libc = ctypes.CDLL(None)
        libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        libc.signal(signal.SIGABRT, ctypes.cast(libc.pause, ctypes.c_void_p))


atexit.register(_before_exit)
os.register_at_fork(after_in_child=_running.clear)


class Pool:
    """Threads that are made when they are needed, written off when they are stuck, and never joined."""

    # They are daemons, so that a stuck call cannot keep the interpreter from ending.

    def __init__(
        self, open_driver: Callable[[], Files], workers: int, max_stuck: int, on_call: CallHook | None
    ) -> None:
        self._open_driver = open_driver
        self._workers = workers
        self._max_stuck = max_stuck
        self._on_call = on_call
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._queue: deque[Call] = deque()
        self._live = 0
        self._driver: _Driver | None = None
        self._closed = False
        self._alarm = Alarm(self.expire, lambda call: call.state == _SETTLED)
        self.stuck = 0
        self.late = 0

    def add(self, call: Call) -> None:
        """Give the call to a thread, or settle it as not sent; one with a receiver ends at its deadline by itself."""
        if call.done is not None and not self._alarm.add(call.deadline, call):
            call.obstacle = "no thread could be started"
            self.expire(call)
            return
        with self._lock:
            placed = self._place(call)
        if placed:
            return
        if call.done is None:
            self.expire(call)
        else:
            self._alarm.add(now(), call)  # a receiver is never called on the submitter's thread

    def expire(self, call: Call) -> None:
        """End a call whose deadline has passed, unless it has just ended."""
        error: StoreError = NotSent(f"{call.name}: nothing was sent, {call.obstacle}.")
        with self._lock:
            if call.state == _SETTLED:
                return
            if call.state != _QUEUED:
                if call.state == _RUNNING:
                    error = DeadlineExceeded(f"{call.name}: no answer in time; it may have happened, or yet happen.")
                    self._retire(call.driver)
                self._write_off()
            elif call in self._queue:
                self._queue.remove(call)
            call.state = _SETTLED
        self._report(call, call.failed(error))

    def close(self) -> None:
        """Refuse further calls, and let go of threads and driver as soon as the running calls are back."""
        with self._lock:
            self._closed = True
            waiting = list(self._queue)
            self._queue.clear()
            for call in waiting:
                call.state = _SETTLED
            self._live -= len(self._idle)
            for worker in self._idle:
                worker.wake.release()
            self._idle.clear()
            driver = self._driver
            self._retire(driver)
            unused = driver if driver is not None and driver.users == 0 else None
        if unused is not None:
            _close_apart(unused.files)
        for call in waiting:
            self._report(call, call.failed(NotSent(f"{call.name}: nothing was sent, the files were closed.")))
        self._alarm.close()

    def _place(self, call: Call) -> bool:
        """Hand the call over, or note why that is impossible."""
        if self._closed:
            call.obstacle = "the files are closed"
        elif self.stuck >= self._max_stuck:
            call.obstacle = f"{self.stuck} earlier calls are stuck"
        elif self._idle:
            worker = self._idle.pop()  # the one that was busy last: its stack is still in the cache
            worker.call = call
            worker.wake.release()
            return True
        elif self._live < self._workers:
            return self._start(call)
        elif len(self._queue) >= MAX_QUEUED:
            call.obstacle = f"{MAX_QUEUED} calls are waiting already"
        else:
            self._queue.append(call)
            return True
        return False

    def _start(self, call: Call) -> bool:
        try:
            threading.Thread(target=self._work, args=(_Worker(call),), name="store-call", daemon=True).start()
        except RuntimeError as error:
            call.obstacle = f"no thread could be started ({error})"
            return False
        self._live += 1
        return True

    def _write_off(self) -> None:
        """Count the thread of the call at hand as lost, and let another do what waits for one."""
        self.stuck += 1
        self._live -= 1
        if self._queue and self.stuck < self._max_stuck and self._start(self._queue[0]):
            self._queue.popleft()

    def _retire(self, driver: _Driver | None) -> None:
        if driver is not None:
            driver.retired = True
        if self._driver is driver:
            self._driver = None

    def _work(self, worker: _Worker) -> None:
        while worker.call is not None:
            call, worker.call = worker.call, None
            _running.add(worker)
            wanted = self._run(call)
            _running.discard(worker)
            if not wanted:
                return  # written off: another thread has taken this one's place
            del call
            with self._lock:
                if self._queue:
                    worker.call = self._queue.popleft()
                    continue
                if self._closed:
                    self._live -= 1
                    return
                self._idle.append(worker)
            worker.wake.acquire()

    def _run(self, call: Call) -> bool:
        """Run the call; return whether this thread is still wanted."""
        with self._lock:
            queued = call.state == _QUEUED
            driver = self._enter(call) if queued else None
            opening = queued and self._driver is None
            if opening:
                call.state = _OPENING
        if driver is not None:
            return self._send(call, driver)
        opened, failure = self._open(call) if opening else (None, None)
        with self._lock:
            spare = self._adopt(opened)
            settled = call.state == _SETTLED
            wanted = not (opening and settled)
            if not wanted:
                self.stuck -= 1
            driver = None if settled or failure is not None else self._enter(call)
            if driver is None:
                call.state = _SETTLED
        if spare is not None:
            _close_apart(spare)
        if driver is None:
            if not settled:
                self._report(call, call.failed(failure or NotSent(f"{call.name}: nothing was sent, it was too late.")))
            return wanted
        return self._send(call, driver)

    def _open(self, call: Call) -> tuple[Files | None, StoreError | None]:
        try:
            return self._open_driver(), None
        except Refused as error:
            return None, error.with_traceback(None)
        except BaseException as error:  # noqa: BLE001 - whatever it is, nothing was sent
            return None, NotSent(f"{call.name}: nothing was sent, the driver could not be opened ({error!r}).")

    def _adopt(self, opened: Files | None) -> Files | None:
        """Keep a new driver for everybody, or return it if there is one already."""
        if opened is None or self._driver is not None or self._closed:
            return opened
        self._driver = _Driver(opened)
        return None

    def _enter(self, call: Call) -> _Driver | None:
        """Let the call into the driver, unless its time is over."""
        driver = self._driver
        started = now()
        if driver is None or started >= call.deadline:
            return None
        driver.users += 1
        call.driver = driver
        call.state = _RUNNING
        call.started = started
        return driver

    def _send(self, call: Call, driver: _Driver) -> bool:
        value: Any = None
        error: StoreError | None = None
        try:
            value = call.operation(driver.files)
        except StoreError as caught:
            error = caught.with_traceback(None)  # its frames hold this one, and this one would hold it
        except BaseException as caught:  # noqa: BLE001 - not even a driver's panic may pass for an answer
            error = Unknown(f"{call.name}: the driver failed with {caught!r}.")
        outcome = Outcome(value, error, call.started, now())
        with self._lock:
            driver.users -= 1
            unused = driver.retired and driver.users == 0
            wanted = call.state == _RUNNING
            if not wanted:
                self.stuck -= 1
                self.late += 1
            call.state = _SETTLED
        if unused:
            _close_apart(driver.files)
        if wanted:
            self._report(call, outcome)
        return wanted

    def _report(self, call: Call, outcome: Outcome[Any]) -> None:
        call.outcome = outcome
        counting.call_ended("files", call.name, outcome)
        try:
            if self._on_call is not None:
                self._on_call(call.name, outcome)
        except Exception:  # noqa: BLE001 - a broken metric must not break the election
            _log.exception("The hook for store calls failed.")
        finally:
            call.answered.release()
        try:
            if call.done is not None:
                call.done(outcome)
        except Exception:  # noqa: BLE001 - nor may one receiver take the thread from the others
            _log.exception("The receiver of the outcome of %s failed.", call.name)


def _close_apart(files: Files) -> None:
    """Close a driver on a thread of its own: closing may hang as well as anything else."""

    def close() -> None:
        try:
            files.close()
        except Exception:  # noqa: BLE001 - there is no caller left to decide anything about it
            _log.exception("A driver could not be closed.")

    try:
        threading.Thread(target=close, name="store-close", daemon=True).start()
    except RuntimeError:
        _log.warning("A driver was left open, because no thread could be started.")
