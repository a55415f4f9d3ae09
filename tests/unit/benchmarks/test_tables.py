"""Tests of ratios, targets, tables and pictures from known durations."""

import functools
import math
from collections.abc import Callable

import pytest

from benchmarks import availability, lookup, publish
from benchmarks.availability.asking import Asked
from benchmarks.availability.contestants import CONTESTANTS, OURS
from benchmarks.availability.outages import Trouble
from benchmarks.figures import Summary
from benchmarks.result import Result
from tests.unit.benchmarks.drawn import is_svg


def rounds(*medians: float) -> list[Summary]:
    return [Summary(p50, 2 * p50, 3 * p50, 1 / p50) for p50 in medians]


def column(result: Result, name: str) -> dict[str | float, str | float]:
    number = result.columns.index(name)
    return {row[0]: row[number] for row in result.rows}


@functools.cache
def looked_up() -> Result:
    medians = dict.fromkeys(lookup.CALLS, 0.001) | {lookup.SNAPSHOT: 10e-6, lookup.ZOOKEEPER: 1.1e-3}
    found = {name: lookup.Found(rounds(p50, p50, p50), [p50] * 5, 7.0) for name, p50 in medians.items()}
    found[lookup.HDFS] = lookup.Found(rounds(1.4e-3, 14e-3, 1.4e-3), [1.4e-3], 7.0)
    found[lookup.NATIVE] = found[lookup.BOUNDED] = lookup.Found(rounds(1e-3, 10e-3, 1e-3), [1e-3], 7.0)
    return lookup._result(found, {lookup.SNAPSHOT: 3})


def test_each_lookup_is_compared_with_the_bare_request_to_the_same_store() -> None:
    ratios = column(looked_up(), "x bare (p50)")
    assert ratios[lookup.ZOOKEEPER] == pytest.approx(1.1)
    assert ratios[lookup.HDFS] == pytest.approx(1.4), "whatever disturbs one round"
    assert ratios[lookup.WEBHDFS] == pytest.approx(1.0)
    assert {ratios[name] for name in (lookup.SNAPSHOT, *lookup.BARE.values())} == {""}


def test_a_lookup_in_hdfs_is_compared_with_a_list_that_has_a_deadline_too() -> None:
    assert any("which has one, a lookup is 1.4 x" in note for note in looked_up().notes)


def test_the_targets_of_a_lookup() -> None:
    targets = looked_up().targets
    assert [target.measured for target in targets] == pytest.approx([10.0, 1.1, 1.4])
    assert [target.met for target in targets] == [True, True, False]


def test_answers_from_elsewhere_are_said() -> None:
    result = looked_up()
    assert any(f"{lookup.SNAPSHOT} 3" in note for note in result.notes)
    assert result.raw[lookup.SNAPSHOT]["answers_from_elsewhere"] == 3


@functools.cache
def published() -> Result:
    seconds = {publish.CLAIM: 4e-3, publish.PUBLISHED: 5e-3, publish.COPIED: 8e-3, publish.AGAIN: 1e-3}
    files = {publish.RPC: 500e-3, publish.WEB: 50e-3}
    found = {name + way: [[value] * 3] * 3 for name, value in seconds.items() for way in files}
    found |= {publish.FILE + way: [[value] * 3] * 3 for way, value in files.items()}
    return publish._result(found)


def test_it_is_said_how_many_files_waited_for_the_datanode() -> None:
    notes = published().notes
    assert any("100% of the files" in note and publish.RPC in note for note in notes)
    assert any("0% of the files" in note and publish.WEB in note for note in notes)


def test_publishing_is_compared_with_a_file_that_goes_the_same_way() -> None:
    faster = column(published(), "times faster than the file")
    assert faster[publish.PUBLISHED + publish.RPC] == pytest.approx(100)
    assert faster[publish.PUBLISHED + publish.WEB] == pytest.approx(10)
    assert faster[publish.FILE + publish.RPC] == 1
    assert [target.measured for target in published().targets] == pytest.approx([100, 10])
    assert [target.met for target in published().targets] == [True, False]


@functools.cache
def suffered() -> Result:
    def asked(answered: int, epoch: int = 2) -> list[Asked]:
        return [(float(due), 0.01 if due < answered else None, epoch if due < answered else 0) for due in range(10)]

    zookeeper = Trouble("ZooKeeper killed", 0.0, 10.0, 10.0, moved=5.0, epoch=2)
    hdfs = Trouble("HDFS frozen", 0.0, 10.0, 10.0)
    shares = dict.fromkeys(CONTESTANTS, asked(10, epoch=1))
    return availability._result([(zookeeper, shares), (hdfs, {OURS[0]: asked(10), OURS[1]: asked(9)})])


def test_the_worst_outage_here_decides() -> None:
    (target,) = suffered().targets
    assert target.measured == pytest.approx(90.0)
    assert not target.met


def test_a_row_for_each_outage_and_each_that_was_asked_in_it() -> None:
    result = suffered()
    assert len(result.rows) == len(CONTESTANTS) + len(OURS)
    misled = [row[-1] for row in result.rows]
    assert misled == [4.0] * len(CONTESTANTS) + ["-"] * len(OURS)
    assert [row[-2] for row in result.rows[-2:]] == [0.01, math.inf]


@pytest.mark.slow  # it draws
@pytest.mark.parametrize("found", [looked_up, published, suffered])
def test_pictures_are_pictures_and_have_names_of_their_own(found: Callable[[], Result]) -> None:
    pictures = found.__wrapped__().pictures  # type: ignore[attr-defined]  # what is kept was not drawn
    names = [picture.name for picture in pictures]
    assert len(names) == len(set(names)) >= 1
    assert all(is_svg(picture.svg) for picture in pictures)
