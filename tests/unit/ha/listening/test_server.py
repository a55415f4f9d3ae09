"""The HTTP server over real sockets: deadlines, what is left for others in a flood, and names in Host headers."""

import asyncio
import contextlib
import http.client
import json
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ha.config.addresses import bind
from ha.listening import server
from ha.listening.access import Access, HostCheck
from ha.listening.server import HttpServer
from store.spare import SPARE
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

Serve = Callable[..., HttpServer]


BEGUN: list[str] = []
"""Paths of the requests whose headers have arrived."""


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer how long the body is; ``/late`` takes longer than a request may take to arrive."""
    BEGUN.append(scope["path"])
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length, more = length + len(message["body"]), message.get("more_body", False)
    if scope["path"] == "/late":
        await asyncio.sleep(server.HEADERS_WITHIN_S * 3)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"%4d" % length})


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, unthrottled: None) -> Iterator[Serve]:
    del unthrottled
    monkeypatch.setattr(server, "IDLE_S", 60)
    made: list[HttpServer] = []

    def start(most: int = 100, app: Any = application) -> HttpServer:
        monkeypatch.setattr(server, "most_connections", lambda: most)
        made.append(HttpServer(app, bind("127.0.0.1:0", "It"), "It", Access()))
        made[-1].start()
        return made[-1]

    yield start
    for each in made:
        each.close()


def connect(to: HttpServer, said: bytes = b"") -> socket.socket:
    host, _, port = to.address.rpartition(":")
    connection = socket.create_connection((host, int(port)), PATIENCE_S)
    connection.sendall(said)
    return connection


def ended(connection: socket.socket) -> bool:
    """Wait until the server ends the connection; whatever it says before is left out."""
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(1000):
            pass
    return True


def ask(connection: socket.socket) -> bytes:
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    said = b""
    while not said.endswith(b"\r\n\r\n   0"):
        part = connection.recv(1000)
        assert part, said
        said += part
    return said


@pytest.mark.parametrize(
    "said", [b"", b"GET / HTTP/1.1\r\nHost:", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab"]
)
def test_a_request_that_is_late_ends_its_connection(said: bytes, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEADERS_WITHIN_S", "BODY_WITHIN_S"):
        monkeypatch.setattr(server, name, 0.1)
    with connect(serve(), said) as connection:
        assert ended(connection)


def test_a_request_that_trickles_has_no_longer(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_WITHIN_S", 0.3)
    with connect(serve(), b"GET / HTTP/1.1\r\nA: ") as connection:
        connection.settimeout(0.01)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            for _ in range(int(PATIENCE_S / 0.01)):
                connection.sendall(b"a")
                with contextlib.suppress(TimeoutError):
                    assert connection.recv(1) == b""
                    return


def test_a_connection_has_as_long_for_its_next_request(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(serve()) as connection:
        ask(connection)
        monkeypatch.setattr(server, "HEADERS_WITHIN_S", 0.1)
        ask(connection)
        assert ended(connection)


def answered(to: HttpServer, first: bytes, meanwhile: Callable[[], object], rest: bytes) -> bytes:
    """Send a request in two parts; returns the answer. One whose headers came too late is sent anew."""
    while True:
        BEGUN.clear()
        with connect(to) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(first)
            meanwhile()
            connection.sendall(rest)
            said = connection.recv(1000)
            if said or BEGUN:
                return said


def test_an_answer_may_take_longer(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_WITHIN_S", 0.1)
    said = answered(serve(), b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n", lambda: None, b"")
    assert said.startswith(b"HTTP/1.1 200")


def test_a_body_may_take_longer_than_headers(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_WITHIN_S", 0.1)
    made = serve()

    def wait() -> None:
        with connect(made) as silent:
            assert ended(silent)

    said = answered(made, b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na", wait, b"b")
    assert said.startswith(b"HTTP/1.1 200")


def test_an_answer_that_nobody_reads_is_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LOST_AFTER_MS", 300)
    given_up = threading.Event()

    async def floods(scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        ended = asyncio.ensure_future(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not ended.done():
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
        given_up.set()

    with connect(serve(app=floods), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"):
        assert given_up.wait(PATIENCE_S)


def test_many_silent_connections_do_not_keep_others_out(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    made = serve(4)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(made)) for _ in range(20)]
        for _ in range(5):
            with connect(made) as connection:
                assert ask(connection).endswith(b"   0")
        assert ended(silent[0])
    lines = [record.message for record in caplog.records if record.name == "ha.listening"]
    assert lines == ["It has 4 connections, the maximum: it closes one of 127.0.0.1 for each new one."]


def test_a_request_that_is_handled_is_not_pushed_out(serve: Serve) -> None:
    loops: queue.SimpleQueue[asyncio.AbstractEventLoop] = queue.SimpleQueue()
    released = asyncio.Event()

    async def waits(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/wait":
            loops.put(asyncio.get_running_loop())
            await released.wait()
        await application(scope, receive, send)

    made = serve(2, waits)
    with connect(made, b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n") as waiting:
        loop = loops.get(timeout=PATIENCE_S)
        for _ in range(10):
            with connect(made) as other:
                ask(other)
        loop.call_soon_threadsafe(released.set)
        assert waiting.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_process_without_descriptors_turns_away_and_goes_on(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = serve()
    accept, failures = socket.socket.accept, [OSError(24, "Too many open files")] * 3

    def scarce(self: socket.socket) -> tuple[socket.socket, object]:
        found = accept(self)
        if failures and not SPARE._lock.locked():
            found[0].close()
            raise failures.pop()
        return found

    monkeypatch.setattr(socket.socket, "accept", scarce)
    while failures:
        with connect(made) as turned_away:
            assert ended(turned_away)
    with connect(made) as connection:
        assert ask(connection).endswith(b"   0")
    assert [record.message for record in caplog.records] == [
        "It turns connections away: Too many open files. Raise `ulimit -n`."
    ]


def test_a_foreign_host_is_not_answered(serve: Serve) -> None:
    host, _, port = serve(app=HostCheck(application, [])).address.rpartition(":")
    statuses = []
    for name in ("localhost", "evil.org"):
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
        connection.request("GET", "/", headers={"Host": name})
        answer = connection.getresponse()
        said = answer.read()
        statuses.append(answer.status)
        connection.close()
    assert statuses == [200, 421]
    assert "http_hosts" in json.loads(said)["detail"]


async def nothing(*_: object) -> None:
    """Answer nothing."""


@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        ("", True), ("localhost", True), ("LOCALHOST:8300", True), ("localhost.", True), ("127.0.0.1:8300", True),
        ("10.9.8.7", True), ("[::1]:8300", True), ("given:8300", True), ("a.example.com", True),
        ("example.com", False), ("a.example.com.evil.org", False), ("evil.org:8300", False),
        ("localhost.evil.org", False), ("localhost:8300:1", False), ("[localhost", False),
        ("127.0.0.1.evil.org", False), ("*", False), ("*.example.com", True),
    ],
)  # fmt: skip
def test_only_names_that_are_known_and_addresses_are_answered(said: str, allowed: bool) -> None:
    assert HostCheck(nothing, ["given", "*.example.com"]).allows(said) is allowed


def test_this_hosts_own_names_are_known() -> None:
    check = HostCheck(nothing, [])
    assert check.allows(f"{socket.gethostname()}:8300")
    wait_until(lambda: check.allows(socket.getfqdn()))


def test_all_names_can_be_allowed() -> None:
    assert HostCheck(nothing, ["*"]).allows("evil.org")
