"""Connections to other processes, on an event loop's own thread: what they say of those processes, and nothing sent."""

import asyncio
import errno
import socket
from collections.abc import Callable

from leader.environment import Sign
from leader.whereabouts import GREETING_BYTES, Whereabouts, greeted_by

CONNECTED_WITHIN = 1.0
"""Seconds; a host that lives answers within a round trip, and who is told nothing calls again."""


class Lines:
    """All connections that are open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: set[_Line] = set()

    def call(self, where: Whereabouts, heard: Callable[[Sign], None]) -> "_Line":
        """See :meth:`leader.environment.Environment.call`; on the loop's thread."""
        line = _Line(self._loop, where, heard, self._open.discard)
        self._open.add(line)
        line.connect()
        return line

    def close(self) -> None:
        """Close all of them."""
        for line in list(self._open):
            line.close()


class _Line:
    """One connection; keepalive stays off: a probe that comes to another host would break what is not broken."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        where: Whereabouts,
        heard: Callable[[Sign], None],
        closed: Callable[["_Line"], None],
    ) -> None:
        self._loop, self._where, self._heard, self._closed = loop, where, heard, closed
        self._socket: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._greeting = b""

    def connect(self) -> None:
        """Begin."""
        family = socket.AF_INET6 if ":" in self._where.host else socket.AF_INET
        self._timer = self._loop.call_later(CONNECTED_WITHIN, self._end, Sign.NOTHING)
        try:
            self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            failed = self._socket.connect_ex((self._where.host, self._where.port))
        except OSError as error:  # no descriptor left, or no such family of addresses
            failed = error.errno or errno.EIO
        if failed in (0, errno.EINPROGRESS):
            assert self._socket is not None, "only a socket can connect"
            self._loop.add_writer(self._socket, self._connected, self._socket)
        else:
            self._later(_sign_of(failed))

    def close(self) -> None:
        """End it; nothing is heard any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._socket is not None:
            self._loop.remove_writer(self._socket)
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        self._closed(self)

    def _later(self, sign: Sign) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(0, self._end, sign)

    def _end(self, sign: Sign) -> None:
        self.close()
        self._heard(sign)

    def _connected(self, connected: socket.socket) -> None:
        self._loop.remove_writer(connected)
        failed = connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            self._end(_sign_of(failed))
        elif _is_itself(connected):
            self._end(Sign.NOTHING)
        else:
            if self._timer is not None:
                # From here on silence has no end: whoever is paused greets when it goes on.
                self._timer.cancel()
                self._timer = None
            self._loop.add_reader(connected, self._readable, connected)

    def _readable(self, connected: socket.socket) -> None:
        try:
            said = connected.recv(GREETING_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            said = b""
        except OSError:
            self._end(Sign.NOTHING)
            return
        if not said:
            self._end(Sign.BROKEN)
            return
        self._greeting += said
        if len(self._greeting) < GREETING_BYTES:
            return
        process = greeted_by(self._greeting)
        if process == self._where.process:
            self._heard(Sign.ITSELF)
        else:
            self._end(Sign.ANOTHER if process is not None else Sign.NOTHING)


def _sign_of(failed: int) -> Sign:
    return Sign.REFUSED if failed == errno.ECONNREFUSED else Sign.NOTHING


def _is_itself(connected: socket.socket) -> bool:
    """A socket can be given the very port that it calls on its own host, and is then connected to itself."""
    try:
        return bool(connected.getsockname() == connected.getpeername())
    except OSError:
        return False
