"""Pausing a job on a real directory, without ZooKeeper: whatever its leader does meanwhile."""

import pytest
from msgspec.structs import replace

from leader.errors import InvalidName, NoLeader, Paused
from leader.job.admin import ATTEMPTS, JobAdmin
from leader.job.pausing import pause, resume
from leader.layout.information import Record
from leader.layout.lease import LOOK, Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.layout.pause import Pause, present
from leader.layout.tree import create
from store.errors import StoreError
from tests.unit.leader.faulty import LOST, OK, Place
from tests.unit.leader.job.test_admin import DIRECTORY, LEASE, RECORD, led, operations
from tests.unit.leader.samples import B

__all__ = ["led", "operations"]

WHY = Pause(1_700_000_000, "ada", "a new rack")


def record(place: Place) -> Record:
    return Record.parse(place.names(RECORD))


def lease(place: Place) -> Lease:
    found = record(place).lease
    assert found is not None
    return found


def test_a_job_is_paused_by_another_name_of_its_lease(operations: JobAdmin, led: Place) -> None:
    assert pause(operations, "orders", WHY) == (DIRECTORY, LEASE, True)
    assert lease(led) == LEASE.as_paused()
    assert present(record(led)) == WHY


def test_once_is_enough_and_another_reason_replaces_the_first(operations: JobAdmin, led: Place) -> None:
    pause(operations, "orders", WHY)
    before = lease(led)
    assert pause(operations, "orders", replace(WHY, at=WHY.at + 9, by="zoe"))[2] is False
    assert (lease(led), present(record(led))) == (before, WHY)
    other = Pause(WHY.at + 10, "zoe", "the disks")
    assert pause(operations, "orders", other)[2] is False
    assert present(record(led)) == other
    assert record(led).pauses == {other.name}, "of the first one nothing stays"


def test_the_end_of_a_pause_is_found_by_its_leader(operations: JobAdmin, led: Place) -> None:
    pause(operations, "orders", WHY)
    assert resume(operations, "orders") == (DIRECTORY, LEASE.as_paused(), WHY)
    assert lease(led).successor == LOOK
    assert record(led).pauses == frozenset()
    assert resume(operations, "orders")[2] is None


def test_a_job_that_nobody_leads_can_be_paused_and_resumed(operations: JobAdmin, led: Place) -> None:
    free = replace(LEASE, sequence=9, mode=Mode.RELEASED)
    led.direct.rename(f"{RECORD}/{LEASE.name}", f"{RECORD}/{free.name}")
    pause(operations, "orders", WHY)
    assert lease(led) == free.as_paused()
    resume(operations, "orders")
    assert lease(led) == replace(free, sequence=11, marks=2)


@pytest.mark.parametrize("times", [1, ATTEMPTS - 1])
def test_a_leader_that_renews_meanwhile_does_not_prevent_it(operations: JobAdmin, led: Place, times: int) -> None:
    left = times

    def renew() -> None:
        nonlocal left
        held = lease(led)
        led.direct.rename(f"{RECORD}/{held.name}", f"{RECORD}/{replace(held, sequence=held.sequence + 1).name}")
        left -= 1
        led.faulty.before_change = renew if left > 0 else None

    led.faulty.before_change = renew
    pause(operations, "orders", WHY)
    assert lease(led).paused


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


def test_an_answer_that_is_lost_is_asked_for_again(operations: JobAdmin, led: Place) -> None:
    led.faulty.fates.extend([OK, LOST])
    pause(operations, "orders", WHY)
    assert present(record(led)) == WHY


def test_nobody_is_asked_to_hand_over_while_it_is_paused_and_requests_are_still_heard(
    operations: JobAdmin, led: Place
) -> None:
    pause(operations, "orders", WHY)
    before = lease(led)
    with pytest.raises(Paused, match=r"paused by ada since .* \(a new rack\), so nobody may take over: `ha resume"):
        operations.ask_to_hand_over("orders")
    assert lease(led) == before
    operations.ask_to_look("orders")
    assert lease(led) == replace(before, sequence=before.sequence + 1, marks=before.marks + 1)


def test_what_cannot_be_said_pauses_nothing(operations: JobAdmin, led: Place) -> None:
    with pytest.raises(InvalidName):
        pause(operations, "orders", Pause(1, "ada", "x" * 300))
    assert lease(led) == LEASE


@pytest.mark.parametrize("act", [resume, lambda admin, job: pause(admin, job, WHY)])
def test_a_job_that_does_not_exist_is_not_made(operations: JobAdmin, place: Place, act: object) -> None:
    with pytest.raises(NoLeader):
        act(operations, "orders")  # type: ignore[operator]
    create(place.direct, "payments")
    with pytest.raises((NoLeader, StoreError)):
        act(operations, "orders")  # type: ignore[operator]
