"""Metadata from Spark's progress. ``test_checkpoints.py`` checks the form of the progress with a real Spark."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ha.spark.queries.query_events import QueryListener
from ha.spark.queries.query_reports import QueryEnded, QueryReports, read, summary
from leader.layout.checkpoint import NOTHING, Checkpoint, Metadata, fit


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ([], ""),
        ([None], ""),
        ([5], "5"),
        ([{"logOffset": 5}], "logOffset=5"),
        ([{"orders": {"0": 5, "1": 7}, "clicks": {"0": 1}}], "orders=12 clicks=1"),
        ([{"orders": {str(partition): partition for partition in range(1000)}}], "orders=499500"),
        ([{"orders": {"0": 5}}, 9], "orders=5 9"),
        ([{"reservoirId": "a-b", "reservoirVersion": 3, "isStartingVersion": True}], "reservoirVersion=3"),
        (["a text"], "a text"),
        ([[1, 2]], "[1, 2]"),
    ],
)
def test_how_far_the_sources_were_read(offsets: list[Any], said: str) -> None:
    assert summary(offsets) == said


def test_a_query_without_state_has_none_and_missing_fields_are_unknown() -> None:
    known = read('{"batchId": 3, "batchDuration": 12, "numInputRows": 0, "stateOperators": [], "sources": []}').metadata
    assert known == Metadata(duration_ms=12, rows=0)
    assert read('{"batchId": 3}').metadata == NOTHING


@pytest.mark.parametrize("number", [-1, 2**63])
def test_numbers_that_fit_into_no_name_are_unknown(number: int) -> None:
    text = json.dumps({"batchId": 3, "numInputRows": number, "stateOperators": [{"memoryUsedBytes": number}]})
    known = read(text).metadata
    assert (known.rows, known.state_rows, known.state_bytes) == (None, 0, None)
    assert fit(Checkpoint("clicks", 3, 1, known)).metadata == known


@pytest.mark.parametrize(
    ("said", "milliseconds"),
    [
        ('"batchDuration": 12, "durationMs": {"triggerExecution": 99}', 12),
        ('"durationMs": {"addBatch": 3, "triggerExecution": 9}', 9),  # Spark 3.5
        ('"durationMs": {"addBatch": 3}', None),
        ('"durationMs": {"triggerExecution": "9"}', None),
    ],
)
def test_the_duration_of_a_batch(said: str, milliseconds: int | None) -> None:
    assert read(f'{{"batchId": 3, {said}}}').metadata.duration_ms == milliseconds


class Event:
    """An event as the JVM passes it: one event of one run of a query; only that of its start has the query's name."""

    def __init__(self, run: str, *, name: str | None = None, progress: str = "", error: str | None = None) -> None:
        self._run, self._name, self._progress, self._error = run, name, progress, error

    def name(self) -> str | None:
        return self._name

    def runId(self) -> "Event":  # noqa: N802
        return self

    def toString(self) -> str:  # noqa: N802
        return self._run

    def progress(self) -> "Event":
        return self

    def json(self) -> str:
        return self._progress

    def exception(self) -> "Event":
        return self

    def isDefined(self) -> bool:  # noqa: N802
        return self._error is not None

    def get(self) -> str | None:
        return self._error


@pytest.mark.parametrize("watched", [True, False])
def test_everything_that_happens_to_a_query_is_reported_whoever_else_listens(watched: bool) -> None:
    at = [100.0]
    reports, ends, batches = QueryReports(lambda: at[0]), [], []  # type: QueryReports, list[QueryEnded], list[int]
    listener = QueryListener(
        lambda _: None, lambda _, batch, __: batches.append(batch), ends.append if watched else bool, reports
    )
    listener.onQueryStarted(Event("run-1", name="clean"))
    listener.onQueryProgress(Event("run-1", progress='{"batchId": 3, "name": "clean", "numInputRows": 7}'))
    at[0] = 110.0
    listener.onQueryIdle(Event("run-1"))
    (clean,) = reports.all()
    assert (clean.state, clean.batches, clean.input_rows, clean.fresh_at) == ("RUNNING", 1, 7, 110.0)
    listener.onQueryTerminated(Event("run-1", error="a fault"))
    listener.onQueryStarted(Event("run-2", name="clean"))
    listener.onQueryTerminated(Event("run-2"))
    assert (clean.state, clean.starts, clean.failures) == ("FINISHED", 2, 1)
    assert batches == [3]
    assert ends == ([QueryEnded("clean", "run-1", "a fault"), QueryEnded("clean", "run-2", None)] if watched else [])


def test_without_reports_events_are_heard_as_before() -> None:
    ends: list[QueryEnded] = []
    listener = QueryListener(lambda _: None, lambda *_: None, ends.append)
    listener.onQueryStarted(Event("run-1", name="clean"))
    listener.onQueryIdle(Event("run-1"))
    listener.onQueryTerminated(Event("run-1", error="a fault"))
    assert ends == [QueryEnded("clean", "run-1", "a fault")]


def test_a_query_that_ran_before_the_listener_has_its_name_and_is_looked_at() -> None:
    started: list[str | None] = []
    ended: list[QueryEnded] = []
    listener = QueryListener(started.append, lambda *_: None, ended.append)
    listener.runs("clean", "run-1")
    run = SimpleNamespace(toString=lambda: "run-1")
    none = SimpleNamespace(isDefined=lambda: False)
    listener.onQueryTerminated(SimpleNamespace(runId=lambda: run, exception=lambda: none))
    assert started == ["clean"], "what is complete is published"
    assert ended == [QueryEnded("clean", "run-1", None)]
