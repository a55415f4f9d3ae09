"""Tests of the costs of work: they count again, and fail when the library's costs have changed."""

import uuid
from functools import cache

import pytest

from benchmarks.scale.costs import NAMENODE, ZOOKEEPER, Count, WorkCosts, load, rate
from ha.checkpoints.trees import Tree
from store.open import open_files
from tests.unit.benchmarks import counting
from tests.unit.benchmarks.counting_work import BULK, between, count, mean
from tests.unit.benchmarks.test_counting import ANEW
from tests.unit.store.test_counting import Answered


@cache
def counted() -> WorkCosts:
    return count(counting.told_to_look)


def calls(each: Count) -> float:
    return rate(NAMENODE, each)


@pytest.mark.slow
def test_work_costs_what_the_table_says() -> None:
    now, then = counted(), load().work
    for name in now.__struct_fields__:
        if name != "heard":
            assert getattr(now, name) == getattr(then, name), f"{name}: {ANEW}"
    assert now.heard == pytest.approx(then.heard, abs=0.2), ANEW


@pytest.mark.slow
def test_outputs_cost_what_is_promised() -> None:
    """See docs/outputs.md: 5 + 2 P calls, whoever has written the rows; what the batch reads is one more."""
    assert [calls(each) for each in counted().output] == [5, 2]
    assert [calls(each) for each in counted().sink] == [5, 2]


@pytest.mark.slow
def test_a_published_batch_is_three_requests_and_two_of_zookeeper() -> None:
    assert (calls(counted().batch), rate(ZOOKEEPER, counted().batch)) == (3, 2)
    assert (calls(counted().look), rate(ZOOKEEPER, counted().look)) == (2, 0)


def test_a_mean_takes_what_was_not_counted_for_nothing() -> None:
    assert mean([{"a": 1.0}, {"a": 2.0, "b": 1.0}, {}]) == {"a": 1.0, "b": 0.33}
    assert mean([{"a": 0.0}]) == {}


def test_what_each_thing_costs_is_told_from_what_is_fixed() -> None:
    assert between({"a": 7.0, "b": 1.0}, {"a": 15.0, "b": 1.0}, steps=4) == ({"a": 5.0, "b": 1.0}, {"a": 2.0})


def test_a_client_beats_when_it_has_been_silent() -> None:
    after = counting.BEATS_AFTER
    assert after == pytest.approx(10 / 3 - 0.205)
    assert counting.heartbeats([]) == pytest.approx(1 / after)
    assert counting.heartbeats([5.0, 5.0 + 0.9 * after, 5.0 + 1.8 * after]) == 0
    assert counting.heartbeats([5.0, 5.0 + 2.5 * after]) == pytest.approx(2 / (2.5 * after))


@pytest.mark.hdfs
@pytest.mark.slow
def test_the_namenode_counts_the_same_of_files_that_pyarrow_copies(hdfs_uri: str, webhdfs_uri: str) -> None:
    with open_files(f"{hdfs_uri}/bulk-{uuid.uuid4().hex}") as files:
        files.call("make_root", lambda driver: driver.make_root(), 20.0)
        tree, namenode = Tree(files), Answered(webhdfs_uri)
        tree.store("first", b"0123456789")  # a first connection asks for more
        tree.head("first", 100)
        namenode.since()
        tree.store("second", b"0123456789")
        spent = namenode.since()
        spent["Complete"] = min(spent["Complete"], 1)  # it is said again until the block is reported
        assert spent.total() == BULK["create"], spent
        assert tree.head("second", 100) == b"0123456789"
        spent = namenode.since()
        assert spent.total() == BULK["open"], spent
