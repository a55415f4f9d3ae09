"""Tests of the workers benchmark: its counts, and a small run on real servers with real Python workers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.context import Context
from benchmarks.drawing import dotted
from benchmarks.result import Picture
from benchmarks.spark import workers
from benchmarks.spark.workers import ALONE, DOTS, WITHIN, Failover, Run, judge, measure, summarise
from ha.history.events import Published

SESSION = "11111111-1111-1111-1111-111111111111"


def published(epoch: int, at: float) -> Published:
    return Published(at, "orders", "contender", epoch, SESSION, {"jobmaster": f"host-{epoch}:1"})


def worker(pid: int, seen: dict[str, Any], failed: int = 0, back: int = 0) -> dict[str, Any]:
    errors = ["NoLeader()"] * failed
    return {"pid": pid, "calls": 10, "failed": failed, "errors": errors, "back": back, "slowest": 0.1, "seen": seen}


def test_who_was_told_late_or_never_or_wrongly_is_counted() -> None:
    said = [
        worker(1, {"1": [0.0, "host-1:1"], "2": [100.25, "host-2:1"]}),
        worker(2, {"1": [0.0, "host-1:1"], "2": [102.0, "host-2:1"]}, back=1),
        worker(3, {"1": [0.0, "host-1:1"], "2": [100.5, "host-1:1"]}),
        worker(4, {"1": [0.0, "host-1:1"]}, failed=2),
    ]
    run = judge(said, [published(2, 100.0)])
    assert run.failovers == [Failover(2, [0.25, 0.5, 2.0, float("inf")], strangers=1)]
    assert (run.workers, run.calls, run.failed, run.back, run.errors) == (4, 40, 2, 1, ["NoLeader()"] * 2)
    row = dict(zip(summarise({ALONE: run}, 4).columns, summarise({ALONE: run}, 4).rows[0], strict=True))
    assert (row["errors"], row["late"]) == (4, 2)
    assert [target.met for target in summarise({ALONE: run}, 4).targets] == [False, False, True]


def test_a_run_without_fault_meets_its_targets() -> None:
    run = Run([Failover(2, [0.1, 0.2], 0)], workers=2, calls=20, failed=0, back=0, slowest=0.1, errors=[])
    assert all(target.met for target in summarise({ALONE: run}, 2).targets)
    assert all(target.measured <= WITHIN for target in summarise({ALONE: run}, 2).targets[:2])


def test_the_picture_shows_the_slowest_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    failovers = [Failover(epoch, [0.1] * 199 + [7.25 if epoch == 8 else 0.2], 0) for epoch in range(2, 9)]
    run = Run(failovers, workers=200, calls=20, failed=0, back=0, slowest=0.1, errors=[])
    drawn: list[list[float]] = []

    def draw(name: str, title: str, unit: str, series: Mapping[str, Sequence[float]]) -> Picture:
        drawn.extend(list(values) for values in series.values())
        return dotted(name, title, unit, series)

    monkeypatch.setattr(workers, "dotted", draw)
    assert summarise({ALONE: run}, 200).pictures
    assert max(drawn[0]) == 7.25
    assert 0 < len(drawn[0]) <= DOTS


@pytest.mark.hdfs
@pytest.mark.zookeeper
@pytest.mark.spark
@pytest.mark.slow
def test_real_workers_through_a_real_failover(tmp_path: Path, hdfs_uri: str, zookeeper_hosts: str) -> None:
    """This counts and does not time: no worker gets an error or a wrong address, and all learn of the new leader."""
    context = Context(quick=True, rounds=1, say=lambda _: None, folder=tmp_path)
    run = measure(context, {"files": hdfs_uri, "zookeeper": zookeeper_hosts}, 8, ALONE)
    assert (run.workers, len(run.failovers), run.failed, run.back) == (8, 1, 0, 0), run.errors
    assert run.failovers[0].strangers == 0
    assert len(run.failovers[0].after) == 8
    assert float("inf") not in run.failovers[0].after
    assert run.calls > 8 * 10
