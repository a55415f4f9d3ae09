"""What a granted leader writes: one change at a time, until the store says what it wants said."""

import pytest

from leader.confirmation import Change, Confirmation
from leader.errors import InvalidName
from leader.events import Delete, MakeDirectory, Rename
from leader.information import EndpointEntry, Record, endpoint_entries
from leader.names import HISTORY, RECORD, LeaderDirectory
from tests.leader.samples import A

DIRECTORY = LeaderDirectory(7, A)
HOME = f"{DIRECTORY.name}/{RECORD}"


def granted(*entries: EndpointEntry) -> Confirmation:
    confirmation = Confirmation()
    confirmation.see(frozenset(entries))
    confirmation.begin(DIRECTORY, "expired", "a")
    return confirmation


def make_all(confirmation: Confirmation, limit: int = 20) -> list[Change]:
    """Have every change succeed; the test's copy of the store must end as the confirmation believes."""
    made = []
    while (change := confirmation.next(DIRECTORY)) is not None:
        confirmation.made(change)
        made.append(change)
        assert len(made) <= limit
    return made


def test_before_anything_is_confirmed_only_the_history_is_written() -> None:
    confirmation = granted(EndpointEntry(6, 1, 1, "rest", "old"))
    made = make_all(confirmation)
    assert [change.command for change in made] == [
        MakeDirectory(f"{DIRECTORY.name}/{HISTORY}/{DIRECTORY.name}~expired~a")
    ]
    assert confirmation.information is None
    assert confirmation.announce() is None


def test_endpoints_come_first_and_take_the_place_of_those_of_an_earlier_epoch() -> None:
    old = [EndpointEntry(6, 3, 2, "jobmaster", "x"), EndpointEntry(6, 3, 2, "rest", "y")]
    confirmation = granted(*old)
    confirmation.confirm("orders", DIRECTORY, {"jobmaster": "a:1"})
    new = EndpointEntry(7, 1, 1, "jobmaster", "a:1")
    first, second, third = make_all(confirmation)
    assert first.command == Rename(f"{HOME}/{old[0].name}", f"{HOME}/{new.name}")
    assert isinstance(second.command, MakeDirectory)
    assert third.command == Delete(f"{HOME}/{old[1].name}")


def test_it_announces_once_and_only_what_is_complete() -> None:
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, {"jobmaster": "a:1", "rest": "a:2"})
    for _ in range(2):
        assert confirmation.announce() is None
        change = confirmation.next(DIRECTORY)
        assert change is not None
        confirmation.made(change)
    information = confirmation.announce()
    assert information is not None
    assert (information.epoch, information.session_id, information.version) == (7, A, 1)
    assert dict(information.endpoints) == {"jobmaster": "a:1", "rest": "a:2"}
    assert confirmation.announce() is None


def test_confirming_the_same_again_changes_nothing_but_is_answered() -> None:
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    make_all(confirmation)
    before = confirmation.announce()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    assert make_all(confirmation) == []
    assert confirmation.announce() == before, "whoever confirmed waits to hear that HDFS holds it"
    assert confirmation.announce() is None


def test_confirming_something_else_is_the_next_version_and_the_old_one_goes_last() -> None:
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    make_all(confirmation)
    confirmation.announce()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:2", "ui": "a:3"})
    kinds = [type(change.command) for change in make_all(confirmation)]
    assert kinds == [MakeDirectory, MakeDirectory, Delete], "readers never find less than one whole publication"
    information = confirmation.announce()
    assert information is not None
    assert information.version == 2
    assert endpoint_entries(information) == confirmation._entries


@pytest.mark.parametrize("steps", range(4))
def test_readers_find_a_whole_publication_after_every_step(steps: int) -> None:
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1", "ui": "a:2"})
    make_all(confirmation)
    confirmation.confirm("orders", DIRECTORY, {"rest": "b:1"})
    for _ in range(steps):
        if change := confirmation.next(DIRECTORY):
            confirmation.made(change)
    found = Record(None, confirmation._entries).published("orders", DIRECTORY)
    assert found is not None
    assert dict(found.endpoints) in ({"rest": "a:1", "ui": "a:2"}, {"rest": "b:1"})


def test_no_endpoints_are_published_too() -> None:
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, {})
    make_all(confirmation)
    information = confirmation.announce()
    assert information is not None
    assert dict(information.endpoints) == {}


def test_a_refused_history_is_given_up_a_refused_endpoint_is_not() -> None:
    confirmation = granted()
    history = confirmation.next(DIRECTORY)
    assert history is not None
    confirmation.refused(history)
    assert confirmation.next(DIRECTORY) is None
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    endpoint = confirmation.next(DIRECTORY)
    assert endpoint is not None
    confirmation.refused(endpoint)
    assert confirmation.next(DIRECTORY) == endpoint


def test_what_the_store_says_counts_more_than_what_was_made() -> None:
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    make_all(confirmation)
    confirmation.see(frozenset())
    change = confirmation.next(DIRECTORY)
    assert change is not None
    assert change.command == MakeDirectory(f"{HOME}/{EndpointEntry(7, 1, 1, 'rest', 'a:1').name}"), "it is made again"


def test_a_new_leadership_has_confirmed_nothing() -> None:
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    make_all(confirmation)
    confirmation.announce()
    confirmation.begin(LeaderDirectory(9, A), "expired", "a")
    assert confirmation.information is None
    assert confirmation.announce() is None


def test_what_cannot_be_stored_is_refused_and_leaves_what_was_confirmed() -> None:
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    with pytest.raises(InvalidName, match="'rest' is too long"):
        confirmation.confirm("orders", DIRECTORY, {"rest": "x" * 300})
    assert confirmation.information is not None
    assert dict(confirmation.information.endpoints) == {"rest": "a:1"}
