"""A served API over real jobs in a directory, and a client of it."""

import contextlib
import http.client
import json
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import CollectorRegistry

from ha.agent.standalone import agent_of, reader_of
from ha.api.http_api import HttpApi
from ha.api.leaders import Leaders
from ha.api.process import StatusSource
from ha.config.server_access import access_of
from ha.config.settings import Settings
from ha.config.sources import load
from ha.config.stores import Stores
from tests.patience import PATIENCE_S

OPERATE = "a-token-that-operates"


class Served:
    """An API of a process that contends for nothing unless it is told to."""

    def __init__(self, tokens: str = "", **settings: Any) -> None:
        self.token = OPERATE if tokens else ""
        given = {"http_operate_tokens": tokens} if tokens else {}
        self.settings: Settings = load({**given, **settings, "http_savepoint_roots": "hdfs://far, hdfs:///saved/"})
        self.stores = Stores(self.settings)
        self.contends: dict[str, dict[str, Any]] = {}
        process = SimpleNamespace(
            statuses=lambda: self.contends, stores=self.stores, metrics=SimpleNamespace(registry=CollectorRegistry())
        )
        self.agent = agent_of(self.stores, reader_of(self.stores), [])
        self.leaders = Leaders(self.agent)
        self.api = HttpApi(cast(StatusSource, process), "127.0.0.1:0", self.leaders, access_of(self.settings))
        self.api.start()
        self.port = int(self.api.address.rpartition(":")[2])

    @property
    def url(self) -> str:
        return f"http://{self.api.address}"

    def raw(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Ask as anybody; return the answer, and its body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer, answer.read()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Ask, with a token that may do all unless another one is given. Return status and JSON; None if empty."""
        token = self.token if token is None else token
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        sent |= {"Content-Type": "application/json"} if body is not None else {}
        said = json.dumps(body) if isinstance(body, dict) else body
        answer, data = self.raw(method, path, said, {**sent, **(headers or {})})
        return answer.status, json.loads(data) if data else None

    def get(self, path: str, token: str | None = None) -> tuple[int, Any]:
        return self.ask("GET", path, token=token)

    def close(self) -> None:
        self.agent.close()
        self.api.close()
        self.stores.close()


def status(job: str, *, leads: bool, epoch: int | None = None, not_eligible: str | None = None) -> dict[str, Any]:
    """Return what a contending process says of a job, as far as probes look at it."""
    return {"job": job, "is_leader": leads, "epoch": epoch, "not_eligible": not_eligible, "pid": os.getpid()}
