"""Announcement: a granted leader makes one change at a time, until the store holds what it wants to publish."""

import pytest

from leader.election.announcement import Announcement, Change
from leader.election.events import Delete, MakeDirectory, Rename
from leader.errors import InvalidName
from leader.layout.contact import ContactAddress, ContactEntry
from leader.layout.information import EndpointEntry, Record, endpoint_entries
from leader.layout.names import HISTORY, RECORD, LeaderDirectory
from tests.unit.leader.samples import A, B

DIRECTORY = LeaderDirectory(7, A)
HOME = f"{DIRECTORY.name}/{RECORD}"


WHERE = ContactAddress("10.0.0.1", 4711, "5eed" * 8)
OWN = ContactEntry(7, A, WHERE)


def granted(*entries: EndpointEntry | ContactEntry, contact: ContactAddress | None = None) -> Announcement:
    confirmation = Announcement(contact)
    confirmation.on_listed(frozenset(entries))
    confirmation.begin(DIRECTORY, "expired", "a")
    return confirmation


def published(**endpoints: str) -> Announcement:
    """Return one that has published these, and whose leader has not heard of it."""
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, endpoints)
    make_all(confirmation)
    return confirmation


def due(confirmation: Announcement) -> Change:
    change = confirmation.next_change(DIRECTORY)
    assert change is not None
    return change


def make_all(confirmation: Announcement, limit: int = 20) -> list[Change]:
    """Let every change succeed; the test's copy of the store must end as the announcement believes."""
    made = []
    while (change := confirmation.next_change(DIRECTORY)) is not None:
        confirmation.on_made(change)
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
    assert confirmation.newly_published() is None


def test_endpoints_come_first_and_take_the_place_of_those_of_an_earlier_epoch() -> None:
    old = [EndpointEntry(6, 3, 2, "jobmaster", "x"), EndpointEntry(6, 3, 2, "rest", "y")]
    confirmation = granted(*old)
    confirmation.confirm("orders", DIRECTORY, {"jobmaster": "a:1"})
    new = EndpointEntry(7, 1, 1, "jobmaster", "a:1")
    first, second, third = make_all(confirmation)
    assert first.command == Rename(f"{HOME}/{old[0].name}", f"{HOME}/{new.name}")
    assert isinstance(second.command, MakeDirectory)
    assert third.command == Delete(f"{HOME}/{old[1].name}")


def test_a_complete_publication_is_reported_once() -> None:
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, {"jobmaster": "a:1", "rest": "a:2"})
    for _ in range(2):
        assert confirmation.newly_published() is None
        confirmation.on_made(due(confirmation))
    information = confirmation.newly_published()
    assert information is not None
    assert (information.epoch, information.session_id, information.version) == (7, A, 1)
    assert dict(information.endpoints) == {"jobmaster": "a:1", "rest": "a:2"}
    assert confirmation.newly_published() is None


def test_confirming_the_same_again_changes_nothing_but_is_answered() -> None:
    confirmation = published(rest="a:1")
    before = confirmation.newly_published()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    assert make_all(confirmation) == []
    assert confirmation.newly_published() == before, "whoever confirmed waits to hear that HDFS holds it"
    assert confirmation.newly_published() is None


def test_confirming_something_else_is_the_next_version_and_the_old_one_goes_last() -> None:
    confirmation = published(rest="a:1")
    confirmation.newly_published()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:2", "ui": "a:3"})
    kinds = [type(change.command) for change in make_all(confirmation)]
    assert kinds == [MakeDirectory, MakeDirectory, Delete], "readers never find less than one whole publication"
    information = confirmation.newly_published()
    assert information is not None
    assert information.version == 2
    assert endpoint_entries(information) == confirmation._entries


@pytest.mark.parametrize("steps", range(4))
def test_readers_find_a_complete_publication_after_every_step(steps: int) -> None:
    confirmation = published(rest="a:1", ui="a:2")
    confirmation.confirm("orders", DIRECTORY, {"rest": "b:1"})
    for _ in range(steps):
        if change := confirmation.next_change(DIRECTORY):
            confirmation.on_made(change)
    found = Record.parse(entry.name for entry in confirmation._entries).published("orders", DIRECTORY)
    assert found is not None
    assert dict(found.endpoints) in ({"rest": "a:1", "ui": "a:2"}, {"rest": "b:1"})


