"""Stores that lie about renames: the try at the start finds each, and nobody contends there."""

import pytest

from tests.system.simulation.namespace import Namespace
from tests.system.simulation.run import simulate
from tests.system.simulation.store_canaries import draw_lying
from tests.system.simulation.stores import LIARS, broken


def test_a_store_that_does_not_lie_passes_and_nothing_is_left() -> None:
    store = Namespace()
    assert broken(store) == ""
    assert not store.root.entries


@pytest.mark.parametrize("liar", LIARS)
def test_each_that_lies_is_found_by_the_try_and_nothing_is_left(liar: str) -> None:
    store = LIARS[liar]()
    assert "can hold no jobs, because two contenders could lead there: " in broken(store)
    assert not store.root.entries


@pytest.mark.parametrize("liar", LIARS)
def test_nobody_contends_there(liar: str) -> None:
    run = simulate(draw_lying(liar)(0))
    assert (run.grants, run.violations) == (0, [])
    assert run.injected["refused root"] >= len(run.plan.contenders)
