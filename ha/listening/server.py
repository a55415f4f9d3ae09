"""The HTTP server: uvicorn on a thread of its own, with what uvicorn lacks: a bound on connections, and deadlines.

Uvicorn's own limit answers 503 to requests, but keeps every connection; it waits for ever for a first request, and for
the rest of one that has begun. Here a request must arrive within :data:`HEADERS_WITHIN_S`, and its body within
:data:`BODY_WITHIN_S`, however slowly it trickles.
"""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
import threading
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from ha.listening.access import Access
from ha.listening.connections import Connection, Connections, most_connections
from ha.listening.throttle import throttle
from store.clock import now
from store.spare import SPARE

HEADERS_WITHIN_S = 10.0
"""Seconds from the beginning of a connection, or from the last answer, to the end of a request's headers."""

BODY_WITHIN_S = 60.0  # seconds from there to the end of its body
IDLE_S = 5  # seconds without a byte between two requests; uvicorn takes whole ones

ACCEPTED_AT_ONCE = 16
"""Connections that are accepted before those that are open are looked at again: a request that has arrived is read
before a flood of others can push its connection out."""

STOP_WITHIN_S = 3.0

SCARCE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
"""The system has no descriptor or no memory for another connection."""

BACKLOG = 1024  # connections that wait in the kernel until they are accepted; they cost the process nothing
LOST_AFTER_MS = 30_000  # the kernel ends a connection whose other side has acknowledged or read nothing for so long
KEEPALIVE_AFTER_S = 60  # the kernel asks a silent host whether it is still there after so long

_log = logging.getLogger("ha")

_flooded = logging.getLogger("ha.listening")
throttle(_flooded.name)

Peer = tuple[Any, ...]


class BoundedListener(socket.socket):
    """A listening socket for a server of one thread, with a connection limit; it leaves the server alone.

    A server that accepts from it never holds more than ``most`` connections. When another one comes, the host with the
    most loses one: it is shut down here, and its server closes it like any that has ended. So a flood costs the process
    neither its descriptors nor its log. If the process still has no descriptor left, connections are accepted and
    closed.
    """

    def __init__(self, bound: socket.socket, most: int, what: str, admits: Callable[[str], bool]) -> None:
        """Take the place of ``bound``, which must listen already; ``what`` names the server in log lines."""
        super().__init__(fileno=bound.detach())
        super().listen(BACKLOG)
        self._what, self._admits = what, admits
        self._connections = Connections(most)
        self._by_peer: dict[Peer, Connection] = {}
        SPARE.keep()

    def listen(self, _backlog: int = 0, /) -> None:
        """Do nothing: it listens already. Servers listen with a backlog of their own, which is too short."""

    def accept(self) -> tuple[socket.socket, Peer]:
        """Accept a connection; ``BlockingIOError`` if there is none that is admitted."""
        try:
            accepted, peer = super().accept()
        except OSError as error:
            if error.errno not in SCARCE:
                raise
            self._turn_away(error)
            raise BlockingIOError(errno.EAGAIN, "No connection can be accepted now") from error
        if not self._admits(peer[0]):
            accepted.close()
            _flooded.warning("%s has turned away %s: its network is not in http_networks.", self._what, peer[0])
            raise BlockingIOError(errno.EAGAIN, "The connection was not admitted")
        return self._admit(accepted, peer), peer

    def busy(self, peer: Peer, busy: bool) -> None:
        """Note whether a request of this peer is being handled: such a connection goes last."""
        connection = self._by_peer.get(peer)
        if connection is not None:
            connection.busy = busy

    def _admit(self, accepted: socket.socket, peer: Peer) -> socket.socket:
        made = _Accepted(accepted, lambda: self._forget(peer, connection))
        with contextlib.suppress(OSError):  # it has ended already
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_AFTER_MS)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_AFTER_S)
        connection = self._connections.add(peer[0], made.end, now())
        self._by_peer[peer] = connection
        surplus = self._connections.surplus(now())
        if surplus is not None:
            self._connections.remove(surplus)
            surplus.close()
            _flooded.warning(
                "%s has %d connections, the maximum: it closes one of %s for each new one.",
                self._what,
                self._connections.most,
                surplus.group,
            )
        return made

    def _forget(self, peer: Peer, connection: Connection) -> None:
        self._connections.remove(connection)
        if self._by_peer.get(peer) is connection:
            del self._by_peer[peer]

    def _turn_away(self, error: OSError) -> None:
        """Accept one connection with the spare descriptor and close it: otherwise it would be offered again at once."""
        _flooded.error("%s turns connections away: %s. Raise `ulimit -n`.", self._what, error.strerror)
        with SPARE.borrowed():
            try:
                accepted, _ = super().accept()
            except BlockingIOError:
                return
            accepted.close()


