"""Requests over HTTP: who may ask, what is asked once, and what the leader finds."""

from pathlib import Path
from typing import Any

import pytest

from ha.api.operations import MOST_BYTES
from leader.job.admin import JobAdmin
from leader.job.request_folder import Requests, State
from store.local import LocalFiles
from tests.unit.ha.api.serving import OPERATE, Served
from tests.unit.ha.led import Led

PATH = "/api/v1/jobs/orders/requests"


@pytest.fixture
def led(served: Served, quick: Path) -> Requests:
    Led(quick).claim("orders", "a:1")
    admin = JobAdmin(served.stores.files, None, 5)
    return Requests(admin.directory("orders"))


def test_what_is_asked_for_reaches_the_leader_and_its_answer_comes_back(served: Served, led: Requests) -> None:
    code, said = served.ask("POST", PATH, {"verb": "cancel", "id": "7"})
    assert (code, said["id"], said["verb"], said["state"], said["epoch"]) == (202, "7", "cancel", "asked", 0)
    assert said["by"] == "http-from-127.0.0.1"
    (request,) = led.accept()
    assert (served.get(f"{PATH}/7")[1]["state"], request.epoch) == ("accepted", 1)
    led.answer(request, State.DONE, "The job has ended.")
    assert served.get(f"{PATH}/7")[1]["said"] == "The job has ended."


def test_asking_twice_with_one_id_is_asking_once(served: Served, led: Requests) -> None:
    first = served.ask("POST", PATH, {"verb": "stop", "id": "7"})
    assert served.ask("POST", PATH, {"verb": "stop", "id": "7"}) == first
    assert [each.verb for each in led.accept()] == ["stop"]
    code, said = served.ask("POST", PATH, {"verb": "cancel", "id": "7"})
    assert (code, "asks to stop" in said["detail"]) == (409, True)
    assert not list(led.accept())


def test_a_savepoint_is_asked_for_with_its_place_and_its_result_comes_back(served: Served, led: Requests) -> None:
    asked = {"verb": "savepoint", "id": "7", "arguments": {"to": "hdfs://far/away", "timeout": 30}}
    assert served.ask("POST", PATH, asked)[1]["arguments"] == {"to": "hdfs://far/away", "timeout": "30"}
    code, said = served.ask("POST", PATH, {**asked, "arguments": {"to": "hdfs://far/off"}})
    assert (code, "timeout 30, to hdfs://far/away" in said["detail"]) == (409, True)
    (request,) = led.accept()
    led.answer(request, State.ACCEPTED, "It has copied 3 of 7 files.")
    assert served.get(f"{PATH}/7")[1]["said"] == "It has copied 3 of 7 files."
    led.answer(request, State.DONE, "Savepoint.", {"savepoint": "hdfs://far/away", "queries": [{"name": "q"}]})
    assert served.get(f"{PATH}/7")[1]["result"]["queries"] == [{"name": "q"}]


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("hdfs://far/away", 202), ("hdfs:///saved/x", 202), ("hdfs://farther/x", 403), ("hdfs:///saved", 202),
        ("hdfs:///savedelsewhere", 403), ("file:///etc/cron.d/x", 403), ("hdfs://far/../x", 400),
        ("hdfs://far/a/./x", 400),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["savepoint", "stop-with-savepoint", "restart-from"])
def test_savepoints_are_only_where_they_may_be(served: Served, led: Requests, verb: str, where: str, code: int) -> None:
    arguments = {"from" if verb == "restart-from" else "to": where}
    got, said = served.ask("POST", PATH, {"verb": verb, "arguments": arguments})
    assert got == code, said
    assert len(list(led.accept())) == (code == 202)
    assert code != 403 or "is below no directory that http_savepoint_roots names" in said["detail"]


@pytest.mark.parametrize(
    ("verb", "given", "found"),
    [
        ("stop", {}, {}),
        ("restart", {"exclude": []}, {}),
        ("restart", {"exclude": ["b", "a"]}, {"exclude": "a,b"}),
        ("restart", {"exclude": [f"host-{number:03}.{'x' * 180}" for number in range(100)]}, None),
        ("stop-with-savepoint", {"drain": True, "timeout": 0.5}, {"drain": "yes", "timeout": "0.5"}),
        ("stop-with-savepoint", {"drain": False}, {}),
        ("restart-from", {"from": "before", "discard_newer": True}, {"from": "before", "discard_newer": "yes"}),
        ("restart-query", {"query": "clean"}, {"query": "clean"}),
    ],
)
def test_arguments_reach_the_leader_as_the_texts_of_the_command_line(
    served: Served, led: Requests, verb: str, given: Any, found: dict[str, str] | None
) -> None:
    assert served.ask("POST", PATH, {"verb": verb, "arguments": given})[0] == 202
    (request,) = led.accept()
    assert request.arguments == ({"exclude": ",".join(given["exclude"])} if found is None else found)


def test_without_an_id_each_request_is_a_new_one(served: Served, led: Requests) -> None:
    del led
    made = [served.ask("POST", PATH, {"verb": "restart"})[1]["id"] for _ in range(2)]
    assert len(set(made)) == 2
    assert [served.get(f"{PATH}/{each}")[0] for each in made] == [200, 200]


