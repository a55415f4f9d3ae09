"""TCP connections with one deadline for everything: the lookup of the name, connecting, every byte in and out."""

import ipaddress
import os
import socket
import ssl
import threading
from typing import Any

from ha.jobmaster.call_errors import NotExecuted
from store.clock import now

ADDRESS_TIMEOUT_S = 1.0  # seconds for one address: a lost host does not answer at all, and another one may lead by then

MOST_LOOKUPS = 8
"""Names that are looked up at the same time: a resolver that hangs must not cost a thread for each call."""

_lookups = threading.BoundedSemaphore(MOST_LOOKUPS)


def _after_fork() -> None:
    """Reset the count: the threads that look names up do not exist in a forked child."""
    global _lookups  # noqa: PLW0603  # one for the process
    _lookups = threading.BoundedSemaphore(MOST_LOOKUPS)


os.register_at_fork(after_in_child=_after_fork)


class TimedSocket(socket.socket):
    """A socket whose operations share one deadline; :meth:`socket.socket.makefile` reads by :meth:`recv_into`."""

    deadline = float("inf")  # boot-clock seconds

    def recv(self, *arguments: Any) -> bytes:
        """Receive; ``TimeoutError`` once the deadline has passed."""
        self._set_timeout()
        return super().recv(*arguments)

    def recv_into(self, *arguments: Any) -> int:
        """Receive, as :meth:`recv` does."""
        self._set_timeout()
        return super().recv_into(*arguments)

    def sendall(self, *arguments: Any) -> None:
        """Send all of it, as :meth:`recv` receives."""
        self._set_timeout()
        super().sendall(*arguments)

    def _set_timeout(self) -> None:
        rest = self.deadline - now()
        if rest <= 0:
            raise TimeoutError("the time is over")
        if rest < threading.TIMEOUT_MAX:
            self.settimeout(rest)


class TimedTlsSocket(TimedSocket, ssl.SSLSocket):
    """One with TLS. Its base class sends piece by piece with :meth:`send`."""

    def send(self, *arguments: Any) -> int:
        """Send some of it, as :meth:`recv` receives."""
        self._set_timeout()
        return super().send(*arguments)


def connect(host: str, port: int, deadline: float, context: ssl.SSLContext | None = None) -> TimedSocket:
    """Connect to the first address of the host that accepts, with TLS if there is a context, by the deadline.

    ``NotExecuted`` if no address accepted in time, or the server is not the one that its name says.
    """
    cause = f"{host} has no address"
    for family, address in _addresses(host, port, deadline):
        connection = TimedSocket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(max(0.001, min(ADDRESS_TIMEOUT_S, deadline - now())))
            connection.connect(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connection.close()
            cause = f"{host}:{port} cannot be connected to ({error.strerror or error})"
        else:
            connection.deadline = deadline
            return connection if context is None else _secured(connection, host, port, context)
    raise NotExecuted(cause)


def _secured(connection: TimedSocket, host: str, port: int, context: ssl.SSLContext) -> TimedTlsSocket:
    """Begin TLS; within the connection's deadline."""
    try:
        connection.settimeout(max(0.001, connection.deadline - now()))
        context.sslsocket_class = TimedTlsSocket
        made = context.wrap_socket(connection, server_hostname=host.partition("%")[0])
    except (OSError, ValueError) as error:  # ssl's own error is an OSError; ValueError: no name that TLS can check
        connection.close()
        reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or error
        raise NotExecuted(f"TLS with {host}:{port} failed ({reason})") from error
    assert isinstance(made, TimedTlsSocket), "the context was told which class"
    made.deadline = connection.deadline
    return made


def _addresses(host: str, port: int, deadline: float) -> list[tuple[int, Any]]:
    """Look the name up on a thread: the system's resolver knows no deadline."""
    rest, lookups = deadline - now(), _lookups
    if rest <= 0 or not lookups.acquire(timeout=rest):
        raise NotExecuted(f"the name {host} could not be looked up in time")
    found: list[tuple[int, Any]] = []
    failed: list[str] = []

    def look_up() -> None:
        try:
            listed = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.extend((family, address) for family, _, _, _, address in listed)
        except (OSError, UnicodeError) as error:
            failed.append(f"{error}")
        finally:
            lookups.release()

    if _is_address(host):
        look_up()  # this asks no resolver
    else:
        thread = threading.Thread(target=look_up, name="ha-resolver", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            lookups.release()
            raise NotExecuted(f"the name {host} was not looked up ({error})") from error
        thread.join(max(0.0, deadline - now()))
    if not found:
        raise NotExecuted(f"the name {host} was not found ({failed[0] if failed else 'no answer in time'})")
    return found


def _is_address(host: str) -> bool:
    """Whether ``host`` is an IP address, not a name."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
