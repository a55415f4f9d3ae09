"""Partitions: rows that come after a commit that went half way take its marker away, whoever has begun it."""

import pytest

from ha.outputs.batch import Batch
from ha.outputs.lines import Line
from ha.outputs.partition_commit import CommittedPartition, Moment, PartitionCommit
from ha.outputs.partitions import Partitions
from tests.unit.ha.outputs.place import Place

WORDS, DAYS = Line("0a", "words"), ("day=1", "day=11")
LATER = PartitionCommit(delay=3600.0)


def fail(_: CommittedPartition) -> None:
    raise RuntimeError("The receiver is away.")


def marked(place: Place) -> list[str]:
    return sorted(each.parent.name for each in (place.root / "out").rglob("_SUCCESS"))


def write(place: Place, number: int, commit: PartitionCommit, *days: str) -> None:
    place.publish(place.journal(commit=commit), Batch(number, WORDS, f"{number}", Moment(0, number)), days=days)


def test_a_marker_of_a_commit_that_failed_goes_before_the_next_rows(place: Place) -> None:
    with pytest.raises(RuntimeError):
        write(place, 5, PartitionCommit(policy=["success-file", fail]), *DAYS)
    assert marked(place) == ["day=1"]
    write(place, 6, LATER, "day=11")
    assert marked(place) == ["day=1"], "another partition, whose name begins like it"
    write(place, 7, LATER, "day=1")
    assert marked(place) == []
    assert place.journal(commit=LATER).commit_pending() == 2
    assert marked(place) == ["day=1", "day=11"]
    assert place.journal(commit=LATER).commit_pending() == 0


def test_a_crash_before_a_marker_was_taken_away_is_gone_over(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place, 5, PartitionCommit(), *DAYS)
    assert marked(place) == ["day=1", "day=11"]
    with monkeypatch.context() as patch:
        patch.setattr(Partitions, "_withdraw", lambda *_: fail(None))  # type: ignore[arg-type]
        with pytest.raises(RuntimeError):
            write(place, 6, LATER, "day=1")
    assert place.found.keys() == {f"{day}/batch=5/part-0" for day in DAYS}, "no row of it was moved"
    place.journal(commit=LATER).settle()
    assert (marked(place), "day=1/batch=6/part-0" in place.found) == (["day=11"], True)
