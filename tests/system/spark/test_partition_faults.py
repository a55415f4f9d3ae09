"""Partition commit through faults at every call of a store, and the canaries that show that a fault is found."""

from typing import Any

import pytest

from ha.leadership.fenced_rename import FencedRename
from ha.outputs.batch import Batch
from ha.outputs.committing import Committing
from ha.outputs.folder import OutputFolder
from ha.outputs.journal import Journal
from ha.outputs.moving import Moving
from ha.outputs.partition_commit import PARTITION_TIME, PROCESS_TIME, Moment
from ha.outputs.partitions import Partitions
from ha.outputs.record import Record
from tests.system.spark.marker_reader import drawn

SEEDS = 60


pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.mark.parametrize("trigger", [PARTITION_TIME, PROCESS_TIME])
@pytest.mark.parametrize("seeds", [SEEDS // 3, SEEDS], ids=["some", "all"])
def test_through_crashes_at_every_call_and_all_that_becomes_of_answers(trigger: str, seeds: int) -> None:
    for seed in range(seeds):
        run = drawn(seed, trigger=trigger)
        assert not run.reader.wrong, (seed, run.reader.wrong[:3])
        assert run.lost is None, seed
        assert {each.path for each in run.called} == run.marks.days.keys(), "every marked partition is told"


def wrong(**arguments: Any) -> bool:
    return any(drawn(seed, **arguments).reader.wrong for seed in range(200))


def test_a_marker_that_stays_when_late_rows_come_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partitions, "_withdraw", lambda *_: None)
    assert wrong(rate=0.0)


def test_a_marker_that_is_gone_as_soon_as_it_looks_so_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FencedRename, "acknowledge", lambda _: None)
    assert wrong()


def test_a_commit_before_its_rows_are_moved_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    open_all = Committing.open

    def too_early(committing: Committing, batch: int, record: Record, moment: Moment | None = None) -> None:
        open_all(committing, batch, record, moment)
        committing.commit(batch, moment)

    monkeypatch.setattr(Committing, "open", too_early)
    assert wrong(rate=0.0)


def test_the_watermark_of_a_batch_that_was_never_committed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    publish = Journal._publish

    def too_early(journal: Journal, sealed: str, batch: Batch, record: Record) -> None:
        assert journal._committing is not None
        journal._committing.commit(journal.newest, batch.moment)
        publish(journal, sealed, batch, record)

    monkeypatch.setattr(Journal, "_publish", too_early)
    assert wrong(rate=0.0)


def test_a_pending_partition_that_a_restart_forgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Partitions.load

    def forgetful(partitions: Partitions, *, make: bool = True) -> bool:
        result = load(partitions, make=make)
        partitions.pending.clear()
        return result

    monkeypatch.setattr(Partitions, "load", forgetful)
    assert wrong()


def test_a_batch_that_is_finished_without_a_note_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Moving.__init__

    def silent(moving: Moving, folder: OutputFolder, _: object = None, *, flat: bool = False) -> None:
        made(moving, folder, flat=flat)

    monkeypatch.setattr(Moving, "__init__", silent)
    assert wrong()
