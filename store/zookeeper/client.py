"""A ZooKeeper client that never blocks without a bound, says when its session is over, and survives a fork."""

import os
from typing import TYPE_CHECKING, TypeVar

from store.errors import Invalid
from store.lazy_imports import will_import
from store.pool import CallHook
from store.zookeeper.address import DEFAULT_CHROOT, Address, parse
from store.zookeeper.security import Security
from store.zookeeper.session import Connection, Session

if TYPE_CHECKING:
    from store.zookeeper.calls import Done
    from store.zookeeper.operations import Operation
    from store.zookeeper.refusals import Reason
    from store.zookeeper.session_client import Listener, SessionClient

T = TypeVar("T")

MAX_SESSION_TIMEOUT_S = 3600.0
CLOSE_TIMEOUT_S = 2.0


class ZooKeeper:
    """One ZooKeeper client; all methods are safe to call from several threads.

    It does *not* promise that a session is alive because the state says so: the state may be out of date by the time
    you read it. Nor does it promise that an operation with an unknown outcome will not be executed later.

    Callbacks (listeners, watches, ``done``) run in one dispatcher thread, in the order in which things happened. They
    must not block: that would hold up everything behind them, deadlines included. They may submit further operations,
    but must neither ``call`` nor ``wait``.

    A forked child may continue to use the object: at the first use it makes a client and a session of its own.
    Listeners, watches and submitted operations stay with the parent, undisturbed.
    """

    def __init__(
        self,
        hosts: str,  # `host:port,host:port/chroot`; see `store.zookeeper.address.parse`
        *,
        session_timeout: float,  # seconds to ask for; servers allow 2 to 20 ticks. `session.timeout` is the result
        security: Security | None = None,  # how to log in, TLS, and access lists; None for an open ZooKeeper
        default_chroot: str = DEFAULT_CHROOT,  # the chroot if `hosts` has none. It is created in every new session
        # Whether a server that is cut off from its ensemble will do; see `Connection.READ_ONLY`. Such a server takes
        # only clients without a session, so first the old one has to be LOST; and since ZooKeeper 3.5 it takes these
        # only with `localSessionsEnabled=true` in its configuration.
        read_only: bool = False,
        # Gets the name and outcome of every operation once, on the thread that ends it; must not block.
        on_call: CallHook | None = None,
    ) -> None:
        """Make a client; nothing is connected before :meth:`start`. Invalid if an argument makes no sense."""
        if not 0 < session_timeout <= MAX_SESSION_TIMEOUT_S:
            raise Invalid(
                f"A session time-out of {session_timeout!r} s makes no sense: give seconds, at most"
                f" {MAX_SESSION_TIMEOUT_S:.0f}."
            )
        self._security = security or Security()
        self._security.check()
        self._address = parse(hosts, default_chroot)
        self._session_timeout = session_timeout
        self._read_only = read_only
        self._on_call = on_call
        self._started = False
        self._closed = False
        self._clients: dict[int, SessionClient] = {}
        self._client: SessionClient | None = None

    def __repr__(self) -> str:
        return f"ZooKeeper({str(self._address)!r})"

    @property
    def address(self) -> Address:
        """The ensemble's servers, and the chroot."""
        return self._address

    @property
    def chroot(self) -> str:
        """The path before all paths, without a slash at its end; empty for ZooKeeper's own root."""
        return self._address.chroot

    @property
    def started(self) -> bool:
        """Whether anybody has wanted a connection yet; without that the state is LOST and says nothing."""
        return self._started

    def start(self) -> None:
        """Connect in the background, again and again, until closed. Returns at once; idempotent."""
        # Attempts follow each other after 0.1 s to 1 s (jittered), after a refusal 30 s at most; each takes at most 2 s
        # for the TCP connection and the session time-out divided by the number of servers for ZooKeeper's greeting.
        if not self._closed:
            self._started = True
            self._here().start()

    def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """End the session if that is possible within ``timeout`` seconds; idempotent, and for ever."""
        # It returns within 1 s more. Submitted operations that have not ended become ConnectionLost. A forked child
        # ends its own session, if there is one, and never the parent's.
        if self._client is None:
            self._closed = True
            return
        client = self._here(wake=False)
        self._closed = True
        client.close(timeout)

    @property
    def state(self) -> Connection:
        """The present state."""
        return self._here().state

    @property
    def session(self) -> Session | None:
        """The session, also while SUSPENDED; None when LOST. A read-only server knows nothing about it."""
        return self._here().session

    @property
    def refusals(self) -> "dict[Reason, int]":
        """How often ZooKeeper has refused this process, by reason; each is logged when it is news."""
        return self._here().refusals.counts

    def wait(self, timeout: float, *wanted: Connection) -> Connection:
        """Wait at most so long for a state of ``wanted`` (default: CONNECTED or READ_ONLY); return the state."""
        return self._here().wait(frozenset(wanted or (Connection.CONNECTED, Connection.READ_ONLY)), timeout)

    def add_listener(self, listener: "Listener") -> None:
        """Have this called with every new state, from the dispatcher thread.

        It is not called with the present state: add it first, then read :attr:`state`. Before a new session is
        CONNECTED comes LOST; CONNECTED after LOST can be the old session nevertheless.
        """
        self._here().add_listener(listener)

    def remove_listener(self, listener: "Listener") -> None:
        """Stop calling this; a change that is on its way may still be delivered."""
        self._here().remove_listener(listener)

    def call(self, operation: "Operation[T]", timeout: float) -> T:
        """Do one operation and wait for the answer, at most ``timeout`` seconds.

        Raises:
            NotSent: there is no connection, or no time, or 1,000 requests are unanswered; known at once.
            NotWritable: it is a write, and the server is read-only.
            DeadlineExceeded: no answer in time; a write may still be executed.
            ConnectionLost: the connection broke meanwhile; a write may have been executed.
            Refused: see the operation.
        """
        return self._here().calls.call(operation, timeout)

    def submit(self, operation: "Operation[T]", timeout: float, done: "Done[T]") -> None:
        """Do one operation and call ``done`` with its outcome, exactly once, within ``timeout`` seconds."""
        # `done` is called from the dispatcher thread; before `start` and after `close` from this one.
        self._here().calls.submit(operation, timeout, done)

    def _new_client(self) -> "SessionClient":
        will_import("store.zookeeper.session_client")
        from store.zookeeper.session_client import SessionClient  # noqa: PLC0415  # only a process that connects pays for kazoo

        return SessionClient(
            self._address, self._session_timeout, self._security, read_only=self._read_only, on_call=self._on_call
        )

    def _here(self, *, wake: bool = True) -> "SessionClient":
        """Return this process's own client; make it at the first use, and after a fork."""
        client = self._client
        pid = os.getpid()
        if client is not None and client.pid == pid:
            return client
        # No lock: a fork may have copied it while a thread held it that does not exist here. Of several threads that
        # come here at once, setdefault makes one the winner.
        mine = self._new_client()
        winner = self._clients.setdefault(pid, mine)
        if winner is mine and client is not None:
            client.release_inherited()
        self._client = winner
        if wake and self._started and not self._closed:
            winner.start()
        return winner
