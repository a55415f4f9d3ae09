"""What an operator does from outside, on a real directory and without ZooKeeper."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from leader import job
from leader.errors import InvalidName, NoLeader
from leader.job import NOBODY
from leader.lease import ANYBODY, Lease, Mode
from leader.names import LeaderDirectory
from leader.operations import ATTEMPTS, Operations
from store.errors import ConnectionLost, NotWritable, StoreError
from tests.leader.faulty import LOST, REFUSED, Place
from tests.leader.samples import A, B

DIRECTORY = LeaderDirectory(1, A)
RECORD = f"orders/{DIRECTORY.name}/record"
HISTORY = f"orders/{DIRECTORY.name}/history"
LEASE = Lease(5, Mode.HDFS, 6000, A, "", "a")


@pytest.fixture
def operations(place: Place) -> Operations:
    return Operations(place.files, None, call_timeout=10.0)


@pytest.fixture
def led(place: Place) -> Place:
    """A job that `a` leads."""
    job.create(place.direct, "orders")
    place.direct.rename(f"orders/{LeaderDirectory(0, NOBODY).name}", f"orders/{DIRECTORY.name}")
    (free,) = place.names(RECORD)
    place.direct.rename(f"{RECORD}/{free}", f"{RECORD}/{LEASE.name}")
    return place


def lease_of(place: Place) -> Lease:
    (name,) = place.names(RECORD)
    found = Lease.parse(name)
    assert found is not None
    return found


def renewing(place: Place, times: int) -> Callable[[], None]:
    """What the leader does just before the operator's rename: it renews, that many times in a row."""

    def renew() -> None:
        nonlocal times
        held = lease_of(place)
        place.direct.rename(f"{RECORD}/{held.name}", f"{RECORD}/{replace(held, sequence=held.sequence + 1).name}")
        times -= 1
        place.faulty.before_change = renew if times > 0 else None

    return renew


# --- looking


def test_no_jobs_where_nobody_has_been(operations: Operations) -> None:
    assert operations.jobs() == []


def test_jobs_are_sorted_and_what_is_none_is_left_out(operations: Operations, place: Place) -> None:
    for name in ("payments", "orders"):
        job.create(place.direct, name)
    for stray in (".creating-1234", "_logs", "a b"):
        place.direct.make_directory(stray)
    place.direct.write("file", b"")
    assert operations.jobs() == ["orders", "payments"]


def test_the_history_is_read_oldest_first_and_strays_are_left_out(operations: Operations, led: Place) -> None:
    later, first = f"{LeaderDirectory(10, B).name}~session-gone~b", f"{LeaderDirectory(9, A).name}~expired~a"
    for name in (later, first, "notes", f"{LeaderDirectory(3, A).name}~~a", f"{LeaderDirectory(3, A).name}~x~_any"):
        led.direct.make_directory(f"{HISTORY}/{name}")
    grants = operations.history("orders")
    assert [(grant.epoch, grant.session_id, grant.reason, grant.contender) for grant in grants] == [
        (9, A, "expired", "a"),
        (10, B, "session-gone", "b"),
    ]
    assert all(grant.at_ms > 1_600_000_000_000 for grant in grants)


def test_a_new_job_has_no_history(operations: Operations, led: Place) -> None:
    assert operations.history("orders") == []
    assert led.names(HISTORY) == []


def test_the_lease(operations: Operations, led: Place) -> None:
    assert operations.lease("orders") == (DIRECTORY, lease_of(led))


def test_a_record_without_a_lease_is_a_sentence(operations: Operations, led: Place) -> None:
    led.direct.delete(f"{RECORD}/{LEASE.name}")
    with pytest.raises(NoLeader, match="The record of job 'orders' holds no lease"):
        operations.lease("orders")


def test_a_job_that_is_not_there(operations: Operations, place: Place) -> None:
    place.direct.make_root()
    for ask in (operations.history, operations.lease, operations.ask_to_hand_over):
        with pytest.raises(NoLeader, match="There is no job 'orders'"):
            ask("orders")


@pytest.mark.parametrize("name", ["", "..", "a/b", "ä"])
def test_a_bad_name(operations: Operations, name: str) -> None:
    for ask in (operations.history, operations.lease, operations.ask_to_hand_over):
        with pytest.raises(InvalidName):
            ask(name)


def test_without_zookeeper_nobody_knows_the_contenders(operations: Operations, led: Place) -> None:
    assert led.names(RECORD)
    assert operations.contenders("orders") is None


