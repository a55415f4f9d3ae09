"""JobStatus: one name, changed by a fenced rename from the expected state."""

from itertools import pairwise, product

import pytest

from leader.errors import Fenced
from leader.job.fenced_directory import ATTEMPTS
from leader.job.status import JobStatus, Status, StatusEntry, pick
from leader.layout.names import MAX_SEQUENCE
from store.errors import Conflict, Invalid, NotWritable, StoreError, Unknown
from tests.unit.leader.faulty import DROPPED, LATE, LOST, OK, REFUSED, Place, in_threads
from tests.unit.leader.owned import HOME, SECOND, Owned

ENDS = {Status.FINISHED, Status.CANCELED, Status.FAILED}


def said(owned: Owned) -> list[str]:
    return [name for name in owned.names() if name.startswith("status=")]


@pytest.fixture
def status(hurt: Owned) -> JobStatus:
    return JobStatus(hurt.own)


def test_states_have_the_names_of_flinks_job_status() -> None:
    assert {each.value for each in Status} == {
        *("INITIALIZING", "CREATED", "RUNNING", "FAILING", "FAILED", "CANCELLING", "CANCELED", "FINISHED"),
        *("RESTARTING", "SUSPENDED", "RECONCILING"),
    }


def test_states_end_a_job_for_good_or_only_for_its_leader() -> None:
    assert {each for each in Status if each.globally_terminal} == ENDS
    assert {each for each in Status if each.terminal} == ENDS | {Status.SUSPENDED}
    assert Status.SUSPENDED.allows(Status.RUNNING), "under the next leader"
    assert all(each.allows(Status.SUSPENDED) for each in set(Status) - ENDS)


def test_an_entry_is_read_back() -> None:
    for entry in (
        StatusEntry(Status.RUNNING),
        StatusEntry(Status.FAILING, sequence=12),
        StatusEntry(Status.FINISHED, "cleaning", "0123abcd", 7),
        StatusEntry(Status.FINISHED, "cleaned", "0123abcd"),
    ):
        assert StatusEntry.parse(entry.name) == entry


@pytest.mark.parametrize(
    "name", ["status=DANCING", "status=RUNNING~1", "status=RUNNING~02", "status=RUNNING~cleaning-x", "RUNNING", ""]
)
def test_other_names_are_no_state(name: str) -> None:
    assert StatusEntry.parse(name) is None


def test_the_highest_number_counts_then_the_furthest_state() -> None:
    names = ["status=RUNNING~3", "status=FINISHED~2", "status=CANCELLING~3", "status=DANCING~9"]
    for each in (names, names[::-1]):
        assert pick(each) == StatusEntry(Status.CANCELLING, sequence=3)


def test_a_job_goes_from_state_to_state_by_compare_and_set(owned: Owned) -> None:
    status = JobStatus(owned.own)
    assert status.read() is Status.CREATED
    way = [Status.CREATED, Status.RUNNING, Status.RESTARTING, Status.RUNNING, Status.FINISHED]
    for number, (old, new) in enumerate(pairwise(way), start=2):
        status.change(old, new)
        assert status.read() is new
        assert said(owned) == [f"status={new.value}~{number}"]
    with pytest.raises(Conflict, match="'orders' is FINISHED now"):
        status.change(Status.RUNNING, Status.CANCELLING)
    with pytest.raises(Invalid, match="A job cannot change from FINISHED to RUNNING"):
        status.change(Status.FINISHED, Status.RUNNING)
    assert said(owned) == ["status=FINISHED~5"]


def test_the_state_follows_the_job_and_a_fenced_leader_cannot_read_or_change_it(owned: Owned) -> None:
    JobStatus(owned.own).change(Status.CREATED, Status.RUNNING)
    successor = JobStatus(owned.claim())
    assert successor.read() is Status.RUNNING
    with pytest.raises(Fenced, match="Epoch 1 of job 'orders' is over"):
        JobStatus(owned.own).read()
    with pytest.raises(Fenced):
        JobStatus(owned.own).change(Status.RUNNING, Status.FINISHED)
    assert successor.read() is Status.RUNNING


def test_only_a_job_that_has_ended_for_good_begins_again(owned: Owned) -> None:
    status = JobStatus(owned.own)
    with pytest.raises(Invalid, match="has not ended"):
        status.begin_again(Status.CREATED)
    status.change(Status.CREATED, Status.CANCELLING)
    status.change(Status.CANCELLING, Status.CANCELED)
    with pytest.raises(Conflict):
        status.begin_again(Status.FINISHED)
    status.begin_again(Status.CANCELED)
    assert status.read() is Status.CREATED


def test_of_two_concurrent_changes_one_succeeds(hurt: Owned) -> None:
    hands = [JobStatus(hurt.own) for _ in range(4)]
    ended = in_threads(4, lambda number: hands[number].change(Status.CREATED, Status.RUNNING))
    assert sorted(type(each).__name__ for each in ended) == ["Conflict", "Conflict", "Conflict", "NoneType"]
    assert said(hurt) == ["status=RUNNING~2"]


