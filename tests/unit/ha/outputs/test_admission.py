"""Admission and the journal: a batch is new, a repetition, or refused; and only what was named is published."""

from pathlib import Path

import pytest

from ha.outputs.batch import Batch
from ha.outputs.lines import Line
from ha.outputs.moving import Moving
from ha.outputs.record import Record
from leader.errors import ForeignBatch, InvalidSettings, OutputLost
from store.errors import NotFound
from tests.unit.ha.outputs.place import Place

WORDS, CLICKS = Line("0a", "words"), Line("0b", "clicks")


def test_a_repetition_is_dropped_and_counted(place: Place) -> None:
    journal = place.journal()
    assert place.publish(journal, Batch(0, WORDS, "first"))
    assert place.publish(journal, Batch(1, WORDS, "second"), "one")
    for count, again in enumerate((journal, place.journal()), 1):
        assert not again.admit(Batch(1, WORDS, "second"))
        assert not place.publish(again, Batch(1, WORDS, "second"), "two")
        assert place.names("replayed=") == [f"replayed={count}"]
    assert place.found == {"batch=0/part-0": "rows", "batch=1/part-0": "one"}


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        (Batch(0, CLICKS, "x"), r"batch 0 of query 'clicks' \(0b\): it has batches up to 1 of query 'words' \(0a\)"),
        (Batch(2, CLICKS, "x"), "another query writes"),
        (Batch(2), "a program without a query is not one of them"),
        (Batch(1, WORDS, "other"), "published that batch as 1, with other rows; its checkpoint was put back"),
        (Batch(0, WORDS, "first"), "published that batch as 0, and batches after it, up to 1"),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_anything_else_is_refused_before_and_after(place: Place, batch: Batch, why: str, restarted: bool) -> None:
    journal = place.journal()
    place.publish(journal, Batch(0, WORDS, "first"))
    place.publish(journal, Batch(1, WORDS, "second"))
    journal = place.journal() if restarted else journal
    before = place.found
    with pytest.raises(ForeignBatch, match=why):
        journal.admit(batch)
    with pytest.raises(
        ForeignBatch, match="with batch 2, whatever comes twice then: `ha output begin-anew orders output`"
    ):
        place.publish(journal, batch)
    assert place.found == before
    assert place.publish(journal, Batch(2, WORDS, "third")), "the query itself goes on"


def test_another_query_goes_on_once_it_may(place: Place) -> None:
    journal = place.journal()
    place.publish(journal, Batch(0, WORDS, "first"))
    (output,) = place.home.glob("out/output-*")
    (output / "follow=0").mkdir()
    journal = place.journal()
    assert place.publish(journal, Batch(0, CLICKS, "x"), "clicks")
    assert not place.publish(journal, Batch(0, CLICKS, "x"), "again")
    assert place.found == {"batch=0/part-0": "rows", "batch=1/part-0": "clicks"}
    with pytest.raises(ForeignBatch, match="of query 'clicks'"):
        place.publish(place.journal(), Batch(1, WORDS, "second"))


def test_parts_of_a_batch_appear_once_each(place: Place) -> None:
    """A driver dies after the first, and after the last of them; a batch follows."""
    one, two = Batch(0, WORDS, "x"), Batch(0, WORDS, "x", part=1)
    assert place.publish(place.journal(), one, "one")
    journal = place.journal()
    assert [place.publish(journal, each, "again") for each in (one, two)] == [False, True]
    journal = place.journal()
    assert [place.publish(journal, each, "again") for each in (one, two)] == [False, False]
    assert place.publish(journal, Batch(1, WORDS, "y"), "next")
    assert place.found == {"batch=0/part-0": "one", "batch=1/part-0": "again", "batch=2/part-0": "next"}
    with pytest.raises(ForeignBatch, match="published that batch as 0, and batches after it, up to 2"):
        journal.admit(one)


def test_a_stranger_takes_nothing_away(place: Place) -> None:
    """Two queries that write beside each other: what the first one has staged stays."""
    first = place.journal()
    place.publish(first, Batch(0, WORDS, "x"))
    folder = Path(first.staged.removeprefix("file://"), "begun", "rows")
    folder.mkdir(parents=True)
    with pytest.raises(ForeignBatch):
        place.publish(place.journal(), Batch(0, CLICKS, "y"))
    assert folder.exists()
    assert first.publish("begun", Batch(1, WORDS, "y"), Record({}))


def test_a_program_without_a_query_repeats_by_number(place: Place) -> None:
    journal = place.journal()
    assert [place.publish(journal, Batch(each)) for each in (0, 1, 0, 1, 2)] == [True, True, False, False, True]


def test_a_higher_id_is_kept_through_a_restart(place: Place) -> None:
    journal = place.journal()
    assert place.publish(journal, Batch(0, WORDS, "first"))
    folder = Path(journal.staged.removeprefix("file://"), "lifted", "rows")
    folder.mkdir(parents=True)
    assert journal.publish("lifted", Batch(1, WORDS, "second"), Record({}), least=7)
    again = place.journal()
    assert not again.admit(Batch(1, WORDS, "second"))
    assert (again.newest, again.id_of(1), again.id_of(2)) == (7, 7, 8)


def test_only_what_was_named_is_published(place: Place) -> None:
    assert place.publish(place.journal(), Batch(0, WORDS, "x"), late="part-1")
    assert place.found == {"batch=0/part-0": "rows"}


def test_a_journal_that_was_replaced_settles_before_it_decides(place: Place) -> None:
    first, second = place.journal(), place.journal()
    assert place.publish(first, Batch(0, WORDS, "0"))
    assert place.publish(second, Batch(1, WORDS, "1"), "by the second")
    assert not place.publish(first, Batch(1, WORDS, "1"), "by the first")
    assert place.publish(first, Batch(2, WORDS, "2"))
    assert place.found["batch=1/part-0"] == "by the second"
    assert len(place.names("own=")) == 1


def test_rows_that_are_gone_are_missed(place: Place) -> None:
    journal = place.journal()
    with pytest.raises(NotFound, match=r"written of batch 0 of query 'words' \(0a\) for output 'output' is gone"):
        journal.publish("never", Batch(0, WORDS, "x"), Record({"": {"part-0": 4}}))


def test_a_flat_batch_whose_record_is_damaged_stays_flat(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a folder would appear beside the files of the other batches, and Spark reads one of the two."""
    journal = place.journal(flat=True)
    assert place.publish(journal, Batch(0, WORDS, "x"))
    monkeypatch.setattr(journal._moving, "move", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        place.publish(journal, Batch(1, WORDS, "y"))
    for each in place.home.glob("out/output-*/ready/1/files=*"):
        each.rename(each.with_name("files=1~1~AAAA"))
    moving = Moving(journal._folder, flat=True)
    with pytest.raises(OutputLost, match="what it consists of is not known"):
        moving.finish(1)
    moving.record_anew(1)
    moving.finish(1)
    assert sorted(each.name for each in (place.root / "out").iterdir()) == ["_room", "batch-0", "batch-1"]


def test_a_directory_has_one_output(place: Place) -> None:
    place.journal("output").settle()
    with pytest.raises(InvalidSettings, match="Output 'output' of this job has the directory 'out' already"):
        place.journal("other").settle()