def test_a_store_that_does_not_answer_is_an_error(operations: Operations, led: Place) -> None:
    led.faulty.unreachable = True
    for ask in (operations.jobs, lambda: operations.history("orders"), lambda: operations.lease("orders")):
        with pytest.raises(StoreError):
            ask()


# --- asking to hand over


def test_a_request_is_a_change_of_the_lease(operations: Operations, led: Place) -> None:
    assert operations.ask_to_hand_over("orders", "b") == DIRECTORY
    assert lease_of(led) == replace(LEASE, sequence=6, successor="b")


def test_asking_twice_changes_it_once_and_another_successor_once_more(operations: Operations, led: Place) -> None:
    operations.ask_to_hand_over("orders")
    operations.ask_to_hand_over("orders")
    assert lease_of(led) == replace(LEASE, sequence=6, successor=ANYBODY)
    operations.ask_to_hand_over("orders", "b")
    assert lease_of(led) == replace(LEASE, sequence=7, successor="b")


@pytest.mark.parametrize("times", [1, 3, ATTEMPTS - 1])
def test_a_leader_that_renews_at_the_same_time(operations: Operations, led: Place, times: int) -> None:
    led.faulty.before_change = renewing(led, times)
    assert operations.ask_to_hand_over("orders", "b") == DIRECTORY
    assert lease_of(led) == replace(LEASE, sequence=LEASE.sequence + times + 1, successor="b")


def test_it_does_not_try_for_ever(operations: Operations, led: Place) -> None:
    led.faulty.before_change = renewing(led, 1000)
    with pytest.raises(StoreError):
        operations.ask_to_hand_over("orders", "b")
    assert lease_of(led) == replace(LEASE, sequence=LEASE.sequence + ATTEMPTS)


def test_a_request_whose_answer_was_lost_is_found(operations: Operations, led: Place) -> None:
    led.faulty.fates.append(LOST)
    assert operations.ask_to_hand_over("orders", "b") == DIRECTORY
    assert lease_of(led) == replace(LEASE, sequence=6, successor="b")


def test_a_request_that_is_refused_is_told(operations: Operations, led: Place) -> None:
    led.faulty.fates.extend([REFUSED] * ATTEMPTS)
    with pytest.raises(NotWritable):
        operations.ask_to_hand_over("orders", "b")
    assert lease_of(led) == LEASE


def test_a_leader_that_changes_meanwhile_is_the_one_that_is_asked(operations: Operations, led: Place) -> None:
    after = LeaderDirectory(2, B)
    led.faulty.before_change = lambda: led.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{after.name}")
    assert operations.ask_to_hand_over("orders", "b") == after


def test_nobody_to_ask(operations: Operations, led: Place) -> None:
    released = replace(LEASE, mode=Mode.RELEASED, ttl_ms=0)
    led.direct.rename(f"{RECORD}/{LEASE.name}", f"{RECORD}/{released.name}")
    with pytest.raises(NoLeader, match="Nobody leads job 'orders': its lease is free"):
        operations.ask_to_hand_over("orders")
    assert led.names(RECORD) == [released.name]


@pytest.mark.parametrize("successor", ["", "a b", "_x", "a/b", "x" * 65])
def test_a_successor_that_cannot_be_one(operations: Operations, led: Place, successor: str) -> None:
    with pytest.raises(InvalidName, match="a contender"):
        operations.ask_to_hand_over("orders", successor)
    assert lease_of(led) == LEASE


# --- waiting for it


def test_a_leadership_that_has_followed(operations: Operations, led: Place) -> None:
    assert operations.handed_over("orders", LeaderDirectory(0, NOBODY), timeout=10.0) == (DIRECTORY, lease_of(led))


def test_nobody_has_followed(operations: Operations, led: Place) -> None:
    assert led.names(RECORD)
    assert operations.handed_over("orders", DIRECTORY, timeout=0.05) is None


def test_a_claim_without_the_lease_is_not_a_leadership_yet(operations: Operations, led: Place) -> None:
    led.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{LeaderDirectory(2, B).name}")
    assert operations.handed_over("orders", DIRECTORY, timeout=0.05) is None


def test_waiting_for_a_store_that_does_not_answer_is_an_error(operations: Operations, led: Place) -> None:
    led.faulty.unreachable = True
    with pytest.raises(ConnectionLost):
        operations.handed_over("orders", DIRECTORY, timeout=10.0)
