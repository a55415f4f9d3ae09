"""Tests of the Spark benchmarks' judges, with made-up figures of known outcome."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.spark import failover, hangs, marathon, secured
from benchmarks.spark.failover import ALL, CLASS_DATA, COLD, DRIVER, WARM, Failover
from benchmarks.spark.hangs import NAMENODE, UNWATCHED, Round
from benchmarks.spark.marathon import KINDS, Leg, Marathon
from benchmarks.spark.secured import SWITCHES, Hour, Switch
from benchmarks.spark.words import Verdict, judge

TEXTS = ["a b a", "b c"]
GOOD = {0: [("a", 2), ("b", 1)], 1: [("b", 2), ("c", 1)]}


def test_what_was_counted_once_is_right() -> None:
    assert judge(TEXTS, GOOD) == Verdict(words=5, batches=2, lost=0, doubled=0, crooked=0)


@pytest.mark.parametrize(
    ("wrong", "lost", "doubled", "crooked"),
    [
        ({0: GOOD[0]}, 2, 0, 0),  # the second batch never came out
        ({1: GOOD[1]}, 2, 0, 1),  # nor did the first, which leaves a gap
        ({**GOOD, 2: [("b", 3), ("c", 2)]}, 0, 2, 0),  # a batch was counted again into the state
        ({**GOOD, 2: GOOD[1]}, 0, 0, 2),  # the same batch is there twice, from the state before
        ({**GOOD, 1: [*GOOD[1], ("c", 1)]}, 0, 1, 0),  # a row is there twice in one batch
        ({**GOOD, 1: [("b", 1), ("c", 1)]}, 1, 0, 1),  # a state that was lost begins anew
    ],
)
def test_every_mistake_shows(wrong: dict[int, list[tuple[str, int]]], lost: int, doubled: int, crooked: int) -> None:
    verdict = judge(TEXTS, wrong)
    assert (verdict.lost, verdict.doubled, verdict.crooked) == (lost, doubled, crooked)


def test_the_kinds_of_standbys_are_compared_for_each_way_to_die() -> None:
    result = failover.summarise(
        [
            Failover(killed, standby, 0.5, committed + number)
            for killed in (DRIVER, ALL)
            for standby, committed in ((WARM, 0.1), (COLD, 20.0), (CLASS_DATA, 10.0))
            for number in (0, 1, 2)
        ]
    )
    assert [(row[0], row[1], row[3]) for row in result.rows] == [
        ("driver killed, standby warm", 3, 1.1),
        ("driver killed, standby cold", 3, 21.0),
        ("driver killed, standby cold with class data", 3, 11.0),
        ("all killed, standby warm", 3, 1.1),
        ("all killed, standby cold", 3, 21.0),
        ("all killed, standby cold with class data", 3, 11.0),
    ]
    assert [(target.measured, target.met) for target in result.targets] == [
        (1.1, True),
        (21 / 1.1, True),
        (21 / 11, True),
        (1.1, False),
        (21 / 1.1, True),
        (21 / 11, True),
    ]


def run(**found: int) -> Marathon:
    legs = tuple(Leg(kind, 1.0, 2.0) for kind in KINDS)
    counts = {"lost": 0, "doubled": 0, "crooked": 0, "repeated": 0, **found}
    repeated = counts.pop("repeated")
    return Marathon(7, legs, Verdict(words=100, batches=10, **counts), ids=12, repeated=repeated)


def test_a_marathon_in_which_nothing_went_wrong() -> None:
    result = marathon.summarise(run())
    assert all(target.met for target in result.targets)
    assert [row[:2] for row in result.rows] == [(kind, 1) for kind in KINDS]


@pytest.mark.parametrize("what", ["lost", "doubled", "crooked", "gaps", "repeated"])
def test_one_thing_that_went_wrong_misses_the_target(what: str) -> None:
    assert [target.met for target in marathon.summarise(run(**{what: 1})).targets].count(False) == 1


def hour(violations: tuple[str, ...] = (), repeated: int = 0, **wrong: int) -> Hour:
    verdict = Verdict(words=100, batches=10, **{"lost": 0, "doubled": 0, "crooked": 0, **wrong})
    legs = tuple(Leg(kind, 1.0, seconds) for kind in KINDS for seconds in (2.0, 4.0))
    switches = tuple(Switch(kind, 3.0) for kind in SWITCHES)
    return Hour(7, 60.0, legs, switches, verdict, 12, repeated, 1000, violations, tickets=90)


def test_an_hour_on_secured_stores_in_which_nothing_went_wrong() -> None:
    result = secured.summarise(hour())
    assert all(target.met for target in result.targets)
    assert result.rows == (*((kind, 2, 3.0, 4.0) for kind in KINDS), *((kind, 1, 3.0, 3.0) for kind in SWITCHES))


@pytest.mark.parametrize(
    "wrong",
    [{"lost": 1}, {"doubled": 1}, {"crooked": 1}, {"gaps": 1}, {"repeated": 1}, {"violations": ("S1: two believed",)}],
)
def test_one_thing_that_went_wrong_in_the_hour_misses_the_target(wrong: dict[str, Any]) -> None:
    result = secured.summarise(hour(**wrong))
    assert [target.met for target in result.targets].count(False) == 1
    assert set(wrong.get("violations", ())) <= set(result.notes)


def test_each_fault_of_the_hour_begins_in_its_own_share_of_the_time() -> None:
    dice = random.Random(7)  # noqa: S311
    times = secured.plan(dice, SWITCHES, 10, 3600.0)
    assert [int(at // 360) for at, _ in times] == list(range(10))
    assert all(at % 360 <= 360 * secured.DRAWN for at, _ in times)
    assert Counter(kind for _, kind in times) == dict.fromkeys(SWITCHES, 5)
    assert secured.plan(dice, SWITCHES, 0, 3600.0) == []


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
