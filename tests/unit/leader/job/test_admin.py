"""JobAdmin on a real directory, without ZooKeeper."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from leader.errors import InvalidName, NoLeader
from leader.job.admin import ATTEMPTS, JobAdmin
from leader.layout import tree as job
from leader.layout.information import Record
from leader.layout.lease import ANYBODY, Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.layout.tree import NOBODY
from store.errors import ConnectionLost, NotWritable, StoreError, Unknown
from tests.unit.leader.faulty import DROPPED, LOST, REFUSED, Place
from tests.unit.leader.samples import A, B

DIRECTORY = LeaderDirectory(1, A)
RECORD = f"orders/{DIRECTORY.name}/record"
HISTORY = f"orders/{DIRECTORY.name}/history"
LEASE = Lease(5, Mode.HDFS, 6000, A, "", "a")


@pytest.fixture
def operations(place: Place) -> JobAdmin:
    return JobAdmin(place.files, None, call_timeout=10.0)


@pytest.fixture
def led(place: Place) -> Place:
    job.create(place.direct, "orders")
    place.direct.rename(f"orders/{LeaderDirectory(0, NOBODY).name}", f"orders/{DIRECTORY.name}")
    (free,) = place.names(RECORD)
    place.direct.rename(f"{RECORD}/{free}", f"{RECORD}/{LEASE.name}")
    return place


def record_of(place: Place) -> Record:
    return Record.parse(place.names(RECORD))


def lease_of(place: Place) -> Lease:
    found = record_of(place).lease
    assert found is not None
    return found


def renewing(place: Place, times: int) -> Callable[[], None]:
    """A leader that renews just before the operator's rename, that many times in a row."""

    def renew() -> None:
        nonlocal times
        held = lease_of(place)
        place.direct.rename(f"{RECORD}/{held.name}", f"{RECORD}/{replace(held, sequence=held.sequence + 1).name}")
        times -= 1
        place.faulty.before_change = renew if times > 0 else None

    return renew


def test_an_unused_root_has_no_jobs(operations: JobAdmin) -> None:
    assert operations.jobs() == []


def test_jobs_are_sorted_and_foreign_names_are_left_out(operations: JobAdmin, place: Place) -> None:
    for name in ("payments", "orders"):
        job.create(place.direct, name)
    for stray in (".creating-1234", "_logs", "a b"):
        place.direct.make_directory(stray)
    place.direct.write("file", b"")
    assert operations.jobs() == ["orders", "payments"]


def test_the_history_is_read_oldest_first_and_strays_are_left_out(operations: JobAdmin, led: Place) -> None:
    later, first = f"{LeaderDirectory(10, B).name}~session-gone~b", f"{LeaderDirectory(9, A).name}~expired~a"
    for name in (later, first, "notes", f"{LeaderDirectory(3, A).name}~~a", f"{LeaderDirectory(3, A).name}~x~_any"):
        led.direct.make_directory(f"{HISTORY}/{name}")
    grants = operations.history("orders")
    assert [(grant.epoch, grant.session_id, grant.reason, grant.contender) for grant in grants if grant.session_id] == [
        (9, A, "expired", "a"),
        (10, B, "session-gone", "b"),
    ]
    assert all(grant.at_ms > 1_600_000_000_000 for grant in grants if grant.session_id)


def test_a_new_job(operations: JobAdmin, led: Place) -> None:
    assert (operations.history("orders"), led.names(HISTORY)) == ([], [])
    assert operations.lease("orders") == (DIRECTORY, lease_of(led))
    assert operations.contenders("orders") is None, "without ZooKeeper nobody knows"
    assert operations.handed_over("orders", LeaderDirectory(0, NOBODY), timeout=10.0) == (DIRECTORY, lease_of(led))
    assert operations.handed_over("orders", DIRECTORY, timeout=0.05) is None


def test_a_record_without_a_lease_is_reported_in_a_sentence(operations: JobAdmin, led: Place) -> None:
    led.direct.delete(f"{RECORD}/{LEASE.name}")
    with pytest.raises(NoLeader, match="The record of job 'orders' holds no lease"):
        operations.lease("orders")


def test_a_missing_job_raises_no_leader(operations: JobAdmin, place: Place) -> None:
    place.direct.make_root()
    for ask in (operations.history, operations.lease, operations.ask_to_hand_over):
        with pytest.raises(NoLeader, match="There is no job 'orders'"):
            ask("orders")


@pytest.mark.parametrize("name", ["", "..", "a/b", "ä"])
def test_a_bad_name(operations: JobAdmin, name: str) -> None:
    for ask in (operations.history, operations.lease, operations.ask_to_hand_over):
        with pytest.raises(InvalidName):
            ask(name)


@pytest.mark.parametrize(
    "ask",
    [
        lambda operations: operations.jobs(),
        lambda operations: operations.history("orders"),
        lambda operations: operations.lease("orders"),
        lambda operations: operations.handed_over("orders", DIRECTORY, timeout=10.0),
    ],
)
def test_a_store_that_does_not_answer_is_an_error(
    operations: JobAdmin, led: Place, ask: Callable[[JobAdmin], object]
) -> None:
    led.faulty.unreachable = True
    with pytest.raises(ConnectionLost):
        ask(operations)


@pytest.mark.parametrize("fates", [[], [LOST]], ids=["answered", "the answer is lost"])
def test_a_request_is_a_change_of_the_lease(operations: JobAdmin, led: Place, fates: list[str]) -> None:
    led.faulty.fates.extend(fates)
    assert operations.ask_to_hand_over("orders", "b") == DIRECTORY
    assert lease_of(led) == replace(LEASE, sequence=6, successor="b", marks=1)


