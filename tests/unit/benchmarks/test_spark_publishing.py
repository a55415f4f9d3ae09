"""Tests of the publication benchmark's summary."""

import pytest

from benchmarks.spark.publishing import KINDS, PYSPARK, WITH, WITHOUT, Turn, _result, per_publication


@pytest.mark.parametrize(
    ("asked", "requests"),
    [
        ([], 0),
        (["list"], 0),
        (["list", "rename", "rename"] * 5, 3),
        (["rename", *["list", "rename", "rename"] * 2, "list", "rename"], 3),
        (["list", "rename", "list", "rename", "rename", "rename", "list"], 3),
        (["list", "list", "list"], 1),
    ],
)
def test_a_turn_begins_and_ends_in_the_midst_of_a_publication(asked: list[str], requests: float) -> None:
    assert per_publication(asked) == requests


def test_what_publication_costs_is_beside_no_publication() -> None:
    turns = {
        WITH: Turn([500.0, 510.0], cpu_ms=7.0, thread_ms=1.0, requests=3.0),
        WITHOUT: Turn([500.0], cpu_ms=2.0, thread_ms=0.0, requests=0.0),
        PYSPARK: Turn([500.0], cpu_ms=22.0, thread_ms=0.0, requests=0.0),
    }
    result = _result([turns] * 3)
    assert [row[0] for row in result.rows] == list(KINDS)
    assert [(target.measured, target.met) for target in result.targets] == [(0.5, True), (3.0, True)]
    assert result.raw["cpu_ms"] == {WITH: [5.0] * 3, PYSPARK: [20.0] * 3}
    assert any("1.010 times as long" in note for note in result.notes)
    assert any("20.0 ms a batch" in note for note in result.notes)