def test_no_endpoints_are_published_too() -> None:
    information = published().newly_published()
    assert information is not None
    assert dict(information.endpoints) == {}


def test_a_refused_history_is_given_up_a_refused_endpoint_is_not() -> None:
    confirmation = granted()
    confirmation.on_refused(due(confirmation))
    assert confirmation.next_change(DIRECTORY) is None
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    endpoint = due(confirmation)
    confirmation.on_refused(endpoint)
    assert confirmation.next_change(DIRECTORY) == endpoint


def test_a_listing_overrides_the_changes_that_were_made() -> None:
    confirmation = published(rest="a:1")
    confirmation.on_listed(frozenset())
    again = MakeDirectory(f"{HOME}/{EndpointEntry(7, 1, 1, 'rest', 'a:1').name}")
    assert due(confirmation).command == again, "it is made again"


def test_a_new_leadership_has_confirmed_nothing() -> None:
    confirmation = published(rest="a:1")
    confirmation.newly_published()
    confirmation.begin(LeaderDirectory(9, A), "expired", "a")
    assert confirmation.information is None
    assert confirmation.newly_published() is None


def test_endpoints_that_cannot_be_stored_are_refused_and_change_nothing() -> None:
    confirmation = granted()
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    with pytest.raises(InvalidName, match="'rest' is too long"):
        confirmation.confirm("orders", DIRECTORY, {"rest": "x" * 300})
    assert confirmation.information is not None
    assert dict(confirmation.information.endpoints) == {"rest": "a:1"}


def test_the_contact_comes_after_the_endpoints_and_before_the_history_in_one_rename_of_its_predecessor() -> None:
    """Readers wait for the endpoints; standbys need the contact only when this leader dies."""
    old = ContactEntry(6, B, ContactAddress("10.0.0.2", 4712, "feed" * 8))
    confirmation = granted(old, EndpointEntry(6, 1, 1, "rest", "old"), contact=WHERE)
    confirmation.confirm("orders", DIRECTORY, {"rest": "a:1"})
    commands = [change.command for change in make_all(confirmation)]
    assert [type(each) for each in commands] == [Rename, Rename, MakeDirectory]
    assert commands[1] == Rename(f"{HOME}/{old.name}", f"{HOME}/{OWN.name}")
    assert f"/{HISTORY}/" in str(commands[2])


def test_the_first_contact_of_a_job_is_made_and_others_are_dropped() -> None:
    first = granted(contact=WHERE)
    assert make_all(first)[0].command == MakeDirectory(f"{HOME}/{OWN.name}")
    others = (ContactEntry(7, B, WHERE), ContactEntry(6, A, WHERE))
    confirmation = granted(OWN, *others, contact=WHERE)
    dropped = {change.command for change in make_all(confirmation) if isinstance(change.command, Delete)}
    assert dropped == {Delete(f"{HOME}/{each.name}") for each in others}


def test_without_a_contact_of_its_own_it_leaves_those_of_others_alone() -> None:
    confirmation = granted(ContactEntry(6, B, WHERE))
    assert [type(change.command) for change in make_all(confirmation)] == [MakeDirectory], "the line of history alone"


def test_a_contact_of_unknown_outcome_is_written_under_the_same_name_again() -> None:
    """It is true as soon as it can be seen, whether it stays or not: nobody else could have written it."""
    confirmation = granted(contact=WHERE)
    confirmation.confirm("orders", DIRECTORY, {})
    confirmation.on_made(due(confirmation))
    change = due(confirmation)
    confirmation.on_unknown(change)
    assert confirmation.next_change(DIRECTORY) == change
    assert confirmation.information is not None
    assert confirmation.information.version == 1
    confirmation.on_refused(change)
    assert confirmation.next_change(DIRECTORY) == change, "standbys rely on it"