class _Accepted(socket.socket):
    """A connection that says when it is closed."""

    def __init__(self, accepted: socket.socket, on_close: Callable[[], None]) -> None:
        super().__init__(fileno=accepted.detach())
        self._on_close = on_close

    def close(self) -> None:
        """Close it, and say so."""
        self._on_close()
        super().close()

    def end(self) -> None:
        """Shut it down: its server finds its end, and closes it."""
        with contextlib.suppress(OSError):  # the other side has ended it
            self.shutdown(socket.SHUT_RDWR)


class HttpServer:
    """Serves an application on a thread of its own, so that a slow client delays only itself."""

    def __init__(self, application: ASGIApp, bound: socket.socket, what: str, access: Access) -> None:
        """Prepare; connections are accepted from :meth:`start` on, from ``bound``, which listens already."""
        # `what` names the server in log lines. Of `access` it takes TLS and the networks; the rest is the
        # application's.
        for name in ("asyncio", "uvicorn.error"):
            throttle(name)  # they write a line, or a traceback, for each connection that fails
        self._what = what
        self._socket = BoundedListener(bound, most_connections(), what, access.admits)
        host, port = self._socket.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        protocol: Any = partial(_Protocol, on_busy=self._socket.busy)
        self.application = application
        config = uvicorn.Config(
            application, http=protocol, ws="none", lifespan="off", log_config=None, log_level="warning",
            access_log=False, proxy_headers=False, server_header=False, backlog=ACCEPTED_AT_ONCE,
            timeout_keep_alive=IDLE_S, timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._warnings = () if ipaddress.ip_address(host.partition("%")[0]).is_loopback else tuple(access.weaknesses())
        config.load()
        self._scheme = "http"
        if access.tls is not None:
            config.ssl, self._scheme = access.tls.context, "https"
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="ha-http", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()
        for each in self._warnings:
            _log.warning("%s %s", self._what, each)
        _log.info("%s answers at %s://%s.", self._what, self._scheme, self.address)

    def close(self) -> None:
        """Stop answering; within :data:`STOP_WITHIN_S`."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(STOP_WITHIN_S)
        self._socket.close()


class _Awaits(Enum):
    """The part of a request that a connection waits for."""

    HEADERS = 1
    BODY = 2
    ANSWER = 3


class _Protocol(H11Protocol):
    """One connection."""

    def __init__(self, *arguments: Any, on_busy: Callable[[Any, bool], None], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._on_busy = on_busy
        self._awaits: _Awaits | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = transport.get_extra_info("peername")
        self._note()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._set_deadline(None)

    def _note(self) -> None:
        """Give the connection a new deadline if it waits for something else than before."""
        awaits = self._what_it_awaits()
        if awaits is not self._awaits:
            self._awaits = awaits
            self._on_busy(self._peer, awaits is not _Awaits.HEADERS)
            self._set_deadline({_Awaits.HEADERS: HEADERS_WITHIN_S, _Awaits.BODY: BODY_WITHIN_S}.get(awaits))

    def _what_it_awaits(self) -> _Awaits:
        request: RequestResponseCycle | None = self.cycle
        if request is None or request.response_complete:
            return _Awaits.HEADERS
        return _Awaits.BODY if request.more_body else _Awaits.ANSWER

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.transport.abort) if seconds is not None else None
