"""The runner without Spark: what it makes of the end of a query. tests/system/spark has it with Spark."""

from types import SimpleNamespace
from typing import Any

import pytest

from ha.spark.supervision.runner import Runner
from ha.spark.supervision.supervisor import QueryEnd


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
