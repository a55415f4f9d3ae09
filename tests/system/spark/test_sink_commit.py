"""Partition commit of the format ``ha``: a marker and late rows, through crashes, faults and zombies of one leader."""

from collections.abc import Iterator

import pytest

from ha.leadership import fenced_rename
from ha.outputs.commit_trigger import PARTITION_TIME, PROCESS_TIME
from ha.outputs.partitions import Partitions
from ha.spark.sink import writer
from tests.system.spark.sink_marks import MarkedSinkRun

SEEDS = 25


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    monkeypatch.setattr(fenced_rename, "PATIENCE_S", 0.2)
    monkeypatch.setattr(fenced_rename, "CALL_TIMEOUT_S", 60.0)  # a process that is paused is no store that is slow
    before, writer._journals = writer._journals, {}
    yield
    writer._journals = before


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


# --- canaries


def found(seeds: int = 400) -> bool:
    """Whether a mistake that was built in shows up."""
    for seed in range(seeds):
        run = MarkedSinkRun(seed)
        try:
            run.go()
        except AssertionError:
            return True
        if run.reader.wrong or run.lost is not None:
            return True
    return False


def test_a_process_that_takes_nothing_over_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A zombie would mark a partition while late rows come."""
    monkeypatch.setattr(Partitions, "take_over", lambda partitions: partitions._find())
    assert found()


def test_a_process_that_does_not_look_whether_it_holds_the_notes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partitions, "hold", lambda _: None)
    assert found()
