"""Properties of every request to the HTTP API: it gets one answer with an intended status, never a traceback."""

import asyncio
import json
from collections.abc import Iterable
from functools import cache
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote

from prometheus_client import CollectorRegistry
from starlette.types import Message

from ha.agent.agent import Agent
from ha.agent.warmer import Subscriptions
from ha.api.http_api import PAGE, HttpApi
from ha.api.leaders import Leaders
from ha.api.process import StatusSource
from ha.config.stores import Stores
from leader.lookup.answers import Answer, Look, Source
from store.clock import now
from store.errors import Unknown
from tests.system.hostile.properties.names import OWNER
from tests.unit.ha.api.serving import status

STATUSES = {200, 400, 403, 404, 405, 421, 503}

HOSTILE_ADDRESS = 'host:1/\u2028"</script>\0\U0001f600'


class FakeProcess:
    metrics = SimpleNamespace(registry=CollectorRegistry())

    @property
    def stores(self) -> Stores:
        raise Unknown("No store answers.")

    def statuses(self) -> dict[str, dict[str, Any]]:
        return {"orders": status("orders", leads=True, epoch=7)}


class FakeAgent:
    """Knows the leader of one job, nothing of another one, and that nobody leads any other."""

    def __init__(self) -> None:
        self.subscriptions = Subscriptions()
        self.warmer = SimpleNamespace(want=lambda _: True)

    def latest(self, job: str) -> Look | None:
        """Return the last look at a job, if there was one."""
        if job == "gone":
            return None
        leads = Answer(job, 7, OWNER, {"jobmaster": HOSTILE_ADDRESS}, Source.HDFS, 0.1, verified=True)
        return Look(now(), leads if job == "orders" else None, True, None)


def api() -> HttpApi:
    return HttpApi(cast(StatusSource, FakeProcess()), "127.0.0.1:0", Leaders(cast(Agent, FakeAgent())))


@cache
def _service() -> tuple[HttpApi, asyncio.Runner]:
    return api(), asyncio.Runner()


def ask(
    method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]] = (), body: bytes = b""
) -> tuple[int, bytes]:
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

    application: Any = served.application
    runner.run(application(scope, receive, send))
    assert [each["type"] for each in sent[:1]] == ["http.response.start"]
    assert all(each["type"] == "http.response.body" for each in sent[1:])
    assert not sent[-1].get("more_body", False)
    return sent[0]["status"], b"".join(each["body"] for each in sent[1:])


def request(data: bytes) -> None:
    """Read a request from bytes: method, target, one header and body, divided by line breaks."""
    method, target, name, value, body = (data.split(b"\n", 4) + [b""] * 5)[:5]
    status, answer = ask(
        method.decode("ascii", "ignore").upper(),
        target if target.startswith(b"/") else b"/api/v1/jobs/" + target,
        [(name.lower(), value), (b"host", b"localhost")],
        body,
    )
    assert status in STATUSES, status
    shown = target.partition(b"?")[0].decode("latin-1") in PAGE or target.startswith(b"/metrics")
    if status in {200, 400, 421, 503} and answer and not shown:
        json.loads(answer)


def leader(data: bytes) -> None:
    """The leader of a job of any name: the answer is always JSON."""
    status, answer = ask("GET", b"/api/v1/jobs/" + data.replace(b"?", b"").replace(b"/", b"") + b"/leader?wait=0")
    assert status in STATUSES, status
    if status != 404 or answer != b"Not Found":
        json.loads(answer)


ALL = (request, leader)
