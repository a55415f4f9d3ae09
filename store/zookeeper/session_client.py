"""SessionClient: one process's connection to ZooKeeper, with the session's clock; it does not survive a fork."""

import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from kazoo.exceptions import ConnectionLoss, NoAuthError, NodeExistsError, SessionExpiredError
from kazoo.protocol.states import KazooState

from store.clock import now
from store.errors import NotSent, NotWritable
from store.pool import CallHook
from store.zookeeper.address import Address, ancestors
from store.zookeeper.calls import Calls
from store.zookeeper.dispatcher import Dispatcher
from store.zookeeper.driver import Kazoo
from store.zookeeper.login import is_open
from store.zookeeper.operations import Operation
from store.zookeeper.refusals import Refusals
from store.zookeeper.security import Security
from store.zookeeper.session import Connection, Session, SessionClock

log = logging.getLogger(__name__)

Listener = Callable[[Connection], None]

DISPATCHER_STOP_S = 0.5  # a close waits so long for running callbacks; they should not block, so this is plenty


class SessionClient:
    """One kazoo client and its two threads, in the process that made it."""

    def __init__(
        self,
        address: Address,
        session_timeout: float,
        security: Security,
        *,
        read_only: bool,
        on_call: CallHook | None = None,
    ) -> None:
        self.pid = os.getpid()
        self._address = address
        self._closed_nodes = security.closed
        self._session_timeout = session_timeout
        self._dispatcher = Dispatcher("zookeeper-dispatcher")
        self.refusals = Refusals()
        self._kazoo = Kazoo(
            address,
            session_timeout,
            self._dispatcher,
            read_only=read_only,
            on_state=self._on_kazoo,
            refusals=self.refusals,
            security=security,
        )
        self.calls = Calls(
            self._kazoo,
            self._dispatcher,
            address.chroot,
            self._gate,
            self._present_timeout,
            self.refusals.not_allowed,
            on_call,
        )
        self._lock = threading.Lock()  # no callback and no blocking call while it is held
        self._changed = threading.Condition(self._lock)
        self._clock = SessionClock()
        self._listeners: list[Listener] = []
        self._rooted_in: int | None = None
        self._started = False
        self._closed = False

    def start(self) -> None:
        """Connect in the background, for ever; idempotent."""
        with self._lock:
            if self._started or self._closed:
                return
            self._started = True
            self._dispatcher.start()
            self.calls.open()
            self._kazoo.start_async()

    def close(self, timeout: float) -> None:
        """End the session if that is possible in time, and all threads; idempotent."""
        with self._lock:
            started, closed = self._started, self._closed
            self._closed = True
        if closed or not started:
            return
        self._kazoo.end(timeout)
        with self._lock:
            self._tell(self._clock.lost())
        self.calls.close()
        self._dispatcher.stop(DISPATCHER_STOP_S)

    def release_inherited(self) -> None:
        """In a forked child: let go of the parent's descriptors."""
        self._kazoo.release_inherited()

    @property
    def state(self) -> Connection:
        """How things stand now, by our own clock if kazoo says nothing."""
        with self._lock:
            self._tick()
            return self._clock.state

    @property
    def session(self) -> Session | None:
        """The session; None if it is over or never was."""
        with self._lock:
            self._tick()
            return self._clock.session

    def wait(self, wanted: frozenset[Connection], timeout: float) -> Connection:
        """Wait until the state is one of these, at most ``timeout`` seconds, and return the state."""
        deadline = now() + timeout
        with self._changed:
            while True:
                self._tick()
                left = deadline - now()
                if self._clock.state in wanted or left <= 0:
                    return self._clock.state
                self._changed.wait(left)

    def add_listener(self, listener: Listener) -> None:
        """Have this called at every change of state."""
        with self._lock:
            self._listeners = [*self._listeners, listener]

    def remove_listener(self, listener: Listener) -> None:
        """Stop calling this; a change that is on its way may still be delivered."""
        with self._lock:
            self._listeners = [each for each in self._listeners if each != listener]

    def _gate(self, operation: Operation[Any]) -> None:
        # Without a connection kazoo would queue a request and send it after the reconnect, perhaps long past its time.
        state = self._clock.state
        if state is Connection.CONNECTED and self._kazoo.writable:
            return
        if state is Connection.READ_ONLY and self._kazoo.readable:
            if operation.writes:
                raise NotWritable(f"{operation}: the ZooKeeper server is read-only.")
            return
        raise NotSent(f"{operation}: there is no connection to ZooKeeper at {self._address}.")

    def _present_timeout(self) -> float:
        session = self._clock.session
        return session.timeout if session is not None else self._session_timeout

    def _on_kazoo(self, state: str) -> None:
        at = now()
        self._kazoo.drop_queued()
        if state == KazooState.CONNECTED:
            self._on_connection()
            return
        with self._lock:
            if state == KazooState.SUSPENDED:
                self._tell(self._clock.suspended(at))
                if self._clock.lost_at is not None:
                    self._dispatcher.at(self._clock.lost_at, self._on_time)
            else:
                self._tell(self._clock.lost())

    def _on_connection(self) -> None:
        self.calls.forget()
        if not self._kazoo.writable:
            with self._lock:
                self._tell(self._clock.read_only())
            return
        session = Session(self._kazoo.session_id, self._kazoo.negotiated_s)
        if session.id != self._rooted_in:
            self._make_chroot(session)
        with self._lock:
            self._tell(self._clock.connected(session))

    def _make_chroot(self, session: Session) -> None:
        """Create the chroot in every new session (ZooKeeper may have been wiped), ahead of what our users send."""
        # There is no need to wait: the server executes one client's requests in order.
        chroot = self._address.chroot

        def made(result: Any) -> None:
            if result.exception is None or isinstance(result.exception, NodeExistsError):
                self._rooted_in = session.id
            elif isinstance(result.exception, NoAuthError):
                self.refusals.not_allowed(f"Create {chroot}")
            elif not isinstance(result.exception, ConnectionLoss | SessionExpiredError):  # else there is a next time
                log.warning("The chroot %s could not be created in ZooKeeper: %r", chroot, result.exception)

        for path in ancestors(chroot + "/") if chroot else []:
            result = self._kazoo.create_async(path, b"")
            if path == chroot:
                result.rawlink(made)
        if chroot and self._closed_nodes:
            self._kazoo.get_acls_async(chroot).rawlink(self._check_chroot)

    def _check_chroot(self, result: Any) -> None:
        """Warn, once, if the chroot was left open by its creator: anybody could make nodes in it first."""
        chroot = self._address.chroot
        if result.exception is None and is_open(result.value[0]):
            self._closed_nodes = False
            log.warning(
                "The chroot %s in ZooKeeper is open to everybody, although zookeeper_acl is 'creator': "
                "take another chroot, or close it with setAcl -R.",
                chroot,
            )

    def _on_time(self) -> None:
        with self._lock:
            self._tick()

    def _tick(self) -> None:
        """Let our own clock speak; the lock is held."""
        changes = self._clock.tick(now())
        if changes:
            self._kazoo.forget()
            self._tell(changes)

    def _tell(self, changes: list[Connection]) -> None:
        """Hand changes over to the listeners, in order; the lock is held."""
        for state in changes:
            log.info("ZooKeeper at %s: %s.", self._address, state.value)
            self._dispatcher.post(partial(_call_listeners, self._listeners, state))
        if changes:
            self._changed.notify_all()


def _call_listeners(listeners: list[Listener], state: Connection) -> None:
    for listener in listeners:  # those of the moment of the change: a later one hears only of later changes
        try:
            listener(state)
        except Exception:
            log.exception("A listener failed; the others go on.")
