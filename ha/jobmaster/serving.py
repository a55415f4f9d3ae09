"""The server of a job master: serves a WSGI application behind the guard, with bounds, deadlines, TLS and tokens."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from ha.config.addresses import bind
from ha.config.server_access import access_of
from ha.config.sources import load
from ha.jobmaster.guard import Application, GuardedApplication
from ha.jobmaster.verdict import VERDICT_HEADER, LeaderNow, Verdict
from ha.listening.problems import problem
from ha.listening.server import HttpServer
from ha.listening.tokens import Role, TokenCheck

MAX_BODY_BYTES = 16 << 20  # a longer body is refused: it is held in memory

WHAT = "The job master"
DENIED = {VERDICT_HEADER: Verdict.DENIED.value}


@contextmanager
def serve(application: Application, leader: LeaderNow, listen: str, **settings: Any) -> Iterator[HttpServer]:
    """Serve a WSGI application to callers of this leader, on threads, until the block ends.

    As soon as there is a file of tokens, ``GET`` and ``HEAD`` need one of the role "read", all else one of "operate".

    Args:
        application: gets only requests that are meant for this leader; see :class:`ha.jobmaster.GuardedApplication`.
        leader: this process's :class:`ha.leadership.leadership.Leadership`.
        listen: ``host:port``; port 0 takes a free one.
        settings: those whose names begin with ``http_``; default: as everywhere, the environment's and the file's.

    Yields:
        The server; its ``address`` is ``host:port``.

    Raises:
        InvalidSettings: a setting is wrong, a file cannot be read, or the address is none or in use.
    """
    access = access_of(load(settings))
    served: ASGIApp = _Bridge(GuardedApplication(application, leader))
    if access.tokens.wanted:
        served = TokenCheck(served, access.tokens, _needed, DENIED)
    server = HttpServer(served, bind(listen, WHAT), WHAT, access)
    server.start()
    try:
        yield server
    finally:
        server.close()


def _needed(scope: Scope) -> Role:
    return Role.READ if scope["method"] in {"GET", "HEAD"} else Role.OPERATE


class _Bridge:
    """An ASGI application that has a WSGI application answer, on a thread; whole requests and whole answers."""

    def __init__(self, application: GuardedApplication) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MAX_BODY_BYTES:
                text = f"A request may have {MAX_BODY_BYTES:,} bytes."
                await problem(413, text, {**DENIED, "Connection": "close"})(scope, receive, send)
                return
        status, headers, answer = await run_in_threadpool(self._answer, _environ(scope, bytes(body)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _answer(self, environ: dict[str, Any]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        said: list[tuple[str, list[tuple[str, str]]]] = []
        answer = b"".join(self._application(environ, lambda status, headers: said.append((status, headers))))
        status, headers = said[-1]
        encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        return int(status.partition(" ")[0]), encoded, answer


def _environ(scope: Scope, body: bytes) -> dict[str, Any]:
    """Return the environment of a request; see PEP 3333."""
    host, port = scope["server"] or ("localhost", 0)
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "REMOTE_ADDR": scope["client"][0] if scope["client"] else "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        variable = name.decode("latin-1").upper().replace("-", "_")
        key = variable if variable in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{variable}"
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]},{text}" if key in environ else text
    environ["CONTENT_LENGTH"] = str(len(body))
    return environ
