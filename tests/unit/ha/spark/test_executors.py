"""What is asked of a cluster for another number of executors, and what is said; tests/system asks a real cluster."""

from types import SimpleNamespace
from typing import Any

import pytest

from ha.spark import executors
from ha.spark.executors import POLL_S, WITHIN_S, rescale_executors
from leader.job.requests import State


class Ids(list[str]):
    """A sequence of Scala."""

    def size(self) -> int:
        return len(self)

    def apply(self, number: int) -> str:
        return self[number]


class Context:
    """A SparkContext on a cluster that has executors at their times."""

    def __init__(self, ids: list[str], *, local: bool = False, dynamic: bool = False, takes: bool = True) -> None:
        self.ids, self.local, self.dynamic, self.takes = ids, local, dynamic, takes
        self.asked: list[object] = []
        self.time, self.comes_at, self.ends_at = 0.0, float("inf"), 0.0

    def isLocal(self) -> bool:  # noqa: N802
        return self.local

    def getConf(self) -> Any:  # noqa: N802
        return SimpleNamespace(getBoolean=lambda name, _: self.dynamic and name == "spark.dynamicAllocation.enabled")

    def getExecutorIds(self) -> Ids:  # noqa: N802
        if self.time >= self.comes_at:
            self.ids, self.comes_at = [*self.ids, "99"], float("inf")
        return Ids(self.ids)

    def killExecutors(self, ids: list[str]) -> bool:  # noqa: N802
        self.asked.append(ids)
        if self.time >= self.ends_at:
            self.ids = [each for each in self.ids if each not in ids]
        return True

    def requestTotalExecutors(self, *asked: object) -> bool:  # noqa: N802
        self.asked.append(asked)
        return self.takes

    # --- the clock

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    def ask(context: Context, count: int) -> list[tuple[State, str]]:
        made = SimpleNamespace(SparkContext=SimpleNamespace(getOrCreate=lambda: context))
        jvm = SimpleNamespace(
            org=SimpleNamespace(apache=SimpleNamespace(spark=made)),
            PythonUtils=SimpleNamespace(toSeq=list, toScalaMap=dict),
        )
        monkeypatch.setattr(executors, "jvm_of", lambda _: jvm)
        found: list[tuple[State, str]] = []
        rescale_executors(None, count, lambda state, said: found.append((state, said)), context)  # type: ignore[arg-type]
        return found

    return ask


def test_the_newest_are_too_many_and_the_number_is_asked_for_after_that(told: Any) -> None:
    context = Context(["2", "10", "0"])
    ((state, said),) = told(context, 2)
    assert (state, context.asked) == (State.DONE, [["10"], (2, 0, {})])
    assert said.startswith("Executors: 2, and 3 before.")


def test_as_many_as_there_are_end_none(told: Any) -> None:
    context = Context(["0", "1"])
    ((state, said),) = told(context, 2)
    assert (state, context.asked) == (State.DONE, [(2, 0, {})])
    assert said.startswith("Executors: 2, and 2 before.")


def test_one_that_was_asked_for_before_and_comes_late_is_ended(told: Any) -> None:
    context = Context(["0"])
    context.comes_at, context.ends_at = 0.0, 3 * POLL_S
    found = told(context, 1)
    assert [state for state, _ in found] == [State.ACCEPTED] * 3 + [State.DONE]
    assert found[0][1] == "Executors: 2 of 1."
    assert context.asked == [["99"], (1, 0, {})] * 4


@pytest.mark.parametrize(("comes_at", "state"), [(WITHIN_S, State.DONE), (WITHIN_S + POLL_S, State.FAILED)])
def test_the_cluster_has_a_minute(told: Any, comes_at: float, state: State) -> None:
    context = Context(["0"])
    context.comes_at = comes_at
    found = told(context, 2)
    assert found[0] == (State.ACCEPTED, "Executors: 1 of 2.")
    assert found[-1][0] is state
    assert context.time == WITHIN_S
    if state is State.FAILED:
        assert found[-1][1].startswith("Executors: 1 of 2 after 60 s; 2 stay asked for until the program ends.")


@pytest.mark.parametrize(
    ("refuses", "word"),
    [({"local": True}, "local mode"), ({"dynamic": True}, "spark.dynamicAllocation.maxExecutors")],
)
def test_where_nobody_can_ask_nothing_is_asked(told: Any, refuses: dict[str, bool], word: str) -> None:
    context = Context(["0"], **refuses)
    ((state, said),) = told(context, 2)
    assert (state, context.asked) == (State.REFUSED, [])
    assert word in said


def test_a_cluster_that_takes_no_such_request_is_asked_once(told: Any) -> None:
    context = Context(["0"], takes=False)
    assert told(context, 2) == [(State.REFUSED, "Its cluster does not take such a request, or does not answer it.")]
    assert context.asked == [(2, 0, {})]
