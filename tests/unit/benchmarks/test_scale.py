"""Tests of the scale model against cases computed by hand."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.context import Context
from benchmarks.scale.costs import (
    NAMENODE,
    OUTAGE,
    ZOOKEEPER,
    Costs,
    Part,
    Rounds,
    Sharing,
    WorkCosts,
    budgets,
    of,
    rate,
)
from benchmarks.scale.model import (
    BEFORE,
    Fleet,
    Work,
    batches,
    looked_for,
    looks,
    outage,
    outputs,
    replication,
    requests,
    steady,
    storm,
)

READS, WRITES, SYNCS = "namenode reads", "namenode writes", "zookeeper syncs"
OUT = tuple([2.0] * OUTAGE)

LEADER = Part(steady=({SYNCS: 60.0}, {WRITES: 3.0}), takeover={}, outage=({}, {WRITES: OUT}))
STANDBY = Part(steady=({SYNCS: 60.0}, {READS: 3.0}), takeover={WRITES: (0.0, 4.0, 0.0)}, outage=({}, {READS: OUT}))
AGENT = Part(steady=({}, {READS: 6.0}), takeover={READS: (0.1, 0.1, 0.1)}, outage=({SYNCS: (1.0,)}, {READS: OUT}))
SHARING = Sharing(holder={SYNCS: 30.0}, leader=({}, {WRITES: 3.0}), standby=({SYNCS: 1.2}, {READS: 3.0}))
SIDE = Rounds(idle={READS: 2.0}, batch={READS: 3.0, WRITES: 1.0}, directory={WRITES: 0.5})
WORKING = WorkCosts(
    batch={READS: 1.0, WRITES: 2.0, SYNCS: 3.0},
    look={READS: 2.0},
    request={WRITES: 4.0, SYNCS: 1.0},
    heard={SYNCS: 2.0},
    wait={READS: 2.0},
    source=SIDE,
    replica=SIDE,
    output=({WRITES: 4.0}, {READS: 1.0, WRITES: 1.0}),
    sink=({WRITES: 6.0}, {READS: 1.0, WRITES: 1.0}),
)
COSTS = Costs(
    leader=LEADER, standby=STANDBY, agent=AGENT, shared=SHARING, work=WORKING, heard=1.5, read_same=1, read_changed=3
)
FLEET = Fleet(jobs=100, hosts=10, readers=1000, jobs_per_host=20, jobs_per_contender=1)


def test_in_steady_state_habits_are_added() -> None:
    """100 leaders and 100 standbys at 3 a minute, 200 pairs of host and job at 6; 200 processes sync once a second."""
    assert steady(FLEET, COSTS) == pytest.approx((5 + 5 + 20, 200))


def test_a_process_with_more_jobs_costs_zookeeper_less() -> None:
    few = Fleet(jobs=100, hosts=10, readers=1000, jobs_per_host=20, jobs_per_contender=30)
    assert few.contenders == 4
    assert steady(few, COSTS) == pytest.approx((30, 8))


def test_with_one_session_a_host_each_host_confirms_once() -> None:
    """10 hosts sync 30 times a minute; 100 processes that stand by 1.2 times; the NameNode sees no difference."""
    shares = replace(FLEET, shares_sessions=True)
    assert steady(shares, COSTS) == pytest.approx((30, 5 + 2))
    few = replace(shares, hosts=10, jobs_per_contender=50)
    assert steady(few, COSTS)[1] == pytest.approx((4 * 30 + 2 * 1.2) / 60), "4 processes are on 4 hosts at most"


def test_an_outage_is_what_was_counted_times_how_many_there_are() -> None:
    loads = outage(FLEET, COSTS)
    assert loads.namenode[:BEFORE] == pytest.approx([30] * BEFORE)
    assert loads.namenode[BEFORE:] == pytest.approx([2 * (100 + 100 + 200)] * OUTAGE)
    assert loads.zookeeper[BEFORE : BEFORE + 2] == [10, 0]


def test_in_a_storm_takeovers_are_added_and_habits_of_the_dead_end() -> None:
    loads = storm(FLEET, COSTS, 0.1)
    # 10 of the leaders die: each 4 writes, and 0.1 reads a second for each of its 2 hosts, as by habit.
    extra = sum(loads.namenode[BEFORE:]) - 30 * 3
    habits = 10 * (3 + 3) / 60 * 3  # what the dead would have written, and their standbys read
    assert extra == pytest.approx(10 * 4 - habits, rel=0.05)
    assert loads.namenode[:BEFORE] == pytest.approx([30] * BEFORE)
    assert loads.zookeeper[-1] == pytest.approx(190)


def test_a_storm_is_spread_over_as_long_as_it_lasts() -> None:
    """Half of the requests in the second after a death fall into the next second."""
    many = Fleet(jobs=10_000, hosts=10, readers=1000, jobs_per_host=20)
    loads, habits = storm(many, COSTS, 1.0), steady(many, COSTS)[0]
    first, second = (each - habits for each in loads.namenode[BEFORE + 1 : BEFORE + 3])
    assert first == pytest.approx(4 * 10_000 / 2 - 1000 * 0.75, rel=0.05)
    assert second == pytest.approx(4 * 10_000 / 2 - 1000, rel=0.05)
    assert storm(many, COSTS, 1.0) == loads


def test_a_budget_is_without_what_would_have_come_anyhow() -> None:
    counted = [each.measured for each in budgets(COSTS)]
    assert counted == pytest.approx([3, 6, 3.9, 0, 2])


WORK = Work(every=10.0, partitions=3, requests=864.0, answered=0.5, replicated=0.2, directories=4, round=2.0)
"""Of the fleet's 100 jobs ten do a batch in a second, one is asked for something, and 20 are replicated."""


