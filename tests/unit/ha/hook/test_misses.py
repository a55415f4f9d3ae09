"""A batch that an output did not take ends its function with an error, whatever the function did with that."""

import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from ha.hook import misses
from ha.hook.misses import MissedError, noting

Function = Callable[[Any, int], Any]


class Writer:
    def __init__(self) -> None:
        self.function: Any = None

    def foreachBatch(self, func: Function) -> "Writer":  # noqa: N802  # as PySpark calls it
        self.function = func
        return self


def frame(query: str | None = "q") -> Any:
    context = SimpleNamespace(getLocalProperty=lambda name: query if name == misses.QUERY_ID else None)
    return SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context))


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> Callable[[Function], Function]:
    """Returns what Spark calls, of a program's function."""
    module = SimpleNamespace(DataStreamWriter=type("Fresh", (Writer,), {}))
    monkeypatch.setitem(sys.modules, misses.PYSPARK, module)
    misses.change(module.DataStreamWriter)
    return lambda function: module.DataStreamWriter().foreachBatch(func=function).function


def write(given: Any, number: int, *, fails: bool = False, place: str = "out") -> None:
    with noting("output", place, given, number):
        if fails:
            raise OSError("away\nat 10.0.0.1")


def swallow(given: Any, number: int, **more: Any) -> None:
    with suppress(OSError):
        write(given, number, fails=True, **more)


def test_a_function_that_goes_on_after_an_error_fails(batch: Callable[[Function], Function]) -> None:
    with pytest.raises(MissedError, match=r"Output 'output' did not take batch 3 \(away\), and"):
        batch(swallow)(frame(), 3)
    batch(write)(frame(), 3)
    batch(lambda *_: None)(frame(), 3)


def test_a_function_that_tries_again_is_as_good_as_one_that_need_not(batch: Callable[[Function], Function]) -> None:
    def twice(given: Any, number: int) -> None:
        swallow(given, number)
        write(given, number)

    batch(twice)(frame(), 3)


@pytest.mark.parametrize("same", [True, False, None])
def test_other_rows_for_the_same_output_are_no_second_try(
    batch: Callable[[Function], Function], same: bool | None
) -> None:
    """None: it cannot be asked."""

    def filtered() -> Any:
        rows = frame()
        if same is not None:
            rows.sameSemantics = lambda other: other is not rows and same
        return rows

    def both(_: Any, number: int) -> None:
        swallow(filtered(), number)
        write(filtered(), number)

    with ExitStack() as expected:
        if not same:
            expected.enter_context(pytest.raises(MissedError, match="did not take batch 3"))
        batch(both)(frame(), 3)
    batch(lambda *_: None)(frame(), 3)


def test_the_same_rows_for_another_output_of_that_name_are_no_second_try(
    batch: Callable[[Function], Function],
) -> None:
    def both(given: Any, number: int) -> None:
        swallow(given, number)
        write(given, number, place="elsewhere")

    with pytest.raises(MissedError, match="did not take batch 3"):
        batch(both)(frame(), 3)


def test_an_error_that_is_let_through_is_the_one_that_spark_sees(batch: Callable[[Function], Function]) -> None:
    with pytest.raises(OSError, match="away"):
        batch(lambda given, number: write(given, number, fails=True))(frame(), 3)
    batch(lambda *_: None)(frame(), 3)  # what that try had noted is over


def test_a_thread_that_nobody_waits_for_is_an_error(batch: Callable[[Function], Function]) -> None:
    with ExitStack() as thread, pytest.raises(MissedError, match="it was still writing it"):
        batch(lambda given, number: thread.enter_context(noting("output", "out", given, number)))(frame(), 3)


@pytest.mark.parametrize("writing", ["p", None])
def test_a_batch_of_the_same_number_of_another_query_is_not_meant(
    batch: Callable[[Function], Function], writing: str | None
) -> None:
    swallow(frame("p"), 3)
    batch(lambda *_: None)(frame("q"), 3)
    with pytest.raises(MissedError):
        batch(lambda _, number: swallow(frame(writing), number))(frame("p"), 3)


def test_a_process_without_guarded_queries_notes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, misses.PYSPARK, raising=False)
    with pytest.raises(OSError, match="away"):
        write(None, 3, fails=True)


def test_another_query_that_takes_its_batch_meanwhile_disturbs_nobody(batch: Callable[[Function], Function]) -> None:
    """Regions have batches of the same numbers, at the same time."""
    with ExitStack() as other:
        other.enter_context(noting("output", "out", frame("p"), 3))

        def property_of(_: str) -> str:
            other.close()  # while it is asked whose batch this is
            return "q"

        context = SimpleNamespace(getLocalProperty=property_of)
        batch(lambda *_: None)(SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context)), 3)
