"""Tables and topics: the journal gives a decided batch to its kind, until that has said that it is there."""

import pytest

from ha.outputs.batch import Batch
from ha.outputs.elsewhere import Undecided
from ha.outputs.journal import Journal
from ha.outputs.lines import Line
from ha.outputs.record import Record
from ha.program.output_report import REPORTS
from leader.errors import OutputLost
from store.errors import Unknown
from tests.unit.ha.outputs.place import Place

WORDS = Line("0a", "words")


class Shelf:
    """A place that notes what it is given."""

    kind, place = "iceberg", "lake.db.words"

    def __init__(self) -> None:
        self.fails: list[Exception] = []
        self.there: dict[int, int] = {}
        self.rows: list[str] = []

    def give(self, batch: int, record: Record, rows: str) -> bool:
        if self.fails:
            raise self.fails.pop()
        self.rows.append(rows)
        return self.there.setdefault(batch, record.content["snapshot"]) is not None and self.rows.count(rows) == 1


def journal(place: Place, shelf: Shelf, name: str = "output") -> Journal:
    return Journal(place.leader, "", name, elsewhere=shelf)


def publish(journal: Journal, number: int, snapshot: int) -> bool:
    return journal.publish(f"try-{snapshot}", Batch(number, WORDS, "plan"), Record({}, content={"snapshot": snapshot}))


def test_what_was_decided_is_given_and_counted_and_nothing_appears_in_the_file_system(place: Place) -> None:
    shelf, before = Shelf(), sorted(place.root.iterdir())
    assert publish(journal(place, shelf), 0, 17)
    assert shelf.there == {0: 17}
    assert sorted(place.root.iterdir()) == before
    (shown,) = [each for each in REPORTS.all() if each.name == "output"]
    assert 2 * shown.files["created"] == sum(shown.files.values()), "it is the sum of the others"


def test_a_successor_gives_what_was_decided_before_it_takes_another_batch(place: Place) -> None:
    shelf = Shelf()
    shelf.fails = [Unknown("no answer")]
    with pytest.raises(Unknown):
        publish(journal(place, shelf), 0, 17)
    assert shelf.there == {}
    successor = journal(place, shelf)
    successor.settle()
    assert (shelf.there, successor.newest) == ({0: 17}, 0)
    assert not successor.admit(Batch(0, WORDS, "plan"))
    assert not publish(successor, 0, 18)
    assert publish(successor, 1, 19)
    assert shelf.there == {0: 17, 1: 19}


@pytest.mark.parametrize("later", [False, True])
def test_a_decision_that_cannot_be_kept_is_undone_and_the_batch_is_done_again(place: Place, later: bool) -> None:
    shelf = Shelf()
    first = journal(place, shelf)
    publish(first, 0, 16)
    shelf.fails = [Undecided("a conflict"), Unknown("no answer")] if later else [Undecided("a conflict")]
    with pytest.raises(Unknown if later else Undecided):
        publish(first, 1, 17)
    again = journal(place, shelf) if later else first
    assert again.admit(Batch(1, WORDS, "plan"))
    assert publish(again, 1, 18)
    assert shelf.there == {0: 16, 1: 18}


def test_what_is_lost_on_its_way_is_told_by_each_successor(place: Place) -> None:
    shelf = Shelf()
    shelf.fails = [OutputLost("it is gone", 1, 1)] * 2
    with pytest.raises(OutputLost):
        publish(journal(place, shelf), 0, 17)
    with pytest.raises(OutputLost):
        journal(place, shelf).settle()
    journal(place, shelf).settle()
    assert shelf.there == {0: 17}
