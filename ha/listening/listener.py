"""A listening socket with a connection limit; it closes the excess and leaves the server alone.

A server that accepts from it never holds more than ``most`` connections. When another one comes, the host with the most
loses one: it is shut down here, and its server closes it like any that has ended. So a flood costs the process neither
its descriptors nor its log. If the process still has no descriptor left, connections are accepted and closed.
"""

import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from typing import Any

from ha.listening.connections import Connection, Connections
from ha.listening.throttle import throttle
from store.clock import now
from store.spare import SPARE

SCARCE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
"""The system has no descriptor or no memory for another connection."""

BACKLOG = 1024  # connections that wait in the kernel until they are accepted; they cost the process nothing
LOST_AFTER_MS = 30_000  # the kernel ends a connection whose other side has acknowledged or read nothing for so long
KEEPALIVE_AFTER_S = 60  # the kernel asks a silent host whether it is still there after so long

_log = logging.getLogger("ha.listening")
throttle(_log.name)

Peer = tuple[Any, ...]


class BoundedListener(socket.socket):
    """A listening socket for a server of one thread, such as one of asyncio."""

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
            _log.warning("%s has turned away %s: its network is not in http_networks.", self._what, peer[0])
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
            _log.warning(
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
        _log.error("%s turns connections away: %s. Raise `ulimit -n`.", self._what, error.strerror)
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
