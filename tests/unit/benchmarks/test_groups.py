"""Tests of the benchmark of NameNode groups: its jobs, their pauses, and its summary."""

import pytest

from benchmarks.groups import Findings, Moment, placed, report, zipf
from benchmarks.led import Job
from ha.placement.place import home_of

ROOTS = ["hdfs://a:1/ha", "hdfs://b:1/ha", "hdfs://c:1/ha"]


def test_each_root_is_the_home_of_a_third() -> None:
    names = placed(7, ROOTS)
    assert len(set(names)) == 7
    assert [home_of(ROOTS, each) for each in names] == [ROOTS[0]] * 3 + [ROOTS[1]] * 2 + [ROOTS[2]] * 2


def test_the_second_job_has_half_as_many_batches_as_the_first() -> None:
    first, second, third = zipf(["a", "b", "c"], 4.0)
    assert (second.period, third.period) == pytest.approx((2 * first.period, 3 * first.period))
    assert sum(1 / each.period for each in (first, second, third)) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("since", "until", "pause"),
    [
        (0.0, 7.0, 1.5),  # from the batch at 2 to the one at 5
        (0.0, 11.0, 2.5),  # no batch since the one at 6
        (5.0, 7.0, 0.5),  # the gap that ended at 5 is over
        (4.0, 7.0, 1.5),  # it was going on
        (20.0, 30.0, 12.0),
    ],
)
def test_a_pause_is_the_longest_time_without_a_batch_in_periods(since: float, until: float, pause: float) -> None:
    job = Job("a", 2.0, [(at, ROOTS[0]) for at in (0.0, 2.0, 5.0, 6.0)])
    assert job.pause(since, until) == pause


def test_a_job_without_a_batch_has_paused_all_the_time() -> None:
    assert Job("a", 2.0).pause(3.0, 9.0) == 3.0
    assert Job("a", 2.0).at() == ""


def test_the_report() -> None:
    moments = [
        Moment("before", dict(zip(ROOTS, (60.0, 20.0, 10.0), strict=True)), dict.fromkeys(ROOTS, 20)),
        Moment("after 90 s", dict(zip(ROOTS, (30.0, 30.0, 30.0), strict=True)), dict.fromkeys(ROOTS, 20)),
    ]
    found = Findings(moments, 90.0, [{"job": "a"}], ["no\n"], {"a": 2.0, "b": 1.2}, 0.2, 0, 100, 0)
    result = report(found, zipf(["a", "b", "c", "d", "e"], 1.0), ROOTS)
    assert result.rows == (("before", 2.0, "60 20 10", "20 20 20"), ("after 90 s", 1.0, "30 30 30", "20 20 20"))
    assert [(each.measured, each.met) for each in result.targets] == [
        (1.0, True),
        (90.0, True),
        (20.0, True),
        (1, True),
        (0, True),
    ]
    assert "late: 1.0, 0.2." in result.notes[1]
    assert "no" in result.notes[-1]
    assert not report(Findings(moments[:1], pauses={"a": 2.1}, lost=1), zipf(["a"], 1.0), ROOTS).targets[3].met
