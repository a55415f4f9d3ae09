"""Job masters that are real processes of this test: a leadership over a local directory, and a server on loopback."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest

import ha
from ha.client import Client
from ha.jobmaster import GuardedApplication
from ha.leadership import Leadership


@pytest.fixture
def root(tmp_path: Path) -> str:
    return f"file://{tmp_path}/jobs"


@pytest.fixture
def job() -> str:
    return f"job-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def client(root: str) -> Iterator[Client]:
    with ha.connect(files=root, zookeeper="") as client:
        yield client


@dataclass
class Master:
    """One that counts what it has executed."""

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


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    """Serve an application; returns host:port."""
    with ExitStack() as stack:

        def start(application: Any) -> str:
            server = make_server("127.0.0.1", 0, application, Server, Handler)
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
            thread.start()
            stack.callback(server.server_close)
            stack.callback(thread.join, 10)
            stack.callback(server.shutdown)
            return f"127.0.0.1:{server.server_port}"

        yield start


Lead = Callable[..., Master]


@pytest.fixture
def lead(root: str, job: str, serve: Callable[[Any], str]) -> Iterator[Lead]:
    """Lead the job after whoever led it in this test, and serve behind the guard; the earlier one keeps its port."""
    blocks: list[Any] = []

    def begin() -> Master:
        if blocks:
            blocks.pop().__exit__(None, None, None)
        block = ha.lead(job, timeout=20.0, files=root, zookeeper="")
        blocks.append(block)
        master = Master(block.__enter__())
        address = serve(GuardedApplication(master, master.leadership))
        master.leadership.confirm({"jobmaster": address})
        return master

    yield begin
    for block in blocks:
        block.__exit__(None, None, None)
