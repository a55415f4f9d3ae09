"""Tests of the judges of benchmarks in which a job's queries hang, fail or move, with made-up figures."""

from dataclasses import replace

import pytest

from benchmarks.spark import hangs, moving, regions
from benchmarks.spark.hangs import NAMENODE, UNWATCHED, Round
from benchmarks.spark.moving import Move
from benchmarks.spark.regions import Found
from benchmarks.spark.regions_job import ATTEMPTS, Batch, gaps, out_of_order, sum_of

GOOD = Found(
    minutes=10.0,
    queries=40,
    batches=1800,
    lost=0,
    moved=0,
    median_gap=10.0,
    longest_gap=(11.0, 12.0),
    states={"r0q0: FAILED": ATTEMPTS, "r0q1: FAILED": ATTEMPTS},
    failed_after=40.0,
    causes=ATTEMPTS + 1,
    leaders=1,
    wrong=0,
)


def test_batches_in_order() -> None:
    batches = [Batch(10.0, 3, 5, 1), Batch(20.0, 4, 7, 2), Batch(31.0, 5, 0, 0)]
    assert (out_of_order(batches), gaps(batches), sum_of(batches)) == (0, [10.0, 11.0], 12)


@pytest.mark.parametrize(("numbers", "wrong"), [((3, 5), 1), ((3, 3, 4), 1), ((3, 4, 3, 4), 1), ((1, 3, 3), 2)])
def test_a_batch_that_is_missing_or_there_twice_shows(numbers: tuple[int, ...], wrong: int) -> None:
    assert out_of_order([Batch(0.0, number, 1, 1) for number in numbers]) == wrong


def test_a_batch_that_was_repeated_is_added_up_once_as_it_was_at_last() -> None:
    assert sum_of([Batch(1.0, 3, 5, 1), Batch(2.0, 3, 6, 2), Batch(3.0, 4, 1, 1)]) == 7


def test_regions_of_which_the_others_lost_nothing() -> None:
    assert all(target.met for target in regions.summarise(GOOD).targets)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lost": 1},
        {"moved": 1},
        {"states": {"r0q0: FAILED": ATTEMPTS, "r0q1: RUNNING": ATTEMPTS}},
        {"states": {"r0q0: FAILED": ATTEMPTS - 1}},
        {"states": {"r0q0: FAILED": ATTEMPTS + 1}},
        {"causes": ATTEMPTS},
        {"leaders": 2},
        {"wrong": 1},
    ],
)
def test_one_thing_that_went_wrong_misses_one_target(wrong: dict[str, object]) -> None:
    result = regions.summarise(replace(GOOD, **wrong))  # type: ignore[arg-type]
    assert [target.met for target in result.targets].count(False) == 1


def test_the_next_batch_after_a_hang_and_never_without_a_watch() -> None:
    rounds = [Round("hang-driver", True, after, 1, 0, "") for after in (2.0, 6.0, 3.0)]
    unwatched, namenode = Round(UNWATCHED, True, 64.0, 1, 0, ""), Round(NAMENODE, True, 9.0, 0, 0, "")
    result = hangs.summarise([*rounds, unwatched, namenode])
    assert [(each.measured, each.met) for each in result.targets] == [
        (3.0, True),
        (64.0, True),
        (0.0, True),
        (0.0, True),
    ]
    replaced = hangs.summarise([*rounds, replace(unwatched, passed=False), replace(namenode, changes=1)])
    assert [each.met for each in replaced.targets] == [True, False, False, True]


def test_one_wrong_word_in_one_move_is_told() -> None:
    move = Move(stopped=5.0, resumed=9.0, away=14.0, words=900, wrong=0)
    result = moving.summarise([move, replace(move, stopped=7.0, away=16.0), move])
    assert [row[2:] for row in result.rows] == [(5.0, 5.0, 7.0), (9.0, 9.0, 9.0), (14.0, 14.0, 16.0)]
    assert [target.met for target in result.targets] == [True]
    assert not moving.summarise([move, replace(move, wrong=1)]).targets[0].met
