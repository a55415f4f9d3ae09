"""What holds of every request to the HTTP API: one answer, of a status that is meant, and never a traceback."""

import asyncio
import json
from collections.abc import Iterable
from functools import cache
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote

from prometheus_client import CollectorRegistry
from starlette.types import Message

from ha.api import Api
from ha.node import Node
from leader.answers import Answer
from leader.errors import NoLeader, Unreachable
from leader.names import check_job
from leader.retrieval import Source
from tests.hostile.properties.names import OWNER

STATUSES = {200, 400, 404, 405, 503}

HOSTILE_ADDRESS = 'host:1/\u2028"</script>\0\U0001f600'


class FakeReader:
    """Knows one job; the names it checks are checked as the real one does."""

    def leader(self, job: str, timeout: float) -> Answer:
        """Return who leads."""
        del timeout
        if check_job(job) == "orders":
            return Answer(job, 7, OWNER, {"jobmaster": HOSTILE_ADDRESS}, Source.HDFS, 0.1, verified=True)
        if job == "free":
            raise NoLeader("Nobody leads it.")
        raise Unreachable("No store answered.")


def api() -> Api:
    """Return the API of a process that contends for one job, on a free port."""
    node = SimpleNamespace(
        reader=FakeReader(),
        statuses=lambda: {"orders": {"job": "orders", "endpoints": {"jobmaster": HOSTILE_ADDRESS}}},
        metrics=SimpleNamespace(registry=CollectorRegistry()),
    )
    return Api(cast("Node", node), "127.0.0.1:0")


@cache
def _service() -> tuple[Api, asyncio.Runner]:
    return api(), asyncio.Runner()


def ask(
    method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]] = (), body: bytes = b""
) -> tuple[int, bytes]:
    """Send one request as uvicorn does, and return status and body."""
    served, runner = _service()
    raw_path, _, query = target.partition(b"?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 8300),
        "client": ("127.0.0.1", 50000),
        "scheme": "http",
        "method": method,
        "root_path": "",
        "path": unquote(raw_path.decode("ascii", "ignore")),
        "raw_path": raw_path,
        "query_string": query,
        "headers": list(headers),
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    application: Any = served._server.config.app
    runner.run(application(scope, receive, send))
    assert [each["type"] for each in sent[:1]] == ["http.response.start"]
    assert all(each["type"] == "http.response.body" for each in sent[1:])
    assert not sent[-1].get("more_body", False)
    return sent[0]["status"], b"".join(each["body"] for each in sent[1:])


def request(data: bytes) -> None:
    """Method, target, one header and body, divided by line breaks, as what they are sent as."""
    method, target, name, value, body = (data.split(b"\n", 4) + [b""] * 5)[:5]
    status, answer = ask(
        method.decode("ascii", "ignore").upper(),
        target if target.startswith(b"/") else b"/v1/jobs/" + target,
        [(name.lower(), value), (b"host", value)],
        body,
    )
    assert status in STATUSES, status
    if status in {200, 400, 503} and answer and not target.startswith(b"/metrics"):
        json.loads(answer)


def leader(data: bytes) -> None:
    """Who leads a job of any name: an answer in JSON, whatever is asked."""
    status, answer = ask("GET", b"/v1/jobs/" + data.replace(b"?", b"").replace(b"/", b"") + b"/leader")
    assert status in STATUSES, status
    if status != 404 or answer != b"Not Found":
        json.loads(answer)


ALL = (request, leader)