def test_an_unacknowledged_state_is_written_once_more(hurt: Owned, status: JobStatus) -> None:
    """A NameNode lists what its journal may never have; a rename that needs it is acknowledged only if it is there."""
    for number in (2, 3, 4):
        status.change(Status.CREATED, Status.CREATED)
        assert said(hurt) == [f"status=CREATED~{number}"]


@pytest.mark.parametrize(
    ("fates", "entry"),
    [
        ([LOST], "status=RUNNING~3"),
        ([DROPPED, DROPPED, OK], "status=RUNNING~2"),
        ([LOST, LOST, LOST], "status=RUNNING~4"),
        ([DROPPED, LOST, OK], "status=RUNNING~3"),
    ],
)
def test_an_unknown_outcome_is_resolved_by_an_acknowledged_rename(
    hurt: Owned, place: Place, status: JobStatus, fates: list[str], entry: str
) -> None:
    place.faulty.fates.extend(fates)
    status.change(Status.CREATED, Status.RUNNING)
    assert said(hurt) == [entry]


@pytest.mark.parametrize(
    ("fates", "error", "left"), [([REFUSED], NotWritable, 0), ([DROPPED] * 2 * ATTEMPTS, Unknown, ATTEMPTS)]
)
def test_it_fails(place: Place, status: JobStatus, fates: list[str], error: type[StoreError], left: int) -> None:
    place.faulty.fates.extend(fates)
    with pytest.raises(error):
        status.change(Status.CREATED, Status.RUNNING)
    assert len(place.faulty.fates) == left


def test_a_late_change_is_refused_in_the_same_state_again(hurt: Owned, place: Place, status: JobStatus) -> None:
    status.change(Status.CREATED, Status.RUNNING)
    place.faulty.fates.extend([LATE] * ATTEMPTS)
    with pytest.raises(Unknown):
        status.change(Status.RUNNING, Status.FAILING)
    status.change(Status.RUNNING, Status.RESTARTING)
    status.change(Status.RESTARTING, Status.RUNNING)
    place.faulty.catch_up()
    assert said(hurt) == ["status=RUNNING~4"]


def test_a_leader_fenced_between_looking_and_changing(hurt: Owned, place: Place, status: JobStatus) -> None:
    place.faulty.before_change = lambda: place.direct.rename(HOME, f"orders/{SECOND.name}")
    with pytest.raises(Fenced):
        status.change(Status.CREATED, Status.RUNNING)
    assert "status=CREATED" in hurt.names(directory=SECOND)


def test_an_unreadable_state_is_an_error(place: Place, status: JobStatus) -> None:
    place.faulty.unreachable = True
    with pytest.raises(StoreError):
        status.read()


def test_a_job_whose_state_was_deleted_counts_as_created_and_can_go_on(hurt: Owned, status: JobStatus) -> None:
    hurt.direct.delete(f"{HOME}/status=CREATED")
    assert status.read() is Status.CREATED
    status.change(Status.CREATED, Status.RUNNING)
    assert said(hurt) == ["status=RUNNING~2"]
    with pytest.raises(Conflict):
        status.change(Status.CREATED, Status.RUNNING)


def test_the_greatest_number_cannot_be_followed(hurt: Owned, status: JobStatus) -> None:
    hurt.direct.rename(f"{HOME}/status=CREATED", f"{HOME}/status=CREATED~{MAX_SEQUENCE}")
    with pytest.raises(Invalid, match="rename it by hand"):
        status.change(Status.CREATED, Status.RUNNING)


LEGAL = """
    INITIALIZING: CREATED FAILING CANCELLING SUSPENDED FAILED
    CREATED: RECONCILING RUNNING FAILING CANCELLING SUSPENDED
    RECONCILING: RUNNING RESTARTING FINISHED FAILING CANCELLING SUSPENDED
    RUNNING: RECONCILING RESTARTING FINISHED FAILING CANCELLING SUSPENDED
    RESTARTING: CREATED RECONCILING RUNNING FAILING CANCELLING SUSPENDED
    SUSPENDED: CREATED RECONCILING RUNNING RESTARTING FAILING CANCELLING
    FAILING: FAILED RESTARTING CANCELLING SUSPENDED
    CANCELLING: CANCELED FAILING SUSPENDED
    FAILED:
    CANCELED:
    FINISHED:
"""
AFTER = {
    Status(old): {Status(old), *map(Status, new.split())}
    for old, new in (line.split(":") for line in LEGAL.strip().splitlines())
    for old in [old.strip()]
}


@pytest.mark.parametrize(("old", "new"), list(product(Status, Status)), ids=lambda each: each.value)
def test_a_transition_is_made_or_refused_at_the_store(hurt: Owned, status: JobStatus, old: Status, new: Status) -> None:
    present = status.replace(status.entry(), StatusEntry(old))
    if new in AFTER[old]:
        status.change(old, new)
        assert status.read() is new
        assert status.entry().sequence == present.sequence + 1
        with pytest.raises(Conflict):
            status.replace(present, StatusEntry(old))
        return
    with pytest.raises(Invalid, match=f"cannot change from {old.value} to {new.value}"):
        status.change(old, new)
    assert said(hurt) == [present.name], "nothing was sent"
