"""Gateway: stands before a NameNode's WebHDFS with the traits in which HttpFS differs from it.

RENAME drops its options and answers with a boolean. OPEN answers with the bytes. CREATE redirects to the gateway, and
wants the type ``application/octet-stream`` then. A stand-in: HttpFS itself was not run here.
"""

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from ha.sandbox.ports import free_ports
from tests.patience import PATIENCE_S

BYTES, JSON = "application/octet-stream", "application/json"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Leave the redirect to the gateway."""


_ask = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect()).open
_follow = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@contextmanager
def gateway(namenode: str) -> Iterator[str]:
    """Serve in the block before a NameNode, ``host:port``; yields the gateway's address."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    server = ThreadingHTTPServer(("127.0.0.1", port), type("_Bound", (_Handler,), {"of": (namenode, address)}))
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, name="gateway", daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    of = "", ""
    """The addresses of the NameNode and of the gateway."""

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts, (namenode, own) = urlsplit(self.path), self.of
        query = dict(parse_qsl(parts.query))
        again = query.pop("data", "")
        query.pop("renameoptions", None)
        if query.get("op", "").upper() == "CREATE":
            if not again:
                self._reply(HTTPStatus.TEMPORARY_REDIRECT, Location=f"http://{own}{self.path}&data=true")
                return
            if self.headers.get("Content-Type", "").lower() != BYTES:
                self._reply(HTTPStatus.BAD_REQUEST, b"<html>Data upload requests must have another content-type</html>")
                return
        self._pass_on(f"http://{namenode}{parts.path}?{urlencode(query)}", body)

    def _pass_on(self, url: str, body: bytes, *, follow: bool = False) -> None:
        request = urllib.request.Request(url, method=self.command, data=body or None)  # noqa: S310  # it is http
        try:
            with (_follow if follow else _ask)(request, timeout=PATIENCE_S) as answer:
                self._reply(answer.status, answer.read(), Content_Type=BYTES if follow else JSON)
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.TEMPORARY_REDIRECT:
                self._pass_on(error.headers["Location"], body, follow=True)
            else:
                self._reply(error.code, error.read(), Content_Type=JSON)

    def _reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815  # as http.server calls them
