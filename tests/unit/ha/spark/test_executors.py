"""How long a cluster may take for executors, and what is said then; tests/system asks a real cluster."""

from types import SimpleNamespace
from typing import Any

import pytest

from ha.spark import executors
from ha.spark.executors import WITHIN_S, rescale_executors
from leader.job.requests import State


class Ids(list[str]):
    """A sequence of Scala."""

    def size(self) -> int:
        return len(self)

    def apply(self, number: int) -> str:
        return self[number]


class Context:
    """A SparkContext on a cluster that has executors at their times."""

    def __init__(self, ids: list[str], *, dynamic: bool = False, acknowledges: bool = True) -> None:
        self.ids, self.dynamic, self.acknowledges = Ids(ids), dynamic, acknowledges
        self.asked: list[object] = []
        self.time, self.comes_at = 0.0, float("inf")

    def isLocal(self) -> bool:  # noqa: N802
        return False

    def getConf(self) -> Any:  # noqa: N802
        return SimpleNamespace(getBoolean=lambda name, _: self.dynamic and name == "spark.dynamicAllocation.enabled")

    def getExecutorIds(self) -> Ids:  # noqa: N802
        return Ids([*self.ids, "new"]) if self.time >= self.comes_at else self.ids

    def killExecutors(self, ids: list[str]) -> bool:  # noqa: N802
        self.asked.append(ids)
        self.ids = Ids(each for each in self.ids if each not in ids)
        return True

    def requestTotalExecutors(self, *asked: object) -> bool:  # noqa: N802
        self.asked.append(asked)
        return self.acknowledges

    # --- the clock

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def told(monkeypatch: pytest.MonkeyPatch, context: Context, count: int) -> list[tuple[State, str]]:
    made = SimpleNamespace(SparkContext=SimpleNamespace(getOrCreate=lambda: context))
    jvm = SimpleNamespace(
        org=SimpleNamespace(apache=SimpleNamespace(spark=made)),
        PythonUtils=SimpleNamespace(toSeq=list, toScalaMap=dict),
    )
    monkeypatch.setattr(executors, "jvm_of", lambda _: jvm)
    found: list[tuple[State, str]] = []
    rescale_executors(None, count, lambda state, said: found.append((state, said)), context)  # type: ignore[arg-type]
    return found


def test_the_newest_are_too_many_and_the_number_is_asked_for_after_that(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(["2", "10", "0"])
    ((state, said),) = told(monkeypatch, context, 2)
    assert (state, context.asked) == (State.DONE, [["10"], (2, 0, {})])
    assert said.startswith("It has 2 executors; it had 3.")


@pytest.mark.parametrize(("comes_at", "state"), [(WITHIN_S, State.DONE), (WITHIN_S + 0.5, State.FAILED)])
def test_the_cluster_has_a_minute(monkeypatch: pytest.MonkeyPatch, comes_at: float, state: State) -> None:
    context = Context(["0"])
    context.comes_at = comes_at
    found = told(monkeypatch, context, 2)
    assert found[0] == (State.ACCEPTED, "It has 1 executors of 2.")
    assert found[-1][0] is state
    if state is State.FAILED:
        assert found[-1][1].startswith("It has 1 executors after 60 s, and 2 stay asked for")


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    dynamic = Context(["0"], dynamic=True)
    ((state, said),) = told(monkeypatch, dynamic, 2)
    assert (state, dynamic.asked) == (State.REFUSED, [])
    assert "spark.dynamicAllocation.enabled is set" in said
    ((state, said),) = told(monkeypatch, Context(["0"], acknowledges=False), 2)
    assert (state, "does not acknowledge" in said) == (State.FAILED, True)
