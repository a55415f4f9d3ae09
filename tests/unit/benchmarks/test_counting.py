"""Tests of the cost table: they count again, and fail when the library's costs have changed."""

from functools import cache

import pytest

from benchmarks.scale.costs import FILE, KINDS, OUTAGE, Costs, Part, Rate, Series, budgets, load
from store.zookeeper import Children, Create, Delete, Get, Set, Sync
from tests.system.simulation.world import World
from tests.unit.benchmarks import counting
from tests.unit.benchmarks.requests import Requests

ANEW = "count anew: python -m tests.unit.benchmarks.counting > benchmarks/scale/costs.json"

CLOSE = 0.02
"""An agent spreads its work at random: one more random number moves its figures by less than this."""

pytestmark = pytest.mark.slow  # all of them count the same runs, and the first one waits for these


@cache
def counted() -> Costs:
    return counting.count(load().work)  # which test_counting_work.py counts


def total(series: Series, first: int = 0, end: int | None = None) -> Rate:
    return {kind: sum(series.get(kind, ())[first:end]) for kind in KINDS}


def parts(costs: Costs) -> dict[str, Part]:
    return {name: getattr(costs, name) for name in counting.PARTS}


@pytest.mark.parametrize("name", ["leader", "standby"])
def test_contenders_cost_what_the_table_says(name: str) -> None:
    assert parts(counted())[name] == parts(load())[name], ANEW


def test_an_agent_costs_what_the_table_says() -> None:
    ours, theirs = counted().agent, load().agent
    assert ours.steady[1] == pytest.approx(theirs.steady[1], rel=CLOSE), ANEW
    assert total(ours.takeover) == pytest.approx(total(theirs.takeover), rel=0.1, abs=0.5), ANEW
    assert total(ours.outage[0]) == total(theirs.outage[0]), ANEW
    for first, end in ((0, 5), (5, OUTAGE), (OUTAGE, OUTAGE + 5), (OUTAGE + 5, None)):
        now, then = total(ours.outage[1], first, end), total(theirs.outage[1], first, end)
        assert now == pytest.approx(then, rel=0.1, abs=0.5), ANEW


def test_a_look_at_hdfs_costs_what_the_table_says() -> None:
    assert (counted().read_same, counted().read_changed) == (load().read_same, load().read_changed) == (1, 3), ANEW


def test_every_budget_is_held() -> None:
    """This includes failovers: a leader's write to its own node gives it no reason to read HDFS."""
    for budget in budgets(counted()):
        assert budget.measured <= budget.wanted, budget.sentence


def test_without_zookeeper_a_standby_looks_about_twice_for_each_renewal() -> None:
    leader, standby = (total(part.outage[1], 5, OUTAGE) for part in (counted().leader, counted().standby))
    assert leader["namenode reads"] == 0
    assert leader["namenode writes"] == pytest.approx(55 / 2, abs=1)
    assert leader["namenode writes"] <= standby["namenode reads"] <= 2.4 * leader["namenode writes"]


def test_an_outage_begins_without_a_herd() -> None:
    """Standbys spread their first reads, and leaders do not read at all: their renewals tell them as much."""
    leader, standby = (total(part.outage[1], 0, 2) for part in (counted().leader, counted().standby))
    assert leader["namenode reads"] == 0
    assert standby["namenode reads"] <= 3
    agents = [total(counted().agent.outage[1], second, second + 1)["namenode reads"] for second in range(3)]
    assert max(agents) <= 0.6, "each looks at a moment of its own within 2.4 s, and once"


def test_an_outage_ends_without_a_herd() -> None:
    """A reader does not check a fresh answer of HDFS against HDFS when ZooKeeper repeats it."""
    agents = [total(counted().agent.outage[1], OUTAGE + second, OUTAGE + second + 1) for second in range(10)]
    assert max(each["namenode reads"] for each in agents) <= 0.3


def test_the_table_is_written_as_it_was_read() -> None:
    """Otherwise the counting command would write another text than the tests compare."""
    assert counting.written(load()) == FILE.read_text(encoding="utf-8")


def test_an_operation_is_what_it_puts_on_the_wire() -> None:
    requests = Requests(World())
    operations = (Get("/a"), Get("/a", print), Sync("/a"), Create("/a/b", make_parents=True), Set("/a", b"", 0))
    for operation in (*operations, Delete("/a", 0), Children("/a")):
        requests.operation(operation)
    kinds = [kind.removeprefix("zookeeper ") for _, kind in requests.sent]
    assert kinds == ["reads", "reads", "syncs", "writes", "writes", "writes", "reads"]
