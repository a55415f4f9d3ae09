"""Barring contenders and draining hosts on a real directory, without ZooKeeper: whatever the leader does meanwhile."""

import pytest
from msgspec.structs import replace

from leader.errors import InvalidName, NoLeader
from leader.job.admin import JobAdmin
from leader.job.barring import bar, bar_if_drained, drain, drained, unbar, undrain
from leader.layout.bar import Bar, bars
from leader.layout.lease import LOOK, Mode
from leader.layout.tree import create
from store.errors import StoreError
from tests.unit.leader.faulty import LOST, Place
from tests.unit.leader.job.test_admin import LEASE, RECORD, lease_of, led, operations, record_of, renewing

__all__ = ["led", "operations"]

BAR = Bar("b", 2_000_000_000, "ada", "new disks")


def test_a_bar_is_written_and_what_was_decided_before_is_refused(operations: JobAdmin, led: Place) -> None:
    bar(operations, "orders", BAR)
    assert bars(record_of(led)) == {"b": BAR}
    assert (lease_of(led).sequence, lease_of(led).successor) == (LEASE.sequence + 1, LOOK)


def test_another_bar_of_the_contender_replaces_the_first_and_others_stay(operations: JobAdmin, led: Place) -> None:
    other, sooner = Bar("c", 2_000_000_000), replace(BAR, until=BAR.until - 9, by="zoe")
    for each in (BAR, other, sooner, sooner):
        bar(operations, "orders", each)
    assert bars(record_of(led)) == {"b": sooner, "c": other}


def test_a_bar_is_taken_away(operations: JobAdmin, led: Place) -> None:
    bar(operations, "orders", BAR)
    bar(operations, "orders", Bar("c", 2_000_000_000))
    assert unbar(operations, "orders", "b")
    assert set(bars(record_of(led))) == {"c"}
    assert not unbar(operations, "orders", "b")


def test_a_paused_job_stays_paused(operations: JobAdmin, led: Place) -> None:
    led.direct.rename(f"{RECORD}/{LEASE.name}", f"{RECORD}/{LEASE.as_paused().name}")
    bar(operations, "orders", BAR)
    assert lease_of(led).paused


def test_nothing_but_the_entry_changes_where_nobody_leads(operations: JobAdmin, led: Place) -> None:
    free = replace(LEASE, sequence=9, mode=Mode.RELEASED)
    led.direct.rename(f"{RECORD}/{LEASE.name}", f"{RECORD}/{free.name}")
    bar(operations, "orders", BAR)
    assert (lease_of(led), bars(record_of(led))) == (free, {"b": BAR})


def test_it_is_tried_again_if_the_leader_renews_meanwhile(operations: JobAdmin, led: Place) -> None:
    led.faulty.before_change = renewing(led, 1)
    bar(operations, "orders", BAR)
    assert lease_of(led) == replace(LEASE, sequence=LEASE.sequence + 1).asked_to_look()


@pytest.mark.parametrize("lost", [0, 1])
def test_an_answer_that_is_lost_is_asked_for_again(operations: JobAdmin, led: Place, lost: int) -> None:
    led.faulty.fates.extend(["ok"] * lost + [LOST])
    bar(operations, "orders", BAR)
    assert bars(record_of(led)) == {"b": BAR}
    assert lease_of(led).successor == LOOK


def test_bad_input_changes_nothing(operations: JobAdmin, led: Place) -> None:
    with pytest.raises(InvalidName):
        bar(operations, "orders", replace(BAR, contender="no name"))
    with pytest.raises(NoLeader):
        bar(operations, "payments", BAR)
    assert led.names(RECORD) == [LEASE.name]


def test_a_store_that_does_not_answer_is_told(operations: JobAdmin, led: Place) -> None:
    led.faulty.unreachable = True
    with pytest.raises(StoreError):
        bar(operations, "orders", BAR)


def test_drained_hosts_stand_beside_the_jobs_and_are_none(operations: JobAdmin, led: Place) -> None:
    assert operations.call("drained", drained) == {}
    operations.call("drain", lambda files: drain(files, BAR))
    operations.call("drain", lambda files: drain(files, Bar("c", 9)))
    later = replace(BAR, until=BAR.until + 9)
    operations.call("drain", lambda files: drain(files, later))
    assert operations.call("drained", drained) == {"b": later, "c": Bar("c", 9)}
    create(led.direct, "payments")
    assert operations.jobs() == ["orders", "payments"]
    assert operations.call("undrain", lambda files: undrain(files, "b"))
    assert operations.call("drained", drained) == {"c": Bar("c", 9)}
    assert not operations.call("undrain", lambda files: undrain(files, "b"))


def test_a_shorter_drain_replaces_a_longer_one(operations: JobAdmin, led: Place) -> None:
    del led
    for each in (BAR, replace(BAR, until=BAR.until - 100)):
        operations.call("drain", lambda files, wanted=each: drain(files, wanted))  # type: ignore[misc]
    assert operations.call("drained", drained)["b"].until == BAR.until - 100


@pytest.mark.parametrize(("wall", "barred"), [(BAR.until - 0.1, True), (BAR.until, False)])
def test_one_on_a_drained_host_bars_itself(operations: JobAdmin, led: Place, wall: float, *, barred: bool) -> None:
    operations.call("drain", lambda files: drain(files, BAR))
    assert bar_if_drained(led.direct, "orders", "c", wall) is None
    assert bar_if_drained(led.direct, "payments", "b", wall) == (BAR if barred else None)
    assert bar_if_drained(led.direct, "orders", "b", wall) == (BAR if barred else None)
    assert bars(record_of(led)) == ({"b": BAR} if barred else {})
    assert lease_of(led) == LEASE, "it has decided nothing yet"


def test_nothing_was_drained_where_there_is_no_such_folder(operations: JobAdmin, led: Place) -> None:
    del led
    assert not operations.call("undrain", lambda files: undrain(files, "b"))