def test_asking_twice_changes_it_once_and_another_successor_once_more(operations: JobAdmin, led: Place) -> None:
    operations.ask_to_hand_over("orders")
    operations.ask_to_hand_over("orders")
    assert lease_of(led) == replace(LEASE, sequence=6, successor=ANYBODY, marks=1)
    operations.ask_to_hand_over("orders", "b")
    assert lease_of(led) == replace(LEASE, sequence=7, successor="b", marks=2)


def test_nothing_is_changed_if_the_successor_leads_already(operations: JobAdmin, led: Place) -> None:
    """As when the command is given again, because its answer was lost."""
    for lease in (LEASE.asked_to_look(), LEASE.as_paused(), LEASE.asked_to("b"), replace(LEASE, sequence=7)):
        led.direct.rename(f"{RECORD}/{lease_of(led).name}", f"{RECORD}/{lease.name}")
        assert operations.ask_to_hand_over("orders", "a", "me") is None
        assert lease_of(led) == lease
    assert led.names(HISTORY) == []


@pytest.mark.parametrize("times", [1, 3, ATTEMPTS - 1])
def test_a_leader_that_renews_at_the_same_time(operations: JobAdmin, led: Place, times: int) -> None:
    led.faulty.before_change = renewing(led, times)
    assert operations.ask_to_hand_over("orders", "b") == DIRECTORY
    assert lease_of(led) == replace(LEASE, sequence=LEASE.sequence + times + 1, successor="b", marks=1)


def test_it_does_not_try_for_ever(operations: JobAdmin, led: Place) -> None:
    led.faulty.before_change = renewing(led, 1000)
    with pytest.raises(StoreError):
        operations.ask_to_hand_over("orders", "b")
    assert lease_of(led) == replace(LEASE, sequence=LEASE.sequence + ATTEMPTS)


def test_a_request_with_a_lost_answer_asks_no_second_leader(operations: JobAdmin, led: Place) -> None:
    """The first leader has handed over by the time at which the operator's process looks again."""
    after = LeaderDirectory(2, B)

    def hand_over() -> None:
        led.direct.rename(f"{RECORD}/{LEASE.name}", f"{RECORD}/{LEASE.asked_to('b').name}")
        led.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{after.name}")
        raise ConnectionLost("The answer went missing.")

    led.faulty.before_change = hand_over
    assert operations.ask_to_hand_over("orders", "c") == DIRECTORY
    assert led.names(f"orders/{after.name}/record") == [LEASE.asked_to("b").name], "the next leader is not asked"


def test_a_request_with_a_lost_answer_whose_leader_has_released_was_left(operations: JobAdmin, led: Place) -> None:
    def hand_over() -> None:
        free = replace(LEASE, sequence=7, mode=Mode.RELEASED, ttl_ms=0)
        led.direct.rename(f"{RECORD}/{LEASE.name}", f"{RECORD}/{free.name}")
        raise ConnectionLost("The answer went missing.")

    led.faulty.before_change = hand_over
    assert operations.ask_to_hand_over("orders") == DIRECTORY


def test_a_request_that_stays_unknown_says_what_to_do(operations: JobAdmin, led: Place) -> None:
    led.faulty.fates.extend([DROPPED] * ATTEMPTS)
    with pytest.raises(
        Unknown, match=r"not known whether the leader of job 'orders' is asked.*`ha job list`, and ask again"
    ):
        operations.ask_to_hand_over("orders", "b")
    assert not led.faulty.fates


def test_a_refused_request_raises(operations: JobAdmin, led: Place) -> None:
    led.faulty.fates.extend([REFUSED] * ATTEMPTS)
    with pytest.raises(NotWritable):
        operations.ask_to_hand_over("orders", "b")
    assert lease_of(led) == LEASE


def test_a_request_goes_to_the_leader_that_took_over_meanwhile(operations: JobAdmin, led: Place) -> None:
    after = LeaderDirectory(2, B)
    led.faulty.before_change = lambda: led.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{after.name}")
    assert operations.ask_to_hand_over("orders", "b") == after


def test_asking_without_a_leader_raises(operations: JobAdmin, led: Place) -> None:
    released = replace(LEASE, mode=Mode.RELEASED, ttl_ms=0)
    led.direct.rename(f"{RECORD}/{LEASE.name}", f"{RECORD}/{released.name}")
    with pytest.raises(NoLeader, match="Job 'orders' has no leader: its lease is free"):
        operations.ask_to_hand_over("orders")
    assert led.names(RECORD) == [released.name]


def test_a_second_one_asks_nothing_while_the_first_is_carried_out(operations: JobAdmin, led: Place) -> None:
    released = replace(LEASE, mode=Mode.RELEASED, ttl_ms=0, successor="b")
    led.direct.rename(f"{RECORD}/{LEASE.name}", f"{RECORD}/{released.name}")
    for successor in ("b", ANYBODY):
        assert operations.ask_to_hand_over("orders", successor, "me") == DIRECTORY
    with pytest.raises(NoLeader, match="its lease is free"):
        operations.ask_to_hand_over("orders", "c")
    assert led.names(RECORD) == [released.name]
    assert led.names(HISTORY) == []


@pytest.mark.parametrize("successor", ["", "a b", "_x", "a/b", "x" * 65])
def test_an_invalid_successor_is_refused(operations: JobAdmin, led: Place, successor: str) -> None:
    with pytest.raises(InvalidName, match="a contender"):
        operations.ask_to_hand_over("orders", successor)
    assert lease_of(led) == LEASE


def test_a_claim_without_a_lease_is_not_yet_a_leadership(operations: JobAdmin, led: Place) -> None:
    led.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{LeaderDirectory(2, B).name}")
    assert operations.handed_over("orders", DIRECTORY, timeout=0.05) is None
