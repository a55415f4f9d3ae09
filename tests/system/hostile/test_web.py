"""Hostile requests: to the HTTP API as an application, and to the server that runs it."""

import json
import logging
import socket
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.patience import PATIENCE_S
from tests.system.hostile.properties import web
from tests.system.hostile.properties.names import OWNER
from tests.system.hostile.strategies import ANY_TEXT, damaged_bytes, examples

REQUESTS = st.sampled_from(
    [
        b"GET\n/api/v1/jobs/orders/leader\nHost\nexample:8300\n",
        b"GET\n/api/v1/jobs/orders\nAccept\n*/*\n",
        b"HEAD\n/livez\nContent-Length\n5\nhello",
        b"POST\n/api/v1/jobs/orders\nTransfer-Encoding\nchunked\n0\r\n\r\n",
        b"GET\n/metrics?x=%00\nRange\nbytes=0-\n",
    ]
)
RAW = st.sampled_from(
    [
        b"GET /api/v1/jobs/orders/leader HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        b"GET http://a/api/v1/jobs HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ]
)


@pytest.mark.parametrize("holds", web.ALL, ids=lambda each: each.__name__)
def test_every_request_has_one_answer(holds: Callable[[bytes], None]) -> None:
    @examples(80)
    @given(damaged_bytes(REQUESTS) | ANY_TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")))
    @example(b"GET\n/livez/\nHost\n[\n")
    @example(b"GET\n/api/v1/jobs/%ED%A0%80/leader")
    @example(b"%00")
    @example(b"a" * 65_536)
    def check(data: bytes) -> None:
        holds(data)

    check()


def test_what_is_asked_rightly_is_answered() -> None:
    status, answer = web.ask("GET", b"/api/v1/jobs/orders/leader")
    leader = json.loads(answer)["leader"]
    assert (status, leader["session_id"], leader["endpoints"]) == (200, OWNER, {"jobmaster": web.HOSTILE_ADDRESS})
    path = b"/api/v1/jobs/%s/leader?wait=0"
    assert [web.ask("GET", path % name)[0] for name in (b"free", b"gone", b"a%20b")] == [200, 503, 400]


@pytest.fixture
def server(caplog: pytest.LogCaptureFixture) -> Iterator[tuple[str, int]]:
    caplog.set_level(logging.CRITICAL, "uvicorn.error")  # it logs each request that it cannot read
    api = web.api()
    api.start()
    host, _, port = api.address.rpartition(":")
    yield host, int(port)
    api.close()


def test_no_bytes_on_the_wire_end_the_server(server: tuple[str, int]) -> None:
    @examples(60)
    @given(damaged_bytes(RAW) | st.binary(max_size=100))
    @example(b"GET /" + b"a" * 70_000)
    @example(b"GET /\xff HTTP/1.1\r\nHost: \xff\r\n\r\n")
    def send(data: bytes) -> None:
        with socket.create_connection(server, PATIENCE_S) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65_536):
                answer += part
        assert b"Traceback" not in answer
        assert not answer.startswith(b"HTTP/1.1 500")

    send()
    with urllib.request.urlopen(f"http://{server[0]}:{server[1]}/livez", timeout=PATIENCE_S) as answer:
        assert json.load(answer)["status"] == "ok"
