"""The event streams: first everything, then what changes; and a bound on their number."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ha.api import events
from tests.patience import PATIENCE_S
from tests.unit.ha.api.serving import OPERATE, Served
from tests.unit.ha.led import Led

STREAMS = 45
"""More than the server has threads for all of its handlers: 40."""


def counted(event: tuple[str, Any]) -> int:
    """Return the number of jobs that an event says, with the stores of these tests."""
    name, said = event
    assert name == "jobs"
    assert said["files"].startswith("file:///")
    assert said["zookeeper"] == ""
    return int(said["count"])


class Listener:
    def __init__(self, served: Served, path: str, host: str = "127.0.0.1", token: str = f"Bearer {OPERATE}") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", served.port, PATIENCE_S, (host, 0))
        self._connection.request("GET", path, headers={"Authorization": token})
        self.answer: http.client.HTTPResponse = self._connection.getresponse()

    def next(self) -> tuple[str, Any]:
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

    def begin(path: str, *whose: str) -> Listener:
        made.append(Listener(served, path, *whose))
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
    assert counted(stream.next()) == 2
    led.release("sums")
    name, said = stream.next()
    assert (name, said["job"], said["lease"], said["holder"]) == ("job", "sums", "released", None)
    (quick / "sums").rename(quick.parent / "elsewhere")
    assert stream.next() == ("gone", {"job": "sums"})
    assert counted(stream.next()) == 1


def test_without_any_job_it_says_that(listen: Any) -> None:
    assert counted(listen("/api/v1/events").next()) == 0


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
    name, said = stream.next()
    assert (name, said["last_hour"]) == ("job", {"failures": 1, "takeovers": 0})
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


def test_a_host_with_many_streams_shuts_no_other_out(listen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They read nothing, and go on asking."""
    monkeypatch.setattr(events, "MOST", 6)
    greedy = [listen("/api/v1/events") for _ in range(9)]
    assert [each.answer.status for each in greedy] == [200] * 6 + [503] * 3
    others = [listen("/api/v1/events", f"127.0.0.{number}") for number in (2, 3, 4)]
    assert [each.answer.status for each in others] == [200] * 3
    assert [counted(each.next()) for each in others] == [0, 0, 0]
    for each in greedy[:3]:
        assert each.answer.read().startswith(b"event: jobs"), "the oldest ones have ended, in order"
    assert listen("/api/v1/events").answer.status == 503, "it has as many as it can have without taking another's"
    assert [each.answer.isclosed() for each in (*greedy[3:6], *others)] == [False] * 6


def test_behind_one_proxy_each_token_has_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST", 4)
    tokens = tmp_path / "tokens"
    tokens.write_text("one-token-of-many\nanother-of-the-tokens\n")
    tokens.chmod(0o600)
    served = Served(str(tokens))
    made: list[Listener] = []
    try:
        # Written in another way it is the same token.
        headers = ("Bearer one-token-of-many", "bearer  one-token-of-many", "BEARER one-token-of-many ") * 2
        made.extend(Listener(served, "/api/v1/events", "127.0.0.1", header) for header in headers)
        assert [each.answer.status for each in made] == [200] * 4 + [503] * 2
        made.append(Listener(served, "/api/v1/events", "127.0.0.1", "Bearer another-of-the-tokens"))
        assert made[-1].answer.status == 200
    finally:
        for each in made:
            each.close()
        served.api.close()


def test_streams_that_wait_for_a_store_delay_no_probe(
    listen: Any, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    def silent(_: object) -> list[Any]:
        assert answers.wait(PATIENCE_S)
        return []

    monkeypatch.setattr("ha.api.reads.summaries", silent)
    monkeypatch.setattr("ha.api.reads.WAIT_S", 2 * PATIENCE_S)
    try:
        streams = [listen("/api/v1/events") for _ in range(STREAMS)]
        assert {each.answer.status for each in streams} == {200}
        assert served.get("/livez") == (200, {"jobs": 0, "status": "ok"})
    finally:
        answers.set()


def test_a_name_that_no_job_can_have(listen: Any) -> None:
    assert listen("/api/v1/jobs/a%20b/events").answer.status == 400
