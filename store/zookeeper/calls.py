"""Operations under way: each ends by its deadline, as done, refused or unknown."""

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from store import counting
from store.clock import now
from store.errors import ConnectionLost, DeadlineExceeded, NotSent, PermissionDenied, StoreError, Unknown
from store.outcome import Outcome
from store.pool import CallHook
from store.zookeeper.classify import classify
from store.zookeeper.dispatcher import Dispatcher, Timer
from store.zookeeper.driver import Kazoo
from store.zookeeper.operations import Operation, Wire

log = logging.getLogger(__name__)

T = TypeVar("T")
Done = Callable[[Outcome[T]], None]

MAX_OUTSTANDING = 1000  # most unanswered requests; kazoo also keeps those whose callers have given up
STALLED_PART = 2 / 3  # of the session time-out: an older request condemns the connection; kazoo's own for pings


class _Request:
    """A request that was given to kazoo."""

    __slots__ = ("sent", "wanted")

    def __init__(self, sent: float) -> None:
        self.sent = sent
        self.wanted = True


class Calls:
    """The operations under way over one kazoo client."""

    def __init__(
        self,
        kazoo: Kazoo,
        dispatcher: Dispatcher,  # runs every `done`
        chroot: str,  # goes before every path
        gate: Callable[[Operation[Any]], None],  # raises `store.errors.Refused` if this operation must not be sent now
        session_timeout: Callable[[], float],  # returns the present one, in seconds
        not_allowed: Callable[[str], None],  # told which operation an access list did not allow
        on_call: CallHook | None = None,  # told every operation's name and outcome, once, from whichever thread ends it
    ) -> None:
        self._kazoo = kazoo
        self._dispatcher = dispatcher
        self._chroot = chroot
        self._gate = gate
        self._session_timeout = session_timeout
        self._not_allowed = not_allowed
        self._on_call = on_call
        self._lock = threading.Lock()  # nothing is called while it is held
        self._outstanding: dict[_Request, None] = {}  # in the order in which they were sent
        self._submitted: set[_Submitted[Any]] = set()
        self._dispatching = False

    def open(self) -> None:
        """The dispatcher runs from now on."""
        with self._lock:
            self._dispatching = True

    def close(self) -> None:
        """End everything that was submitted, from the dispatcher thread; it will run nothing that comes after this."""
        with self._lock:
            self._dispatching = False
            self._dispatcher.post(self._fail_submitted)

    def forget(self) -> None:
        """There is a new connection: requests over the old one have ended, or were lost in a race inside kazoo."""
        with self._lock:
            self._outstanding.clear()

    def call(self, operation: Operation[T], timeout: float) -> T:
        """See :meth:`store.zookeeper.ZooKeeper.call`."""
        request = _Request(now())
        try:
            value = self._wait(operation, request, timeout)
        except StoreError as error:
            self.tell(operation, Outcome(None, error, request.sent, now()))
            raise
        self.tell(operation, Outcome(value, None, request.sent, now()))
        return value

    def _wait(self, operation: Operation[T], request: _Request, timeout: float) -> T:
        # A bare lock: kazoo's own wait needs a condition, which the other thread still holds when this one wakes up.
        arrived = threading.Lock()
        arrived.acquire()
        result = self._send(operation, request, timeout, arrived.release)
        if not arrived.acquire(timeout=min(timeout, threading.TIMEOUT_MAX)):
            raise self.too_late(operation, request, timeout)
        if result.exception is not None:
            raise classify(result.exception, operation) from result.exception
        return operation.answer(result.value)

    def submit(self, operation: Operation[T], timeout: float, done: Done[T]) -> None:
        """See :meth:`store.zookeeper.ZooKeeper.submit`."""
        request = _Request(now())
        try:
            result = self._send(operation, request, timeout)
        except StoreError as error:
            outcome: Outcome[T] = Outcome(None, error, request.sent, now())
            self.tell(operation, outcome)
            self._post(partial(done, outcome))
            return
        submitted = _Submitted(self, operation, request, timeout, done)
        with self._lock:
            self._submitted.add(submitted)
            dispatching = self._dispatching
        submitted.timer = self._dispatcher.at(request.sent + timeout, submitted.expired)
        result.rawlink(lambda ended: self._dispatcher.post(partial(submitted.answered, ended, now())))
        if not dispatching:  # closed meanwhile: the dispatcher may not come to it any more
            submitted.closed()

    def too_late(self, operation: Operation[Any], request: _Request, timeout: float) -> DeadlineExceeded:
        """Give a request up, and the connection too if it has gone silent."""
        request.wanted = False
        # Kazoo takes each request it sends for a sign of life, and looks for no answers meanwhile: a busy client would
        # never notice that the server is dead. Answers come in order, so the age of the oldest request tells.
        with self._lock:
            oldest = next(iter(self._outstanding), None)
        age = now() - oldest.sent if oldest is not None else 0.0
        if age >= STALLED_PART * self._session_timeout():
            log.warning("ZooKeeper has not answered for %.1f s: reconnecting.", age)
            self._kazoo.cut()
        return DeadlineExceeded(f"{operation}: no answer from ZooKeeper in {timeout} s.")

    def tell(self, operation: Operation[Any], outcome: Outcome[Any]) -> None:
        """Report an operation's outcome to the counters."""
        name = type(operation).__name__
        if isinstance(outcome.error, PermissionDenied):
            self._not_allowed(str(operation))
        counting.call_ended("zookeeper", name, outcome)
        try:
            if self._on_call is not None:
                self._on_call(name, outcome)
        except Exception:
            log.exception("The hook for ZooKeeper's operations failed.")

    def is_open(self, submitted: "_Submitted[Any]") -> bool:
        """Return whether this call has not ended yet."""
        with self._lock:
            return submitted in self._submitted

    def ends(self, submitted: "_Submitted[Any]") -> bool:
        """End this call; return whether that is news."""
        with self._lock:
            if submitted not in self._submitted:
                return False
            self._submitted.remove(submitted)
            return True

    def _send(
        self,
        operation: Operation[T],
        request: _Request,
        timeout: float,
        then: Callable[[], None] | None = None,
    ) -> Any:
        self._gate(operation)
        operation.check()
        if timeout <= 0:
            raise NotSent(f"{operation}: no time is left for it.")
        with self._lock:
            if len(self._outstanding) >= MAX_OUTSTANDING:
                raise NotSent(f"{operation}: ZooKeeper has not answered {MAX_OUTSTANDING} earlier requests yet.")
            self._outstanding[request] = None
        try:
            result = operation.send(Wire(self._kazoo, self._chroot, lambda: request.wanted))
        except Exception as error:  # a bug, ours or kazoo's: the request may have been queued
            self._settle(request)
            raise Unknown(f"{operation}: {error!r}") from error

        def ended(_: Any) -> None:
            # One callback, because kazoo calls all of them again when one is added to a result that is there.
            if then is not None:
                then()  # first: a caller waits for it
            self._settle(request)

        result.rawlink(ended)
        return result

    def _settle(self, request: _Request) -> None:
        with self._lock:
            self._outstanding.pop(request, None)

    def _post(self, work: Callable[[], None]) -> None:
        with self._lock:
            dispatching = self._dispatching
            if dispatching:
                self._dispatcher.post(work)
        if not dispatching:  # there is no thread to call back from
            work()

    def _fail_submitted(self) -> None:
        with self._lock:
            remaining = list(self._submitted)
        for submitted in remaining:
            submitted.closed()