def test_a_pause_and_its_end_are_done_at_once_with_or_without_a_leader(
    served: Served, led: Requests, quick: Path
) -> None:
    for holder in ("a", None):
        asked = {"verb": "pause", "id": f"p-{holder}", "arguments": {"reason": "a new rack"}}
        code, said = served.ask("POST", PATH, asked)
        assert (code, said["state"], said["arguments"]) == (202, "done", {"reason": "a new rack"})
        found = served.get("/api/v1/jobs/orders")[1]
        assert found["holder"] == holder
        assert (found["paused"]["by"], found["paused"]["reason"]) == ("http-from-127.0.0.1", "a new rack")
        assert served.ask("POST", PATH, asked)[1] == said, "asked twice, done once"
        assert served.ask("POST", PATH, {"verb": "resume"})[1]["state"] == "done"
        assert served.get("/api/v1/jobs/orders")[1]["paused"] is None
        Led(quick).release("orders")
    assert not list(led.accept()), "no leader is asked for it"
    assert served.ask("POST", PATH, {"verb": "pause", "arguments": {"reason": "%" * 56}})[0] == 202, "the longest"


def test_a_reason_that_is_too_long_pauses_nothing(served: Served, led: Requests) -> None:
    del led
    assert served.ask("POST", PATH, {"verb": "pause", "arguments": {"reason": "%" * 57}})[0] == 400
    assert served.get("/api/v1/jobs/orders")[1]["paused"] is None


def test_only_who_may_operate_may_ask(served: Served, led: Requests) -> None:
    assert served.ask("POST", PATH, {"verb": "stop"}, token="")[0] == 401
    assert served.ask("POST", PATH, {"verb": "stop"}, token=OPERATE[:-1])[0] == 401
    assert not list(led.accept())


def test_without_tokens_nobody_may(untokened: Served, quick: Path) -> None:
    Led(quick).claim("orders", "a:1")
    assert untokened.get("/api/v1/jobs/orders")[0] == 200
    code, said = untokened.ask("POST", PATH, {"verb": "stop"})
    assert (code, "http_operate_tokens" in said["detail"]) == (403, True)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"verb": "explode"}, 400),
        ({}, 400),
        ({"verb": "stop", "id": "../x"}, 400),
        ({"verb": "stop", "why": "x"}, 400),
        ({"verb": "stop", "arguments": {"to": "hdfs://h/x"}}, 400),
        ({"verb": "savepoint", "arguments": {"to": 7}}, 400),
        ({"verb": "savepoint", "arguments": {"to": "elsewhere"}}, 400),
        ({"verb": "savepoint", "arguments": {"timeout": "30"}}, 400),
        ({"verb": "savepoint", "arguments": {"timeout": 0}}, 400),
        ({"verb": "savepoint", "arguments": {"timeout": 604_801}}, 400),
        ({"verb": "savepoint", "arguments": {"to": "hdfs://h/_x"}}, 400),
        ({"verb": "restart", "arguments": {"exclude": ["a,b"]}}, 400),
        ({"verb": "restart", "arguments": {"exclude": ["a"] * 101}}, 400),
        ({"verb": "stop", "reason": "x"}, 400),
        ({"verb": "savepoint", "arguments": {"from": "7"}}, 400),
        ({"verb": "restart-query"}, 400),
        ({"verb": "restart", "arguments": {"query": "clean"}}, 400),
        ({"verb": "restart-from"}, 400),
        ("nonsense", 400),
        ("[" * MOST_BYTES, 400),
        (" " * (MOST_BYTES + 1), 413),
    ],
)
def test_what_cannot_be_asked(served: Served, led: Requests, body: Any, code: int) -> None:
    got, said = served.ask("POST", PATH, body)
    assert (got, said["status"]) == (code, code)
    assert not list(led.accept())


@pytest.mark.parametrize(
    ("verb", "arguments", "sentence"),
    [
        ("savepoint", {"to": "s3://b/x"}, "is no place of a savepoint: give a new directory"),
        ("restart-from", {"from": "../7"}, "is not a name of a savepoint"),
        ("restart-query", {"query": "../7"}, "is not a name of a query"),
    ],
)
def test_what_cannot_be_asked_is_said_as_on_the_command_line(
    served: Served, led: Requests, verb: str, arguments: Any, sentence: str
) -> None:
    code, said = served.ask("POST", PATH, {"verb": verb, "arguments": arguments})
    assert (code, sentence in said["detail"]) == (400, True), said
    assert not list(led.accept())


def test_a_form_is_no_request(served: Served, led: Requests) -> None:
    """A foreign page can send one without the browser asking first."""
    assert served.ask("POST", PATH, '{"verb": "stop"}', headers={"Content-Type": "text/plain"})[0] == 415
    assert not list(led.accept())


def test_a_job_that_nobody_leads_cannot_be_asked(served: Served, quick: Path) -> None:
    assert served.ask("POST", PATH, {"verb": "stop"})[0] == 404
    made = Led(quick)
    made.claim("orders", "a:1")
    made.release("orders")
    code, said = served.ask("POST", PATH, {"verb": "savepoint"})
    assert (code, said["detail"]) == (404, "Job 'orders' has no leader: its lease is free.")
    code, said = served.ask("POST", PATH, {"verb": "stop"})
    assert (code, said["state"]) == (202, "asked"), "the next leader carries it out"
    assert served.get(f"{PATH}/7")[0] == 404
    assert LocalFiles(quick, durable=False).list("orders")
