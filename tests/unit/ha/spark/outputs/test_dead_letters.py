"""The budget of dead letters: a sliding interval, with both ends exact."""

import pytest

from ha.spark.outputs.dead_letters import LetterBudget
from leader.errors import InvalidSettings


def test_an_interval_that_slides() -> None:
    budget = LetterBudget(5, 10.0)
    assert budget.left(0.0) == 5
    budget.spend(3, 0.0)
    budget.spend(0, 1.0)
    budget.spend(2, 4.0)
    assert budget.left(10.0) == 0
    assert budget.left(10.1) == 3
    assert budget.left(14.0) == 3
    assert budget.left(14.1) == 5


def test_none_is_tolerated() -> None:
    assert LetterBudget(0, 1.0).left(0.0) == 0


@pytest.mark.parametrize(("most", "interval"), [(-1, 1.0), (1, 0.0), (1, -1.0), (1, float("inf")), (1, float("nan"))])
def test_what_is_out_of_range(most: int, interval: float) -> None:
    with pytest.raises(InvalidSettings):
        LetterBudget(most, interval)
