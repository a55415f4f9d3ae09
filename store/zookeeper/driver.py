"""Kazoo, with its rough edges taken off.

All code that depends on the inside of kazoo is in this file and in :mod:`store.zookeeper.handler`. Seen in kazoo
2.11.0, and mended there:

- ``AsyncResult`` calls back from a worker thread, watches from another; here results call back in the connection
  thread (our callbacks only hand over), and watches go to our dispatcher: two threads fewer, one hop less.
- The byte that wakes the connection thread goes into a socket pair that is full after 278 bytes (Linux), and then
  blocks the caller for as long as the connection thread is stuck in a send: an eventfd never is.
- The negotiated session timeout is a local variable.
- Connecting takes the whole session timeout for one server that drops SYNs, and the search for a writable server has no
  time-out at all, asks only the first server of the list, and then connects to another.
- An unexpected exception (an unknown error code is enough) ends the connection thread for good.
- A request that is queued in the moment in which the connection breaks is sent after the reconnect.
- One name that the resolver is slow to deny holds up each connection.
- A server that refuses a login ends the connection thread for good, and the session with it; one that wants a login, or
  TLS, is asked again nine times a second. Listeners hear of a connection before the server has accepted its login.
- The log, at the level of debugging, shows passwords.
- Ending a client can take ten seconds and more.
"""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import STOP_CONNECTING, ConnectionDropped, ConnectionHandler
from kazoo.protocol.serialization import SASL, Auth, CloseInstance, Connect, Exists
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry

from store.zookeeper import names
from store.zookeeper.address import Address
from store.zookeeper.dispatcher import Dispatcher
from store.zookeeper.handler import Handler
from store.zookeeper.login import access_list, auth_data, refusal_of, sasl_options, wants_tls
from store.zookeeper.refusals import Refusals
from store.zookeeper.security import Security

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 2.0  # for one TCP connection: a server that cannot be reached must not cost the next its chance
FIND_WRITABLE_TIMEOUT_S = 0.5  # for asking one server; the connection thread does nothing else meanwhile

NO_SECURITY = Security()

FIRST_RETRY_S = 0.1
MAX_RETRY_S = 1.0
_END_S = 0.5


