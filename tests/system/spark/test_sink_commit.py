"""Partition commit of the format ``ha``: a marker and late rows, through crashes, faults and zombies of one leader."""

import pytest

from ha.outputs.partition_commit import PARTITION_TIME, PROCESS_TIME
from ha.outputs.partitions import Partitions
from tests.system.spark.sink_marks import MarkedSinkRun
from tests.system.spark.sink_run import found

SEEDS = 25


pytestmark = pytest.mark.usefixtures("own_journals")


@pytest.mark.parametrize("trigger", [PARTITION_TIME, PROCESS_TIME])
def test_a_marker_never_precedes_a_row(trigger: str) -> None:
    zombies = 0
    for seed in range(SEEDS):
        run = MarkedSinkRun(seed, trigger=trigger)
        run.go()
        assert not run.reader.wrong, (seed, run.reader.wrong[:3])
        assert run.lost is None, seed
        zombies += run.zombies
    assert zombies > SEEDS


def test_a_process_that_takes_nothing_over_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A zombie would mark a partition while late rows come."""

    def keep(partitions: Partitions) -> None:
        partitions._home = partitions._folder.taken("partitions", partitions._folder.names())[1]

    monkeypatch.setattr(Partitions, "take_over", keep)
    assert found(MarkedSinkRun)


def test_a_process_that_does_not_look_whether_it_holds_the_notes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partitions, "hold", lambda _: None)
    assert found(MarkedSinkRun)
