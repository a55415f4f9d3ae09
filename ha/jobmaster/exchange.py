"""The exchange: one HTTP request to one job master, with the session id it is meant for, on its own connection."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse

import msgspec

from ha.jobmaster.call_errors import Lost, NotExecuted
from ha.jobmaster.connecting import connect
from ha.jobmaster.master import JobMaster, reach
from ha.jobmaster.security import Security
from ha.jobmaster.verdict import EPOCH_HEADER, SESSION_ID_HEADER, VERDICT_HEADER, Verdict

MAX_REPLY_BYTES = 64 << 20  # a longer reply is not held in memory

_METHOD = re.compile("[A-Z]{1,20}")
_PATH = re.compile("/[!-~]{0,8000}")
_HEADER = re.compile("[!-9;-~]{1,200}")
_OURS = {name.lower() for name in (SESSION_ID_HEADER, EPOCH_HEADER, VERDICT_HEADER, "Connection", "Content-Length")}


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