def test_batches_and_outputs_come_as_often_as_said() -> None:
    assert batches(FLEET, WORK, WORKING) == pytest.approx((10 * 3, 10 * 3))
    assert outputs(FLEET, WORK, WORKING.output) == pytest.approx((10 * (4 + 2 * 3), 0))
    assert outputs(FLEET, replace(WORK, partitions=0), WORKING.sink) == pytest.approx((10 * 6, 0))


def test_a_request_is_heard_by_hosts_and_waited_for() -> None:
    """Each job has two hosts that ask about it, and its operator looks every quarter of a second, twice."""
    assert requests(FLEET, WORK, WORKING) == pytest.approx((4 + 2 * 2, 1 + 2 * 2))


def test_a_round_of_replication_is_with_a_batch_or_without() -> None:
    """20 jobs make ten rounds a second; two of these find a batch."""
    assert replication(FLEET, WORK, SIDE) == pytest.approx((8 * 2 + 2 * 4 + 2 * 4 * 0.5, 0))
    often = replace(WORK, every=1.0)
    assert replication(FLEET, often, SIDE) == pytest.approx((10 * 4 + 10 * 4 * 0.5, 0)), "no round finds more than one"


def test_a_sidecar_looks_less_often_the_longer_nothing_comes() -> None:
    """A batch at each multiple of 40 s; it looks at 1, 3, 7, 15, 25, 35 and 45 s, and again 1 s after a find."""
    assert looks(40.0, batches=1) == 7
    assert looks(40.0, batches=2) == (7 + 6) / 2  # at 46, 48, 52, 60, 70 and 80 s
    assert looks(0.5, batches=4) == 0.5, "one look finds two"
    seldom = replace(WORK, every=40.0)
    assert looked_for(FLEET, seldom, WORKING)[0] == pytest.approx(2.5 * (3 + 1) + 2.5 * (looks(40.0) - 1) * 2)
    assert looked_for(FLEET, replace(WORK, every=0.5), WORKING) == pytest.approx((200 * 4, 200 * 3))


def test_stores_are_told_apart() -> None:
    assert of(NAMENODE, {READS: (1.0, 2.0), WRITES: (1.0, 0.0), SYNCS: (9.0, 9.0)}) == [2.0, 2.0]
    assert of(ZOOKEEPER, {}) == []
    assert rate(ZOOKEEPER, {SYNCS: 2.0, READS: 7.0}) == 2.0


@pytest.mark.slow  # it draws
def test_the_report_has_all_that_was_asked_for(tmp_path: Path) -> None:
    result = scale.run(Context(quick=True, rounds=None, say=print, folder=tmp_path))
    assert {len(row) for row in result.rows} == {len(result.columns)}
    assert len(result.rows) == len(scale.FLEETS) * (3 + len(scale.SHARES)) + 8
    rows = {row[0]: row for row in reversed(result.rows)}
    rest, working = rows["steady, one session a host"], rows["steady and working, one session a host"]
    parts = [row for name, row in rows.items() if str(name).startswith("working: ")]
    for column in (3, 5):
        summed = float(rest[column]) + sum(float(row[column]) for row in parts)
        assert working[column] == pytest.approx(summed, abs=3), "each is rounded"
    for picture in result.pictures:
        ET.fromstring(picture.svg)  # noqa: S314  # ours
