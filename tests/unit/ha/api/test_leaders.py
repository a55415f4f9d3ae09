"""Who leads, over a real server, to clients that know nothing but HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ha.api import leaders
from ha.api.leaders import version_of
from tests.patience import PATIENCE_S
from tests.unit.ha.api.serving import Served
from tests.unit.ha.led import Led, session
from tests.unit.ha.waiting import wait_until

PATH = "/api/v1/jobs/orders/leader"


@pytest.fixture
def served(led: Led) -> Iterator[Served]:
    del led
    made = Served(audit=100.0)
    yield made
    made.close()


@contextmanager
def waiting(served: Served, since: str) -> Iterator[list[tuple[int, Any]]]:
    """Send a request that waits; its answer is there after the block."""
    answers: list[tuple[int, Any]] = []
    asking = threading.Thread(target=lambda: answers.append(served.get(f"{PATH}?since={since}")))
    asking.start()
    wait_until(lambda: served.agent.subscriptions.jobs == ["orders"], what="it waits")
    yield answers
    asking.join(PATIENCE_S)


def test_a_first_request_is_answered_at_once(led: Led, served: Served) -> None:
    led.claim("orders", "a:1")
    status, said = served.get(PATH)
    assert (status, said["job"]) == (200, "orders")
    leader = said["leader"]
    assert (leader["epoch"], leader["session_id"], leader["endpoints"]) == (1, session(1), {"rest": "a:1"})
    assert (leader["source"], leader["verified"]) == ("hdfs", True)
    assert served.get("/api/v1/jobs/gone/leader")[1] == {"job": "gone", "version": "none", "leader": None}


def test_a_request_with_the_present_version_waits_for_the_next(led: Led, served: Served) -> None:
    led.claim("orders", "a:1")
    known = served.get(PATH)[1]["version"]
    with waiting(served, known) as answers:
        assert not answers
        led.claim("orders", "b:1")
    ((status, said),) = answers
    assert (status, said["leader"]["epoch"]) == (200, 2)
    assert said["version"] != known


def test_when_the_time_is_over_the_same_is_said_again(led: Led, served: Served) -> None:
    led.claim("orders", "a:1")
    first = served.get(PATH)[1]
    again = served.get(f"{PATH}?wait=0&since={first['version']}")
    assert again[0] == 200
    assert again[1]["version"] == first["version"]


@pytest.mark.parametrize("wait", ["-1", "61", "nan", "inf", "soon", ""])
def test_a_wait_that_is_none(wait: str, served: Served) -> None:
    status, said = served.get(f"{PATH}?wait={wait}")
    assert status == 400
    assert "from 0 to 60" in said["detail"]


def test_a_name_that_is_none(served: Served) -> None:
    status, said = served.get("/api/v1/jobs/a%20b/leader")
    assert status == 400
    assert "is not a job name" in said["detail"]


def test_a_server_that_ends_answers_those_that_wait(led: Led, served: Served) -> None:
    led.claim("orders", "a:1")
    known = served.get(PATH)[1]["version"]
    with waiting(served, known) as answers:
        served.leaders.close()
    assert [(status, said["version"]) for status, said in answers] == [(200, known)]


def test_more_than_there_is_room_for_come_again(led: Led, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "MAX_REQUESTS", 1)
    led.claim("orders", "a:1")
    with waiting(served, served.get(PATH)[1]["version"]) as answers:
        status, said = served.get(PATH)
        assert (status, said["detail"]) == (503, "Too many ask; come again.")
        led.claim("orders", "b:1")
    assert answers[0][1]["leader"]["epoch"] == 2
    assert served.get(PATH)[0] == 200, "whoever has gone makes room"


def test_while_no_store_answers_nothing_is_said(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.agent, "latest", lambda _: None)
    status, said = served.get(f"{PATH}?wait=0")
    assert (status, said["detail"]) == (503, "No store says who leads job 'orders'.")


def test_a_version_is_one_of_leader_and_endpoints(led: Led, served: Served) -> None:
    seen = [version_of(None)]
    led.claim("orders", "a:1")
    for change in (lambda: None, lambda: led.publish("orders", "a:2", version=2), lambda: led.claim("orders", "a:2")):
        change()
        seen.append(served.get(f"{PATH}?since={seen[-1]}")[1]["version"])
    assert len(set(seen)) == 4
