"""The comparison of a topic's records with the rows in files."""

from collections import Counter

import pytest

from benchmarks.spark import marathon
from benchmarks.spark.marathon import KAFKA, KINDS, Leg, Marathon
from benchmarks.spark.records import Record, judge
from benchmarks.spark.words import Verdict

A, B, C = (0, 0, "a"), (0, 1, "b"), (1, 0, "a")
WRITTEN: Counter[Record] = Counter([A, B, C])


@pytest.mark.parametrize(
    ("batches", "lost", "doubled", "missing"),
    [
        ({0: [A, B], 1: [C]}, 0, 0, 0),
        ({0: [A], 1: [C]}, 1, 0, 0),
        ({0: [A, B], 1: [C, A]}, 0, 1, 0),
        ({0: [A, B], 1: [(1, 0, "b")]}, 1, 1, 0),  # another value at the same offset
        ({0: [A, B], 2: [C]}, 0, 0, 1),
        ({}, 3, 0, 0),
    ],
)
def test_rows_are_compared_as_sets(batches: dict[int, list[Record]], lost: int, doubled: int, missing: int) -> None:
    assert judge(WRITTEN, batches) == Verdict(3, len(batches), lost, doubled, missing)


def test_a_marathon_over_a_topic_draws_no_checkpoint_ids() -> None:
    legs = tuple(Leg(kind, 1.0, 2.0) for kind in KINDS)
    result = marathon.summarise(Marathon(7, legs, Verdict(3, 1, 0, 0, 0), 0, 0, KAFKA))
    assert marathon.INPUTS[KAFKA][0] == "spark_marathon_kafka"
    assert [target.met for target in result.targets] == [True] * 4
    assert all("words" not in target.sentence for target in result.targets)
