"""Liveness probes: connections to other processes, on the thread of an event loop. They listen and send nothing."""

import asyncio
import errno
import socket
from collections.abc import Callable

from leader.election.ports import Heard, ProbeEvent
from leader.layout.contact import GREETING_BYTES, MOST_NOTICE_BYTES, ContactAddress, ReleaseNotice, greeted_by

CONNECT_TIMEOUT = 1.0  # seconds. A live host answers within a round trip, and a probe that fails is repeated


class LivenessProbes:
    """All probes that are open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: set[_TcpProbe] = set()

    def probe(self, address: ContactAddress, on_event: Callable[[Heard], None]) -> "_TcpProbe":
        """See :meth:`leader.election.ports.ProbeEnvironment.probe`; call it on the loop's thread."""
        probe = _TcpProbe(self._loop, address, on_event, self._open.discard)
        self._open.add(probe)
        probe.connect()
        return probe

    def close(self) -> None:
        """Close all probes."""
        for probe in list(self._open):
            probe.close()


class _TcpProbe:
    """One connection."""

    # TCP keepalive stays off: a keepalive packet that reaches another host would break a connection that is not broken.

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: ContactAddress,
        on_event: Callable[[Heard], None],
        on_closed: Callable[["_TcpProbe"], None],
    ) -> None:
        self._loop, self._address, self._on_event, self._on_closed = loop, address, on_event, on_closed
        self._socket: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._received = b""
        self._greeted = False

    def connect(self) -> None:
        """Start to connect."""
        family = socket.AF_INET6 if ":" in self._address.host else socket.AF_INET
        self._timer = self._loop.call_later(CONNECT_TIMEOUT, self._end, ProbeEvent.SILENT)
        try:
            self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            failed = self._socket.connect_ex((self._address.host, self._address.port))
        except OSError as error:  # no descriptor left, or no such family of addresses
            failed = error.errno or errno.EIO
        if failed in (0, errno.EINPROGRESS):
            assert self._socket is not None, "only a socket can connect"
            self._loop.add_writer(self._socket, self._connected, self._socket)
        else:
            self._end_soon(_event_of(failed))

    def close(self) -> None:
        """Close the connection; no event follows."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._socket is not None:
            self._loop.remove_writer(self._socket)
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        self._on_closed(self)

    def _end_soon(self, event: ProbeEvent) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(0, self._end, event)

    def _end(self, event: ProbeEvent) -> None:
        self.close()
        self._on_event(event)

    def _connected(self, connected: socket.socket) -> None:
        self._loop.remove_writer(connected)
        failed = connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            self._end(_event_of(failed))
        elif _is_connected_to_itself(connected):
            self._end(ProbeEvent.SILENT)
        else:
            if self._timer is not None:
                # From here on silence has no time limit: a paused process greets when it resumes.
                self._timer.cancel()
                self._timer = None
            self._loop.add_reader(connected, self._readable, connected)

    def _readable(self, connected: socket.socket) -> None:
        try:
            received = connected.recv(MOST_NOTICE_BYTES if self._greeted else GREETING_BYTES - len(self._received))
        except BlockingIOError:
            return
        except ConnectionResetError:
            received = b""
        except OSError:
            self._end(ProbeEvent.SILENT)
            return
        if not received:
            self._end(ProbeEvent.BROKEN)
            return
        self._received += received
        if self._greeted:
            self._take_notices()
        elif len(self._received) == GREETING_BYTES:
            self._take_greeting()

    def _take_greeting(self) -> None:
        process, self._received = greeted_by(self._received), b""
        if process == self._address.process:
            self._greeted = True
            self._on_event(ProbeEvent.GREETED)
        else:
            self._end(ProbeEvent.ANOTHER_PROCESS if process is not None else ProbeEvent.SILENT)

    def _take_notices(self) -> None:
        *lines, self._received = self._received.split(b"\n")
        for notice in map(ReleaseNotice.parse, lines):
            if self._socket is None:
                return  # the receiver of the notice before this one has closed it
            if notice is None:
                self._end(ProbeEvent.SILENT)
            else:
                self._on_event(notice)
        if len(self._received) > MOST_NOTICE_BYTES and self._socket is not None:
            self._end(ProbeEvent.SILENT)


def _event_of(failed: int) -> ProbeEvent:
    return ProbeEvent.REFUSED if failed == errno.ECONNREFUSED else ProbeEvent.SILENT


def _is_connected_to_itself(connected: socket.socket) -> bool:
    """The kernel can give a socket the very port that it connects to on its own host: it then talks to itself."""
    try:
        return bool(connected.getsockname() == connected.getpeername())
    except OSError:
        return False
