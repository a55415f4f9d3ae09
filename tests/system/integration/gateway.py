"""Gateway: stands before a NameNode's WebHDFS with the traits in which HttpFS differs from it, and can be slow.

RENAME drops its options and answers with a boolean. OPEN answers with the bytes. CREATE redirects to the gateway, and
wants the type ``application/octet-stream`` then. What is refused has the status 500, or 404 if nothing is there.
``test_gateway.py`` compares it with HttpFS itself.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from ha.sandbox.ports import free_ports
from tests.patience import PATIENCE_S

NEVER = Event()
BYTES, JSON = "application/octet-stream", "application/json"


class Gateway(NamedTuple):
    """What stands before a NameNode."""

    address: str
    asked: Callable[[], list[str]]
    """The paths that it was asked for until now, in order."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Leave the redirect to the gateway."""


_ask = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect()).open
_follow = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@contextmanager
def gateway(namenode: str, rename_s: float = 0.0) -> Iterator[Gateway]:
    """Serve in the block before a NameNode, ``host:port``; each rename waits so long before it is passed on."""
    (port,) = free_ports(1)
    address, asked = f"127.0.0.1:{port}", list[str]()
    own = {"of": (namenode, address), "asked": asked, "rename_s": rename_s}
    server = ThreadingHTTPServer(("127.0.0.1", port), type("_Bound", (_Handler,), own))
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, name="gateway", daemon=True)
    thread.start()
    try:
        yield Gateway(address, lambda: list(asked))
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    of = "", ""
    """The addresses of the NameNode and of the gateway."""
    asked: ClassVar[list[str]]
    rename_s = 0.0

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts, (namenode, own) = urlsplit(self.path), self.of
        query = dict(parse_qsl(parts.query))
        again = query.pop("data", "")
        self.asked.append(parts.path)
        query.pop("renameoptions", None)
        if query.get("op", "").upper() == "RENAME":
            NEVER.wait(self.rename_s)
        if query.get("op", "").upper() == "CREATE":
            if not again:
                self._reply(HTTPStatus.TEMPORARY_REDIRECT, Location=f"http://{own}{self.path}&data=true")
                return
            if self.headers.get("Content-Type", "").lower() != BYTES:
                self._reply(HTTPStatus.BAD_REQUEST)
                return
        self._pass_on(f"http://{namenode}{parts.path}?{urlencode(query)}", body)

    def _pass_on(self, url: str, body: bytes, *, follow: bool = False) -> None:
        request = urllib.request.Request(url, method=self.command, data=body or None)  # noqa: S310  # it is http
        try:
            with (_follow if follow else _ask)(request, timeout=PATIENCE_S) as answer:
                said, headers = answer.read(), {"Content_Type": BYTES if follow else JSON}
                if answer.status == HTTPStatus.CREATED:
                    headers = {"Content_Type": JSON, "Location": f"http://{self.of[1]}{urlsplit(self.path).path}"}
                    said = json.dumps({"Location": headers["Location"]}).encode()
                self._reply(answer.status, said, **headers)
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.TEMPORARY_REDIRECT:
                self._pass_on(error.headers["Location"], body, follow=True)
            else:
                missing = error.code == HTTPStatus.NOT_FOUND
                status = HTTPStatus.NOT_FOUND if missing else HTTPStatus.INTERNAL_SERVER_ERROR
                self._reply(status, error.read(), Content_Type=JSON)

    def _reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815  # as http.server calls them
