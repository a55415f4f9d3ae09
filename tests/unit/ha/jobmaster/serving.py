"""A job master that counts what it has executed, and a server for it on loopback."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from ha.leadership.leadership import Leadership
from tests.patience import PATIENCE_S


@dataclass
class Master:
    """A WSGI application; ``meanwhile`` runs after a request was counted, and before it is answered."""

    leadership: Leadership
    executed: list[tuple[str, bytes]] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        self.executed.append((environ["PATH_INFO"], body))
        self.meanwhile()
        start_response("201 Created", [("Content-Type", "text/plain"), ("X-Mine", "yes")])
        return [b"done by ", str(self.leadership.epoch).encode()]


class Handler(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


@contextmanager
def serving(application: Any) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, application, Server, Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(PATIENCE_S)
        server.server_close()
