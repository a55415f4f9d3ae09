"""The runner without Spark: what it makes of the end of a query. tests/system/spark has it with Spark."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ha.config.restart_strategy import NoRestart
from ha.spark.supervision.runner import Runner
from ha.spark.supervision.supervisor import QueryEnd, Supervisor
from tests.lacks import no_thread_free
from tests.patience import PATIENCE_S


@pytest.mark.parametrize(("error", "ends"), [("Return Message: Object ID unknown", True), ("OutOfMemory", False)])
def test_a_query_whose_function_the_program_has_lost_ends_the_program(error: str, *, ends: bool) -> None:
    """A restart of its region would fail in the same way for ever."""
    kept: list[str] = []
    leadership: Any = SimpleNamespace(
        job="orders", directory="/ha/orders/1-x", keep_failure=lambda *_, query, trace: kept.append(query + trace)
    )
    supervisor: Any = SimpleNamespace(ended=lambda *_: ["whatever the supervisor decides"])
    runner = Runner(leadership, {}, supervisor, SimpleNamespace())  # type: ignore[arg-type]
    runner._runs["a-run"] = "rows", 1, None  # type: ignore[assignment]
    (found,) = runner._ended("a-run", error)
    assert kept == [f"rows{error}"]
    assert isinstance(found, QueryEnd) is ends
    assert not ends or (isinstance(found, QueryEnd) and found.failure is not None and error in found.failure.error)


def test_a_start_that_got_no_thread_is_made_by_the_run_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ha.spark.supervision.runner.AGAIN_S", 0.0)
    start, refused, begun = threading.Thread.start, [1, 2], list[str]()

    def begin(thread: threading.Thread) -> None:
        if refused and thread.name == "ha-query":
            refused.pop()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", begin)
    leadership: Any = SimpleNamespace(job="orders", keep_failure=lambda *_, **__: None)
    states: Any = SimpleNamespace(show=lambda *_, **__: None)
    supervisor = Supervisor([["rows"]], NoRestart, 5.0)
    ended = Runner(leadership, {"rows": lambda: begun.append("rows")}, supervisor, states).run()
    assert begun == ["rows"]
    assert ended is not None, "its function has returned no writer"


def test_without_a_free_thread_a_start_and_a_look_are_tried_again() -> None:
    asked = threading.Event()
    supervisor = Supervisor([["rows"]], NoRestart, 5.0)
    leadership: Any = SimpleNamespace(job="orders", keep_failure=lambda *_, **__: None)
    states: Any = SimpleNamespace(show=lambda *_, **__: None)
    runner = Runner(leadership, {"rows": asked.set}, supervisor, states, batch_timeout=1.0)
    (start,) = supervisor.begin()
    query: Any = SimpleNamespace(status={"isTriggerActive": False, "isDataAvailable": False})
    runner._runs["a-run"] = "rows", 1, query
    with no_thread_free():
        runner._execute(start)
        runner._look_at_batches()
    assert (runner._put_off, runner._looks, asked.is_set()) == ([start], set(), False)
    runner._execute(start)
    runner._look_at_batches()
    assert asked.wait(PATIENCE_S)
    assert runner._looks == {"a-run"}
