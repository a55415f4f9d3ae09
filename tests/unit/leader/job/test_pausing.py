"""Pausing a job on a real directory, without ZooKeeper: whatever its leader does meanwhile."""

import pytest
from msgspec.structs import replace

from leader.errors import InvalidName, NoLeader, Paused
from leader.job.admin import ATTEMPTS, JobAdmin
from leader.job.pausing import pause, resume
from leader.layout.information import Record
from leader.layout.lease import LOOK, Mode
from leader.layout.names import LeaderDirectory
from leader.layout.pause import Pause, present
from leader.layout.tree import create
from store.errors import StoreError
from tests.unit.leader.faulty import LOST, OK, Place
from tests.unit.leader.job.test_admin import DIRECTORY, LEASE, RECORD, lease_of, led, operations, record_of, renewing
from tests.unit.leader.samples import B

__all__ = ["led", "operations"]

WHY = Pause(1_700_000_000, "ada", "a new rack")


def test_a_job_is_paused_by_another_name_of_its_lease(operations: JobAdmin, led: Place) -> None:
    assert pause(operations, "orders", WHY) == (DIRECTORY, LEASE, True)
    assert lease_of(led) == LEASE.as_paused()
    assert present(record_of(led)) == WHY


def test_once_is_enough_and_another_reason_replaces_the_first(operations: JobAdmin, led: Place) -> None:
    pause(operations, "orders", WHY)
    before = lease_of(led)
    assert pause(operations, "orders", replace(WHY, at=WHY.at + 9, by="zoe"))[2] is False
    assert (lease_of(led), present(record_of(led))) == (before, WHY)
    other = Pause(WHY.at + 10, "zoe", "the disks")
    assert pause(operations, "orders", other)[2] is False
    assert present(record_of(led)) == other
    assert record_of(led).pauses == {other.name}, "of the first one nothing stays"


def test_the_end_of_a_pause_is_found_by_its_leader(operations: JobAdmin, led: Place) -> None:
    pause(operations, "orders", WHY)
    assert resume(operations, "orders") == (DIRECTORY, LEASE.as_paused(), WHY)
    assert lease_of(led).successor == LOOK
    assert record_of(led).pauses == frozenset()
    assert resume(operations, "orders")[2] is None


def test_a_job_that_nobody_leads_can_be_paused_and_resumed(operations: JobAdmin, led: Place) -> None:
    free = replace(LEASE, sequence=9, mode=Mode.RELEASED)
    led.direct.rename(f"{RECORD}/{LEASE.name}", f"{RECORD}/{free.name}")
    pause(operations, "orders", WHY)
    assert lease_of(led) == free.as_paused()
    resume(operations, "orders")
    assert lease_of(led) == replace(free, sequence=11, marks=2)


@pytest.mark.parametrize("times", [1, ATTEMPTS - 1])
def test_a_leader_that_renews_meanwhile_does_not_prevent_it(operations: JobAdmin, led: Place, times: int) -> None:
    led.faulty.before_change = renewing(led, times)
    pause(operations, "orders", WHY)
    assert lease_of(led).paused


def test_the_next_leaders_claim_in_between_does_not_prevent_it(operations: JobAdmin, led: Place) -> None:
    after = LeaderDirectory(2, B)

    def claim() -> None:
        led.faulty.before_change = None
        led.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{after.name}")

    led.faulty.before_change = claim
    assert pause(operations, "orders", WHY)[0] == after
    found = Record.parse(led.names(f"orders/{after.name}/record"))
    assert present(found) == WHY
    assert led.names("orders") == [after.name], "the old leader directory does not come back"


def test_a_lost_answer_is_asked_for_again_and_the_change_told_as_new(operations: JobAdmin, led: Place) -> None:
    led.faulty.fates.extend([OK, LOST])
    assert pause(operations, "orders", WHY)[2] is True
    assert present(record_of(led)) == WHY
    assert pause(operations, "orders", replace(WHY, at=WHY.at + 9))[2] is False
    led.faulty.fates.extend([LOST])
    assert resume(operations, "orders")[2] == WHY
    assert resume(operations, "orders")[2] is None


def test_while_it_is_paused_nobody_hands_over_and_requests_are_heard(operations: JobAdmin, led: Place) -> None:
    pause(operations, "orders", WHY)
    before = lease_of(led)
    with pytest.raises(Paused, match=r"paused by ada since .* \(a new rack\): it cannot be handed over before"):
        operations.ask_to_hand_over("orders")
    assert lease_of(led) == before
    operations.ask_to_look("orders")
    assert lease_of(led) == replace(before, sequence=before.sequence + 1, marks=before.marks + 1)


def test_what_cannot_be_said_pauses_nothing(operations: JobAdmin, led: Place) -> None:
    with pytest.raises(InvalidName):
        pause(operations, "orders", Pause(1, "ada", "x" * 300))
    assert lease_of(led) == LEASE


@pytest.mark.parametrize("act", [resume, lambda admin, job: pause(admin, job, WHY)])
def test_a_job_that_does_not_exist_is_not_made(operations: JobAdmin, place: Place, act: object) -> None:
    with pytest.raises(NoLeader):
        act(operations, "orders")  # type: ignore[operator]
    create(place.direct, "payments")
    with pytest.raises((NoLeader, StoreError)):
        act(operations, "orders")  # type: ignore[operator]
