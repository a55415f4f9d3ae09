"""The exchange: one HTTP request to one job master, with the session id it is meant for, on its own connection.

One deadline is for everything: the lookup of the name, connecting, every byte in and out.
"""

import ipaddress
import os
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

import msgspec

from ha.jobmaster.call_errors import Lost, NotExecuted
from ha.jobmaster.master import JobMaster, reach
from ha.jobmaster.security import Security
from ha.jobmaster.verdict import EPOCH_HEADER, SESSION_ID_HEADER, VERDICT_HEADER, Verdict
from store.clock import now

MAX_REPLY_BYTES = 64 << 20  # a longer reply is not held in memory

_METHOD = re.compile("[A-Z]{1,20}")
_PATH = re.compile("/[!-~]{0,8000}")
_HEADER = re.compile("[!-9;-~]{1,200}")
_OURS = {name.lower() for name in (SESSION_ID_HEADER, EPOCH_HEADER, VERDICT_HEADER, "Connection", "Content-Length")}

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


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a job master; a part that cannot be sent is a ``ValueError``, which says which."""

    method: str
    path: str  # with the query, escaped as in a URL
    body: bytes
    headers: Mapping[str, str]  # further ones; the call adds its own

    def __post_init__(self) -> None:
        if not _METHOD.fullmatch(self.method):
            raise ValueError(f"{self.method!r} is not a method: give one such as 'POST'.")
        if not _PATH.fullmatch(self.path):
            raise ValueError(f"{self.path[:100]!r} is not a path: begin with a slash, and escape what is not ASCII.")
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(name) or not value.isprintable() or not value.isascii():
                raise ValueError(f"The header {name!r} cannot be sent: use printable ASCII characters.")
            if name.lower() in _OURS:
                raise ValueError(f"The header {name!r} is the call's own: leave it out.")


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a job master that led as the leader the request was meant for.

    Attributes:
        status: the HTTP status; 404 and 500 are answers, too.
        headers: by their names in lower case; of several with one name the last.
        body: at most 64 MiB.
        master: the one that answered.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    master: JobMaster


def exchange(master: JobMaster, request: Request, deadline: float, security: Security) -> Reply:
    """Send a request, and return the answer of exactly this leader."""
    # InvalidName: the leader's address is not one that can be called. Lost: the request may have been executed, and no
    # valid answer came. NotExecuted: the request was refused, or reached no master.
    host, port, prefix = reach(master)
    context, own = security.context(host, tls=master.address.startswith("https://")), security.headers()
    connection = HTTPConnection(host, port)
    connection.sock = connect(host, port, deadline, context)
    headers = {
        **request.headers,
        **own,
        SESSION_ID_HEADER: master.session_id,
        EPOCH_HEADER: str(master.epoch),
        "Connection": "close",
    }
    try:
        connection.request(request.method, prefix + request.path, request.body or None, headers)
        response = connection.getresponse()
        body = response.read(MAX_REPLY_BYTES + 1)
    except (OSError, HTTPException) as error:
        raise Lost(f"{host}:{port} did not answer ({error!r})") from error
    finally:
        connection.close()
    _check(master, response, body)
    return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, body, master)


def _check(master: JobMaster, response: HTTPResponse, body: bytes) -> None:
    """Raise unless this is an answer of this leader, from when it led."""
    said = response.headers.get(VERDICT_HEADER)
    if said in {verdict.value for verdict in Verdict if not verdict.executed}:
        verdict = Verdict(said)
        in_vain = verdict in (Verdict.MISSING, Verdict.DENIED)
        raise NotExecuted(f"{master.address}: {_sentence(body) or verdict.value}", in_vain=in_vain)
    if said != Verdict.ACCEPTED.value or response.headers.get(SESSION_ID_HEADER) != master.session_id:
        words = _sentence(body) or "it names no session id"
        raise Lost(f"{master.address} answered {response.status}, but not as the leader: {words}")
    if len(body) > MAX_REPLY_BYTES:
        raise Lost(f"{master.address} answered with more than {MAX_REPLY_BYTES:,} bytes")


class _Said(msgspec.Struct):
    error: str = ""
    detail: str = ""


def _sentence(body: bytes) -> str:
    """Return the error that a body tells; empty if it tells none."""
    try:
        said = msgspec.json.decode(body, type=_Said)
        return (said.detail or said.error)[:200]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
