"""``ha job queries`` and ``exceptions``: what a program has declared, and what its leader has shown and noted of it."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from ha.spark.queries.checkpoint_publisher import CheckpointPublisher
from ha.spark.supervision.states import Graph, GraphQuery, StatesWriter
from ha.spark.supervision.supervisor import Query, QueryState
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("quick")

GRAPH = Graph([GraphQuery("clean", ["orders"], ["out"], 0), GraphQuery("beats", [], [], 1)])


def declare(leadership: ha.Leadership) -> None:
    writer = StatesWriter(leadership, GRAPH)
    writer.start()
    writer.show([Query("clean", QueryState.RESTARTING, restarts=2, error="no\x1bsuch column", run_id="r-1")])
    writer.close()


def test_declared_queries_are_shown_with_the_states_that_are_known(cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        declare(leadership)
        heads, clean, beats = cli("job queries orders").out.splitlines()
    assert heads.split()[:4] == ["QUERY", "STATE", "REGION", "RESTARTS"]
    assert clean.split() == ["clean", "RESTARTING", "0", "2", "orders", "out", "r-1", "no\\x1bsuch", "column"]
    assert beats.split() == ["beats", "-", "1", "-", "-", "-", "-", "-"]


def test_ids_and_operators_are_in_the_json_once_a_batch_is_published(cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        declare(leadership)
        place = Path(urlsplit(leadership.path("spark/clean")).path)
        until_batch(ROCKSDB, 1).write_to(place)
        CheckpointPublisher(leadership).look("clean")
        rows = cli("job queries orders --json").json["queries"]
    assert [(each["query"], each["id"], each["operators"]) for each in rows] == [
        ("clean", "b0-b0-b0-b0-b0", {"0": "join"}),
        ("beats", None, None),
    ]


def test_states_of_another_epoch_are_called_old(cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        declare(leadership)
    assert cli("job queries orders").out.startswith(
        "orders: these are the last states of epoch 1; there is no leader now.\n"
    )
    with ha.lead("orders"):
        said = cli("job queries orders").out
    assert said.startswith("orders: these are the last states of epoch 1; epoch 2 has not shown any yet.\n")


def test_a_program_without_declared_queries_is_told_how(cli: CommandLine) -> None:
    with ha.lead("orders"):
        said = cli("job queries orders").out
    assert said == "orders: no program of it has declared queries with ha.spark.Job so far.\n"


def test_the_failures_of_a_job_are_shown_from_anywhere(cli: CommandLine) -> None:
    with ha.lead("orders") as leadership:
        assert cli("job exceptions orders").out == "orders: no failure is known\n"
        leadership.exceptions.add("ValueError", "no\x1bsuch column", query="daily", trace="a\nb")
        leadership.exceptions.add("exit-3", "the command has ended")
    first, second = cli("job exceptions orders --json").json
    assert (first["class"], first["query"], first["epoch"], first["trace"]) == ("ValueError", "daily", 1, "a\nb")
    assert (second["class"], second["query"], second["dump"]) == ("exit-3", None, None)
    lines = cli("job exceptions orders").out.splitlines()
    assert lines[0] == f"{first['at']}  {first['host']}  1  daily  ValueError"
    assert lines[1:4] == ["    no\\x1bsuch column", "    a", "    b"]
