"""A TCP connection on which everything ends in time: looking the name up, connecting, every byte in and out."""

import os
import socket
import threading
from typing import Any

from ha.jobmaster.errors import NotExecuted
from store.clock import now

CONNECT_TIMEOUT = 1.0
"""Seconds for one address: a host that is lost drops what is sent to it, and another may lead by then."""

MOST_LOOKUPS = 8
"""Names that are being looked up at the same time; a resolver that hangs must not cost a thread for each call."""

_lookups = threading.BoundedSemaphore(MOST_LOOKUPS)


def _after_fork() -> None:
    """Those that look names up are not here."""
    global _lookups  # noqa: PLW0603  # one for the process
    _lookups = threading.BoundedSemaphore(MOST_LOOKUPS)


os.register_at_fork(after_in_child=_after_fork)


class TimedSocket(socket.socket):
    """A socket whose operations share one deadline; :meth:`socket.socket.makefile` reads by :meth:`recv_into`."""

    deadline = float("inf")
    """Boot-clock seconds."""

    def recv(self, *arguments: Any) -> bytes:
        """Receive.

        Raises:
            TimeoutError: the deadline is over.
        """
        self._hurry()
        return super().recv(*arguments)

    def recv_into(self, *arguments: Any) -> int:
        """Receive, as :meth:`recv` does."""
        self._hurry()
        return super().recv_into(*arguments)

    def sendall(self, *arguments: Any) -> None:
        """Send all of it, as :meth:`recv` receives."""
        self._hurry()
        super().sendall(*arguments)

    def _hurry(self) -> None:
        rest = self.deadline - now()
        if rest <= 0:
            raise TimeoutError("the time is over")
        if rest < threading.TIMEOUT_MAX:
            self.settimeout(rest)


def connect(host: str, port: int, deadline: float) -> TimedSocket:
    """Connect to the first address of this host that takes it.

    Args:
        host: a name or an IP address.
        port: of TCP.
        deadline: boot-clock seconds; of the connection, too, until it is changed.

    Raises:
        NotExecuted: nobody took it in time.
    """
    cause = f"{host} has no address"
    for family, address in _addresses(host, port, deadline):
        connection = TimedSocket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(max(0.001, min(CONNECT_TIMEOUT, deadline - now())))
            connection.connect(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connection.close()
            cause = f"{host}:{port} cannot be connected to ({error.strerror or error})"
        else:
            connection.deadline = deadline
            return connection
    raise NotExecuted(cause)


def _addresses(host: str, port: int, deadline: float) -> list[tuple[int, Any]]:
    """Look the name up on a thread: the system's resolver knows no deadline."""
    rest, lookups = deadline - now(), _lookups
    if rest <= 0 or not lookups.acquire(timeout=rest):
        raise NotExecuted(f"the name {host} could not be looked up in time")
    found: list[tuple[int, Any]] = []
    failed: list[str] = []

    def look_up() -> None:
        try:
            found.extend((family, address) for family, _, _, _, address in _resolve(host, port))
        except (OSError, UnicodeError) as error:
            failed.append(f"{error}")
        finally:
            lookups.release()

    if _is_address(host):
        look_up()  # which asks nobody
    else:
        thread = threading.Thread(target=look_up, name="ha-resolver", daemon=True)
        thread.start()
        thread.join(max(0.0, deadline - now()))
    if not found:
        raise NotExecuted(f"the name {host} was not found ({failed[0] if failed else 'no answer in time'})")
    return found


def _resolve(host: str, port: int) -> list[tuple[int, int, int, str, Any]]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def _is_address(host: str) -> bool:
    """Whether that is an IP address and no name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host.partition("%")[0])
        except OSError:
            continue
        return True
    return False
