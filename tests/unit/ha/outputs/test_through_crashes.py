"""Outputs of every kind through crashes at every call: a few of the runs of which tests/system/spark has many."""

from typing import Any

import pytest

from ha.leadership import fenced_rename
from ha.outputs.partition_commit import PARTITION_TIME, PROCESS_TIME
from ha.spark.outputs import regional_output
from tests.system.spark import regional_reader
from tests.system.spark.flat_reader import MergedRun
from tests.system.spark.marker_reader import MarkerRun
from tests.system.spark.plain_reader import Run


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    monkeypatch.setattr(fenced_rename, "PATIENCE_S", 0.2)
    monkeypatch.setattr(regional_output, "THREADS", 1)


@pytest.mark.parametrize("seed", range(6))
def test_a_reader_sees_each_row_once_and_all_of_a_complete_batch(seed: int) -> None:
    run = Run(seed).go()
    assert (run.reader.wrong, run.lost, len(run.reader.complete)) == ([], None, run.batches)


@pytest.mark.parametrize("seed", range(3))
def test_so_does_a_reader_of_files_that_are_merged(seed: int) -> None:
    run: Any = MergedRun(seed).go()
    assert (run.reader.wrong, run.lost, len(run.reader.complete)) == ([], None, run.batches)
    assert [row for row in run.verified() if row.missing] == []
    assert run.clean() == []
    assert [row for row in run.verified() if row.missing] == run.reader.wrong == []


@pytest.mark.parametrize("trigger", [PARTITION_TIME, PROCESS_TIME])
@pytest.mark.parametrize("seed", range(3))
def test_no_row_comes_while_a_marker_stands_and_each_marked_partition_is_told(trigger: str, seed: int) -> None:
    run: Any = MarkerRun(seed, trigger=trigger).go()
    assert (run.reader.wrong, run.lost) == ([], None)
    assert {each.path for each in run.called} == run.marks.days.keys()


@pytest.mark.parametrize("seed", range(3))
def test_regions_are_complete_up_to_the_mark(seed: int) -> None:
    run = regional_reader.drawn(seed)
    assert (run.regional.wrong, len(run.regional.complete)) == ([], len(run.regions) * run.batches)
