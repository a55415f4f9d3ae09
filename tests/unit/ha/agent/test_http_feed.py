"""The HTTP feed, over a real server, to clients that know nothing but HTTP."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ha.agent import http_feed as feeds
from ha.agent.http_feed import Feed, version_of
from ha.agent.standalone import StandaloneAgent, agent_of
from ha.api.http_api import HttpApi
from ha.config.sources import load
from tests.unit.ha.led import Led, session
from tests.unit.ha.waiting import PATIENCE, wait_until


class Served:
    """An API with an agent behind it."""

    def __init__(self, files: str) -> None:
        self._process = StandaloneAgent(load({"files": files, "audit": 100.0}))
        self.agent = agent_of(self._process.stores, self._process.reader, [])
        self.feed = Feed(self.agent)
        self._api = HttpApi(self._process, "127.0.0.1:0", self.feed)
        self._api.start()
        self.address = self._api.address

    def get(self, path: str) -> tuple[int, Any]:
        """Send a request; return the status and the body."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, json.loads(body)

    def stream(self, job: str) -> "Stream":
        return Stream(self.address, job)

    def close(self) -> None:
        self.agent.close()
        self._api.close()
        self._process.close()


class Stream:
    """Server-sent events, read one by one."""

    def __init__(self, address: str, job: str) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=PATIENCE)
        self._connection.request("GET", f"/v1/jobs/{job}/events")
        self.answer = self._connection.getresponse()

    def next(self) -> tuple[str, Any]:
        """Return the kind and the data of the next event; comments are skipped."""
        lines: dict[str, str] = {}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if line:
                name, _, value = line.partition(": ")
                lines[name] = value
            elif "event" in lines:
                return lines["event"], json.loads(lines["data"])

    def rest(self) -> bytes:
        return self.answer.read()

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


@pytest.fixture
def led(quick: Path) -> Led:
    return Led(quick)


@pytest.fixture
def served(led: Led) -> Iterator[Served]:
    made = Served(led.files.uri)
    yield made
    made.close()


def test_a_first_request_is_answered_at_once(led: Led, served: Served) -> None:
    led.claim("orders", "a:1")
    status, said = served.get("/v1/jobs/orders/changes")
    assert (status, said["job"]) == (200, "orders")
    leader = said["leader"]
    assert (leader["epoch"], leader["session_id"], leader["endpoints"]) == (1, session(1), {"rest": "a:1"})
    assert (leader["source"], leader["verified"]) == ("hdfs", True)
    assert served.get("/v1/jobs/gone/changes")[1] == {"job": "gone", "version": "none", "leader": None}


def test_a_request_with_the_present_version_waits_for_the_next(led: Led, served: Served) -> None:
    led.claim("orders", "a:1")
    known = served.get("/v1/jobs/orders/changes")[1]["version"]
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(served.get(f"/v1/jobs/orders/changes?since={known}")))
    asking.start()
    wait_until(lambda: served.agent.subscriptions.jobs == ["orders"], what="it waits")
    assert not answers
    led.claim("orders", "b:1")
    asking.join(PATIENCE)
    ((status, said),) = answers
    assert (status, said["leader"]["epoch"]) == (200, 2)
    assert said["version"] != known


def test_when_the_time_is_over_the_same_is_said_again(led: Led, served: Served) -> None:
    led.claim("orders", "a:1")
    first = served.get("/v1/jobs/orders/changes")[1]
    again = served.get(f"/v1/jobs/orders/changes?wait=0&since={first['version']}")
    assert again[0] == 200
    assert again[1]["version"] == first["version"]


@pytest.mark.parametrize("wait", ["-1", "61", "nan", "inf", "soon", ""])
def test_a_wait_that_is_none(wait: str, served: Served) -> None:
    status, said = served.get(f"/v1/jobs/orders/changes?wait={wait}")
    assert status == 400
    assert "from 0 to 60" in said["detail"]


@pytest.mark.parametrize("kind", ["changes", "events"])
def test_a_name_that_is_none(kind: str, served: Served) -> None:
    status, said = served.get(f"/v1/jobs/a%20b/{kind}")
    assert status == 400
    assert "is not a job name" in said["detail"]


def test_events_come_as_they_happen(led: Led, served: Served) -> None:
    stream = served.stream("orders")
    assert stream.answer.headers["Content-Type"].startswith("text/event-stream")
    assert stream.next() == ("nobody", None)
    led.claim("orders", "a:1")
    kind, data = stream.next()
    assert (kind, data["epoch"], data["endpoints"]) == ("leader", 1, {"rest": "a:1"})
    led.publish("orders", "a:2\n\ndata: forged", version=2)
    kind, data = stream.next()
    assert (kind, data["epoch"], data["endpoints"]) == ("leader", 1, {"rest": "a:2\n\ndata: forged"})
    stream.close()
    led.release("orders")


def test_a_server_that_ends_ends_its_streams(led: Led, served: Served) -> None:
    led.claim("orders", "a:1")
    stream = served.stream("orders")
    assert stream.next()[0] == "leader"
    served.close()
    assert stream.rest() in (b"", b": still here\n\n")
    stream.close()


def test_more_than_there_is_room_for_come_again(led: Led, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MAX_REQUESTS", 2)
    led.claim("orders", "a:1")
    streams = [served.stream("orders") for _ in range(2)]
    for stream in streams:
        assert stream.next()[0] == "leader"
    for kind in ("changes", "events"):
        status, said = served.get(f"/v1/jobs/orders/{kind}")
        assert (status, said["detail"]) == (503, "Too many ask; come again.")
    streams[0].close()

    def free() -> bool:
        led.publish("orders", "a:1")
        return served.get("/v1/jobs/orders/changes")[0] == 200

    wait_until(free, what="whoever has gone makes room")
    streams[1].close()


def test_while_no_store_answers_nothing_is_said(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.agent, "latest", lambda _: None)
    status, said = served.get("/v1/jobs/orders/changes?wait=0")
    assert (status, said["detail"]) == (503, "No store says who leads job 'orders'.")


def test_a_version_is_one_of_leader_and_endpoints(led: Led, served: Served) -> None:
    seen = [version_of(None)]
    led.claim("orders", "a:1")
    for change in (lambda: None, lambda: led.publish("orders", "a:2", version=2), lambda: led.claim("orders", "a:2")):
        change()
        seen.append(served.get(f"/v1/jobs/orders/changes?since={seen[-1]}")[1]["version"])
    assert len(set(seen)) == 4