class QuietLog(logging.LoggerAdapter[logging.Logger]):
    """Kazoo's log, all of it at the level of debugging, without passwords."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """See :meth:`logging.Logger.log`."""
        level = min(level, logging.DEBUG)
        if self.logger.isEnabledFor(level):  # as a rule it is not, and kazoo logs three lines for each request
            shown = ("a login" if isinstance(each, Auth | SASL) else each for each in args)
            super().log(level, msg, *shown, **kwargs)


class _Connection(ConnectionHandler):  # type: ignore[misc]  # kazoo has no types
    negotiated_s = 0.0
    _rw_server: names.Address | None

    def __init__(self, *args: Any, refusals: Refusals, security: Security, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._refusals = refusals
        self._security = security
        self._names = names.Names()

    def _connect_loop(self, retry: Any) -> Any:
        if self.client._stopped.wait(self._refusals.pause()):  # noqa: SLF001
            return STOP_CONNECTING
        return super()._connect_loop(retry)

    def _connect(self, host: str, hostip: str, port: int) -> Any:
        """Connect and log in; a connection is reported only after the server has answered a request over it."""
        self.negotiated_s = 0.0
        try:
            self.client.auth_data = auth_data(self._security)
            self.sasl_options = sasl_options(self._security)
            with self.client.held_back():
                timeouts = super()._connect(host, hostip, port)
                self._invoke(timeouts[1] / 1000, Exists("/", None), xid=1)
        except Exception as error:
            self._refused(error, host, hostip, port)
            raise
        self._refusals.served()
        return timeouts

    def _refused(self, error: Exception, host: str, hostip: str, port: int) -> None:
        """Report a refusal, and raise what makes kazoo reconnect in the same session; return if it is none."""
        client = self.client
        found = refusal_of(error, f"{host}:{port}", tls=client.use_ssl, sasl=self.sasl_options is not None)
        greeted, connected = self.negotiated_s > 0, self._socket is not None
        if found is None and connected and not greeted and not client.use_ssl:
            found = wants_tls(hostip, port) if isinstance(error, ConnectionDropped | KazooTimeoutError) else None
        if found is not None:
            self._refusals.refused(*found)
            raise ConnectionDropped(found[1]) from error

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        answer = super()._invoke(timeout, request, xid)
        if isinstance(request, Connect):  # comes before any listener hears of the connection
            self.negotiated_s = answer[0].time_out / 1000
        return answer

    def _server_pinger(self) -> Iterator[names.Address | None]:
        """Look for a writable server, one server per ping."""
        while True:
            servers = self._expand_client_hosts()
            if not servers:
                yield None
            for server in servers:
                try:
                    with socket.create_connection(server[1:], FIND_WRITABLE_TIMEOUT_S) as asked:
                        asked.sendall(b"isro")
                        yield server if asked.recv(16) == b"rw" else None
                except OSError:
                    yield None

    def _connect_attempt(self, host: str, hostip: str, port: int, retry: Any) -> Any:
        if self._rw_server:
            (host, hostip, port), self._rw_server = self._rw_server, None
        try:
            return super()._connect_attempt(host, hostip, port, retry)
        except Exception:  # it would end this thread, and the client, for good
            log.exception("The connection to ZooKeeper at %s:%s ended in an unexpected way: reconnecting.", host, port)
            self.client._session_callback(KeeperState.CONNECTING)  # noqa: SLF001
            return None

    def _expand_client_hosts(self) -> list[names.Address]:
        return self._names.addresses(self.client.hosts)

    def zk_loop(self) -> None:
        try:
            super().zk_loop()
        finally:
            self.close()  # here, since no caller may have to wait until a stuck connection thread has ended


class Kazoo(KazooClient):  # type: ignore[misc]  # kazoo has no types
    """One kazoo client that connects for ever, until it is ended."""

    def __init__(
        self,
        address: Address,
        session_timeout: float,
        dispatcher: Dispatcher,
        *,
        read_only: bool,
        on_state: Callable[[str], None],
        refusals: Refusals,
        security: Security = NO_SECURITY,
    ) -> None:
        self._holding = False
        self._held: list[str] = []
        retry = KazooRetry(max_tries=-1, delay=FIRST_RETRY_S, max_delay=MAX_RETRY_S)
        connect_timeout = min(CONNECT_TIMEOUT_S, session_timeout / len(address.servers))
        # The chroot is ours to add: kazoo's has to exist before its calls work.
        hosts = str(Address(address.servers, ""))
        super().__init__(
            hosts,
            timeout=session_timeout,
            handler=Handler(dispatcher, connect_timeout, security),
            read_only=read_only,
            use_ssl=bool(security.ca),
            default_acl=access_list(security),
            connection_retry=retry,
            # A line for every attempt, about one per second while ZooKeeper is down, is for debugging.
            logger=QuietLog(log, {}),
        )
        self._connection = _Connection(
            self, self._conn_retry.copy(), logger=self.logger, refusals=refusals, security=security
        )
        self.add_listener(on_state)

    @property
    def session_id(self) -> int:
        """The id of the session; only meaningful while connected."""
        return self._session_id or 0

    @property
    def negotiated_s(self) -> float:
        """The session timeout that the server agreed to, in seconds."""
        return float(self._connection.negotiated_s)

    @property
    def writable(self) -> bool:
        """Whether there is a connection to a server that takes writes."""
        # This turns false before kazoo tells its listeners that the connection is gone, or fails pending requests.
        return bool(self._state == KeeperState.CONNECTED)

    @property
    def readable(self) -> bool:
        """Whether there is a connection."""
        return self._state in (KeeperState.CONNECTED, KeeperState.CONNECTED_RO)

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        """Report a new connection only at the end of this block, and not at all if it fails."""
        self._holding, self._held = True, []
        try:
            yield
        finally:
            self._holding = False
        for state in self._held:
            self._session_callback(state)

    def _session_callback(self, state: str) -> None:
        if self._holding and state in (KeeperState.CONNECTED, KeeperState.CONNECTED_RO):
            self._held.append(state)
            return
        super()._session_callback(state)

    def forget(self) -> None:
        """Reconnect with fewer demands, now that the session is over by our clock."""
        # A server refuses clients that have seen more than it has: if it was wiped, for ever. And a read-only server
        # refuses every session that it has not made itself, so a client that accepts such a server must drop its
        # session. Any other client keeps it: servers that were away give it back, with its ephemeral nodes.
        self.last_zxid = 0
        if self.read_only:
            self._reset_session()

    def drop_queued(self) -> None:
        """Fail the requests that were queued without a connection; to be called by the connection thread."""
        ending = []
        while self._queue:
            request, result = self._queue.popleft()
            if result is None:  # the request to close the session
                ending.append((request, result))
            else:
                result.set_exception(ConnectionLoss())
        self._queue.extend(ending)

    def cut(self) -> None:
        """Break the connection, so that the connection thread makes a new one."""
        connected = self._connection._socket  # noqa: SLF001
        if connected is not None:
            with contextlib.suppress(OSError):  # it is closed already
                connected.shutdown(socket.SHUT_RDWR)

    def end(self, timeout: float) -> None:
        """Close the session if that is possible in ``timeout`` seconds, and the connection within 0.5 s more."""
        connection = self._connection
        self._stopped.set()
        self._queue.append((CloseInstance, None))
        with contextlib.suppress(OSError, AttributeError):  # the connection thread has ended
            connection._write_sock.send(b"\0")  # noqa: SLF001
        thread = connection._connection_routine  # noqa: SLF001
        if thread is None or thread is threading.current_thread():
            return
        thread.join(timeout)
        if thread.is_alive():
            self.cut()
            thread.join(_END_S)

    def release_inherited(self) -> None:
        """In a forked child: close our copies of the parent's descriptors, which the parent does not notice."""
        for inherited in (self._connection._socket, self._connection._write_sock):  # noqa: SLF001
            if inherited is not None:
                with contextlib.suppress(OSError):
                    inherited.close()
