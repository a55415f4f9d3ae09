"""Reads of the API: what ``ha`` prints, over HTTP."""

import json
import os
import threading
import tracemalloc
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest

import ha
from ha.api.reads import Shared
from ha.spark.replication.report import PROMOTED, REPORT, ReplicaReport, ReplicatedQuery, encoded
from tests.patience import PATIENCE_S
from tests.unit.ha.api.serving import Served
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.command_line import CommandLine


def test_the_api_says_what_the_command_line_prints(served: Served, cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        leadership.exceptions.add("ValueError", "no such column", query="daily", trace="a\nb")
        leadership.checkpoints.completed("daily", 4)
        assert served.get("/api/v1/jobs") == (200, cli("job list --json").json)
        assert served.get("/api/v1/jobs/orders")[1] == served.get("/api/v1/jobs")[1][0]
        assert served.get("/api/v1/jobs/orders")[1]["checkpoint_at"].endswith("Z")
        for resource in ("queries", "exceptions", "history", "checkpoints"):
            code, said = served.get(f"/api/v1/jobs/orders/{resource}")
            verb = "checkpoint list" if resource == "checkpoints" else f"job {resource}"
            assert (code, said) == (200, cli(f"{verb} orders --json").json)
            assert said


def test_the_checkpoint_of_a_query_is_inspected(served: Served, cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        folder = Path(urlsplit(leadership.path("spark/daily")).path)
        until_batch(ROCKSDB, 4).write_to(folder)
        code, said = served.get("/api/v1/jobs/orders/checkpoints/daily")
        shown = cli("checkpoint inspect orders --json").json[0]
        assert shown.pop("names") == [], "the history of names is the command line's alone"
        assert (code, {"query": "daily", **said}) == (200, shown)
        assert said["batch"] == 4
        for query, expected in (("weekly", 404), ("a%20b", 400)):
            code, said = served.get(f"/api/v1/jobs/orders/checkpoints/{query}")
            assert (code, bool(said["detail"])) == (expected, True)


HOSTILE: dict[str, bytes | None] = {
    "partitions": b'v1\n{"conf":{"spark.sql.shuffle.partitions":"2000000000"}}\n{"logOffset":4}',
    "deep": b"v1\n" + b'{"a":' * 100_000,
    "endless": None,
    "secret": None,
    "waits": None,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_checkpoint_is_told_and_harms_nothing_else(served: Served, tmp_path: Path, kind: str) -> None:
    """It fills no memory, no secret is told, and the other queries are answered."""
    with ha.lead("orders") as leadership:
        folders = [Path(urlsplit(leadership.path(f"spark/{query}")).path) for query in ("daily", "weekly")]
        for folder in folders:
            until_batch(ROCKSDB, 4).write_to(folder)
        hostile, content = folders[0] / "offsets" / "4", HOSTILE[kind]
        hostile.unlink()
        if isinstance(content, bytes):
            hostile.write_bytes(content)
        elif kind == "waits":
            os.mkfifo(hostile)
        else:
            (tmp_path / "secret").write_text("v1\nfor one user alone")
            hostile.symlink_to(tmp_path / "secret" if kind == "secret" else "/dev/zero")
        tracemalloc.start()
        code, said = served.get("/api/v1/jobs/orders/checkpoints/daily")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 100 << 20
        if isinstance(content, bytes):
            assert (code, said["batches"][-1]["missing"]) == (200, "offsets/4")
        else:
            assert (code, said["detail"].partition(":")[0]) == (500, "offsets/4 is a link, a pipe or a device")
        assert served.get("/api/v1/jobs/orders/checkpoints/weekly")[0] == 200


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
        said = served.get("/api/v1/jobs/orders.replica/replica")[1]
        assert (said["promoted"], said["replicated"]) == (True, True)


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
    answer, said = untokened.raw(method, path)
    assert json.loads(said)["status"] == answer.status == code
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_store_that_does_not_answer_is_said(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del quick
    monkeypatch.setenv("HA_FILES", "hdfs://127.0.0.1:1/jobs")
    served = Served()
    try:
        code, said = served.get("/api/v1/jobs")
        assert (code, said["title"]) == (503, "Service Unavailable")
    finally:
        served.close()


def test_those_who_ask_at_the_same_time_share_a_look() -> None:
    looks, begun, go_on = list[None](), threading.Event(), threading.Event()

    def look() -> int:
        looks.append(None)
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return len(looks)

    shared, answers = Shared(look), list[int]()
    askers = [threading.Thread(target=lambda: answers.append(shared.value())) for _ in range(4)]
    askers[0].start()
    assert begun.wait(PATIENCE_S)
    for each in askers[1:]:
        each.start()
    go_on.set()
    for each in askers:
        each.join(PATIENCE_S)
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
    shared: Shared[int] = Shared(Mock(side_effect=[TimeoutError("away"), 5]))
    with pytest.raises(TimeoutError):
        shared.value()
    assert shared.known() is None
    assert shared.value() == 5
