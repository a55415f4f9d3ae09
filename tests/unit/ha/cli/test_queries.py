"""``ha queries``: what a program has declared and what its leader has shown of it, from anywhere."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from ha.cli.commands import exit_code
from ha.spark.checkpoint_publisher import CheckpointPublisher
from ha.spark.supervision.states import Graph, GraphQuery, StatesWriter
from ha.spark.supervision.supervisor import Query, QueryState
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB
from tests.unit.ha.checkpoints.test_closure import until_batch

pytestmark = pytest.mark.usefixtures("quick")

GRAPH = Graph("region", [GraphQuery("clean", ["orders"], ["out"], 0), GraphQuery("beats", [], [], 1)])


def show(leadership: ha.Leadership) -> None:
    writer = StatesWriter(leadership, GRAPH)
    writer.start()
    writer.show([Query("clean", QueryState.RESTARTING, restarts=2, error="no\x1bsuch column", run_id="r-1")])
    writer.close()


def test_declared_queries_are_shown_with_the_states_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders") as leadership:
        show(leadership)
        assert exit_code(["queries", "orders"]) == 0
        heads, clean, beats = capsys.readouterr().out.splitlines()
    assert heads.split()[:4] == ["QUERY", "STATE", "REGION", "RESTARTS"]
    assert clean.split() == ["clean", "RESTARTING", "0", "2", "orders", "out", "r-1", "no\\x1bsuch", "column"]
    assert beats.split() == ["beats", "-", "1", "-", "-", "-", "-", "-"]


def test_ids_and_operators_are_in_the_json_once_a_batch_is_published(capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders") as leadership:
        show(leadership)
        place = Path(urlsplit(leadership.path("spark/clean")).path)
        for path, data in until_batch(ROCKSDB, 1).files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(data)
        CheckpointPublisher(leadership).look("clean")
        assert exit_code(["queries", "orders", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["queries"]
    assert [(each["query"], each["id"], each["operators"]) for each in rows] == [
        ("clean", "b0b0", {"0": "join"}),
        ("beats", None, None),
    ]


def test_states_of_another_epoch_are_called_old(capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders") as leadership:
        show(leadership)
    assert exit_code(["queries", "orders"]) == 0
    assert capsys.readouterr().out.startswith("orders: these are the last states of epoch 1; nobody leads now.\n")
    with ha.lead("orders"):
        assert exit_code(["queries", "orders"]) == 0
    first = "orders: these are the last states of epoch 1; epoch 2 has not shown any yet.\n"
    assert capsys.readouterr().out.startswith(first)


def test_a_program_without_declared_queries_is_told_how(capsys: pytest.CaptureFixture[str]) -> None:
    with ha.lead("orders"):
        assert exit_code(["queries", "orders"]) == 0
    assert capsys.readouterr().out == "orders: its program has declared no queries with ha.spark.Job.\n"


def test_a_job_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["queries", "nowhere"]) == 3
    assert "nowhere" in capsys.readouterr().err
