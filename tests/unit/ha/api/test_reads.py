"""Reads of the API: what ``ha`` prints, over HTTP."""

import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import ha
from ha.api.reads import Shared
from ha.cli.commands import exit_code
from ha.spark.replication.marks import PROMOTED
from ha.spark.replication.report import REPORT, ReplicaReport, ReplicatedQuery, encoded
from tests.unit.ha.api.serving import Served
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.waiting import PATIENCE


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    assert exit_code([*command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_api_says_what_the_command_line_prints(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders") as leadership:
        leadership.exceptions.add("ValueError", "no such column", query="daily", trace="a\nb")
        leadership.checkpoints.completed("daily", 4)
        assert served.get("/api/v1/jobs") == (200, printed(capsys, "list"))
        assert served.get("/api/v1/jobs/orders")[1] == served.get("/api/v1/jobs")[1][0]
        assert served.get("/api/v1/jobs/orders")[1]["checkpoint_at"].endswith("Z")
        for resource in ("queries", "exceptions", "history", "checkpoints"):
            code, said = served.get(f"/api/v1/jobs/orders/{resource}")
            assert (code, said) == (200, printed(capsys, resource, "orders")), resource
            assert said


def test_the_checkpoint_of_a_query_is_inspected(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders") as leadership:
        folder = Path(urlsplit(leadership.path("spark/daily")).path)
        until_batch(ROCKSDB, 4).write_to(folder)
        code, said = served.get("/api/v1/jobs/orders/checkpoints/daily")
        shown = printed(capsys, "inspect", "orders")[0]
        assert shown.pop("names") == [], "the history of names is the command line's alone"
        assert (code, {"query": "daily", **said}) == (200, shown)
        assert said["batch"] == 4
        for query, expected in (("weekly", 404), ("a%20b", 400)):
            code, said = served.get(f"/api/v1/jobs/orders/checkpoints/{query}")
            assert (code, bool(said["detail"])) == (expected, True)


def test_a_replica_says_how_far_it_is(served: Served) -> None:
    with ha.lead("orders.replica") as leadership:
        assert served.get("/api/v1/jobs/orders.replica/replica")[0] == 404
        seen = [ReplicatedQuery("daily", 4, 6, 7, 1e9), ReplicatedQuery("weekly")]
        report = encoded(ReplicaReport("hdfs://first/jobs/orders", 1e9 + 1, seen))
        Path(urlsplit(leadership.directory).path, REPORT).write_bytes(report)
        code, said = served.get("/api/v1/jobs/orders.replica/replica")
        assert (code, said["source"], said["at"], said["promoted"]) == (
            (200, "hdfs://first/jobs/orders", "2001-09-09T01:46:41Z", False)
        )
        daily, weekly = said["queries"]
        assert (daily["query"], daily["batch"], daily["behind"]) == ("daily", 4, 2)
        assert (daily["level_at"], weekly["level_at"]) == ("2001-09-09T01:46:40Z", None)
        leadership.own.make_folder(f"{PROMOTED}1")
        assert served.get("/api/v1/jobs/orders.replica/replica")[1]["promoted"] is True


RESOURCES = ["", "/queries", "/exceptions", "/history", "/checkpoints", "/checkpoints/daily", "/replica"]


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_job_that_is_not_there_and_one_that_cannot_be(served: Served, resource: str) -> None:
    for job, expected in (("nowhere", 404), ("a%20b", 400)):
        code, said = served.get(f"/api/v1/jobs/{job}{resource}")
        assert (code, said["status"], said["type"]) == (expected, expected, "about:blank")
        assert said["detail"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "/nothing", 404), ("DELETE", "/api/v1/jobs", 405), ("GET", "/api/v1/jobs/x", 404)],
)
def test_problems_are_problem_documents(untokened: Served, method: str, path: str, code: int) -> None:
    connection = untokened.connect()
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        assert json.loads(answer.read())["status"] == answer.status == code
        assert answer.headers["Content-Type"] == "application/problem+json"
    finally:
        connection.close()


def test_a_store_that_does_not_answer_is_said(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del quick
    monkeypatch.setenv("HA_FILES", "hdfs://127.0.0.1:1/jobs")
    served = Served()
    try:
        code, said = served.get("/api/v1/jobs")
        assert (code, said["title"]) == (503, "Service Unavailable")
    finally:
        served.close()


# --- looks that are shared


def test_those_who_ask_at_the_same_time_share_a_look() -> None:
    looks, begun, go_on = list[None](), threading.Event(), threading.Event()

    def look() -> int:
        looks.append(None)
        begun.set()
        assert go_on.wait(PATIENCE)
        return len(looks)

    shared, answers = Shared(look), list[int]()
    askers = [threading.Thread(target=lambda: answers.append(shared.value())) for _ in range(4)]
    askers[0].start()
    assert begun.wait(PATIENCE)
    for each in askers[1:]:
        each.start()
    go_on.set()
    for each in askers:
        each.join(PATIENCE)
    assert answers == [1, 1, 1, 1]
    assert shared.known() == 1


def test_a_look_that_took_long_counts_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("ha.api.reads.now", lambda: clock[0])

    def look() -> float:
        clock[0] += 2.0
        return clock[0]

    shared = Shared(look)
    assert shared.value() == 102.0
    clock[0] = 109.9
    assert shared.known() == shared.value() == 102.0
    clock[0] = 110.0
    assert shared.known() is None
    assert shared.value() == 112.0


def test_a_look_that_fails_is_not_kept() -> None:
    outcomes: list[Exception | int] = [TimeoutError("away"), 5]

    def look() -> int:
        found = outcomes.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    shared = Shared(look)
    with pytest.raises(TimeoutError):
        shared.value()
    assert shared.known() is None
    assert shared.value() == 5