class _Submitted(Generic[T]):
    """A submitted call that has not ended; whichever comes first ends it: the answer, the deadline, or the close."""

    def __init__(self, calls: Calls, operation: Operation[T], request: _Request, timeout: float, done: Done[T]) -> None:
        self._calls = calls
        self._operation = operation
        self._request = request
        self._timeout = timeout
        self._done = done
        self.timer: Timer | None = None

    def answered(self, result: Any, at: float) -> None:
        """Kazoo has an answer, which came at that boot-clock time."""
        if result.exception is not None:
            self._end(None, classify(result.exception, self._operation), at)
        else:
            self._end(self._operation.answer(result.value), None, at)

    def expired(self) -> None:
        """The deadline has come."""
        if self._calls.is_open(self):
            self._end(None, self._calls.too_late(self._operation, self._request, self._timeout), now())

    def closed(self) -> None:
        """No answer will come any more."""
        self._request.wanted = False
        self._end(None, ConnectionLost(f"{self._operation}: the client was closed before the answer came."), now())

    def _end(self, value: T | None, error: StoreError | None, at: float) -> None:
        if not self._calls.ends(self):
            return
        if self.timer is not None:
            self.timer.cancel()
        outcome = Outcome(value, error, self._request.sent, at)
        self._calls.tell(self._operation, outcome)
        try:
            self._done(outcome)
        except Exception:
            log.exception("The callback of %s failed; the others go on.", self._operation)
