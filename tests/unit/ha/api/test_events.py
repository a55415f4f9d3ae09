"""The event streams: first everything, then what changes; and a bound on their number."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ha.api import events
from tests.unit.ha.api.serving import OPERATE, Served
from tests.unit.ha.led import Led
from tests.unit.ha.waiting import PATIENCE

STREAMS = 45
"""More than the server has threads for all of its handlers: 40."""


class Listener:
    """A client of a stream."""

    def __init__(self, served: Served, path: str) -> None:
        self._connection = served.connect()
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {OPERATE}"})
        self.answer: http.client.HTTPResponse = self._connection.getresponse()

    def next(self) -> tuple[str, Any]:
        """Return the next event's name and data."""
        name = self.answer.readline().decode()
        assert name.startswith("event: "), name
        data = self.answer.readline().decode()
        assert self.answer.readline() == b"\n"
        return name[7:-1], json.loads(data.removeprefix("data: "))

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


@pytest.fixture
def listen(served: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(events, "TICK_S", 0.02)
    monkeypatch.setattr("ha.api.reads.LEAST_PAUSE_S", 0.02)
    made: list[Listener] = []

    def begin(path: str) -> Listener:
        made.append(Listener(served, path))
        return made[-1]

    yield begin
    for each in made:
        each.close()


def test_first_every_job_then_each_change(listen: Any, quick: Path) -> None:
    led = Led(quick)
    led.claim("orders", "a:1")
    led.claim("sums", "b:1")
    stream = listen("/api/v1/events")
    assert [(name, said["job"], said["epoch"]) for name, said in (stream.next(), stream.next())] == [
        ("job", "orders", 1),
        ("job", "sums", 1),
    ]
    assert stream.next() == ("jobs", {"count": 2})
    led.release("sums")
    name, said = stream.next()
    assert (name, said["job"], said["lease"], said["holder"]) == ("job", "sums", "released", None)
    (quick / "sums").rename(quick.parent / "elsewhere")
    assert [stream.next(), stream.next()] == [("gone", {"job": "sums"}), ("jobs", {"count": 1})]


def test_without_any_job_it_says_that(listen: Any) -> None:
    assert listen("/api/v1/events").next() == ("jobs", {"count": 0})


def test_of_one_job_it_says_which_parts_have_changed(listen: Any, quick: Path) -> None:
    led = Led(quick)
    led.claim("orders", "a:1")
    stream = listen("/api/v1/jobs/orders/events")
    name, said = stream.next()
    assert (name, said["epoch"]) == ("job", 1)
    name, said = stream.next()
    assert (name, sorted(said["parts"])) == ("changed", ["checkpoints", "exceptions", "history", "queries"])
    (leader,) = (quick / "orders").iterdir()
    (leader / "exceptions").mkdir()
    (leader / "exceptions" / "1-00000000").write_text("{}")
    assert stream.next() == ("changed", {"job": "orders", "parts": ["exceptions"]})


def test_trouble_is_said_once_and_so_is_its_end(listen: Any, quick: Path) -> None:
    stream = listen("/api/v1/jobs/orders/events")
    name, said = stream.next()
    assert (name, "no job 'orders'" in said) == ("trouble", True)
    Led(quick).claim("orders", "a:1")
    assert [stream.next()[0] for _ in range(3)] == ["job", "changed", "mended"]


def test_a_silent_stream_comments(listen: Any, quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "COMMENT_EVERY_S", 0.0)
    Led(quick).claim("orders", "a:1")
    stream = listen("/api/v1/events")
    assert [stream.next()[0], stream.next()[0]] == ["job", "jobs"]
    assert stream.answer.readline() == b": still here\n"


def test_too_many_streams_are_told_to_come_again(listen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST", 1)
    first = listen("/api/v1/events")
    assert (first.answer.status, first.answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    second = listen("/api/v1/events")
    assert (second.answer.status, second.answer.headers["Retry-After"]) == (503, "1")


def test_streams_that_wait_for_a_store_delay_no_probe(
    listen: Any, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    def silent(_: object) -> list[Any]:
        assert answers.wait(PATIENCE)
        return []

    monkeypatch.setattr("ha.api.reads.summaries", silent)
    monkeypatch.setattr("ha.api.reads.WAIT_S", 2 * PATIENCE)
    try:
        streams = [listen("/api/v1/events") for _ in range(STREAMS)]
        assert {each.answer.status for each in streams} == {200}
        assert served.get("/livez") == (200, {"jobs": 0, "status": "ok"})
    finally:
        answers.set()


def test_a_name_that_no_job_can_have(listen: Any) -> None:
    assert listen("/api/v1/jobs/a%20b/events").answer.status == 400
