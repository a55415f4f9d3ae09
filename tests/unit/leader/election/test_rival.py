"""Rival lease: when a standby may seize it, and when it must ask ZooKeeper or look again."""

import dataclasses

import pytest
from msgspec.structs import replace

from leader.election.rival import REMEMBERED_SESSIONS, RivalLease
from leader.layout.lease import ANYBODY, Attestation, Lease, Mode
from leader.timing import NEVER, Timing
from tests.unit.leader.samples import A, B, numbered

TIMING = Timing()
TOKEN = "cafe0123-1001"  # noqa: S105  # the name of a node
HDFS = Lease(5, Mode.HDFS, 6000, A, "", "a")
ZOOKEEPER = Lease(5, Mode.ZOOKEEPER, 60_000, A, TOKEN, "a")
RELEASED = Lease(5, Mode.RELEASED, 0, A, "", "a")
USABLE = Attestation("cafe0123-2002", until=1e9, usable=True)


def seen(lease: Lease, at: float = 100.0) -> RivalLease:
    rival = RivalLease("b", TIMING)
    rival.observe(lease, at)
    return rival


def test_a_lease_that_was_never_seen_is_never_seized() -> None:
    rival = RivalLease("b", TIMING)
    rival.mark_process_gone(A)
    assert (rival.expired_reason(1e9), rival.expiry(), rival.next_check(USABLE, 1e9)) == (None, NEVER, None)


def test_a_lease_expires_after_its_whole_ttl_and_the_drift_counted_from_the_first_answer() -> None:
    rival = seen(HDFS)
    rival.observe(HDFS, 103.0)
    assert rival.expiry() == pytest.approx(100 + 6 * 1.01)
    assert rival.expired_reason(rival.expiry() - 0.001) is None
    assert rival.expired_reason(rival.expiry()) == "expired"


@pytest.mark.parametrize(
    "changed",
    [
        replace(HDFS, sequence=6), replace(HDFS, owner=B), replace(HDFS, ttl_ms=7000),
        replace(HDFS.asked_to("b"), sequence=7), replace(ZOOKEEPER, sequence=6),
    ],
    ids=lambda lease: lease.name,
)  # fmt: skip
def test_any_change_begins_the_wait_anew(changed: Lease) -> None:
    rival = seen(HDFS)
    rival.observe(changed, 105.0)
    assert rival.expired_reason(107.0) is None
    assert rival.expiry() == pytest.approx(105 + changed.ttl * 1.01)


def test_what_operators_ask_of_a_dead_leader_does_not_begin_the_wait_anew() -> None:
    rival, lease = seen(HDFS), HDFS
    for second in range(1, 7):
        lease = lease.asked_to_look().asked_to_look()
        rival.observe(lease, 100.0 + second)
    assert rival.expiry() == pytest.approx(100 + 6 * 1.01)
    assert rival.lease == lease, "it is the marked one that is seized"
    rival.observe(replace(lease, sequence=lease.sequence + 1, marks=0), 106.0)
    assert rival.expiry() == pytest.approx(106 + 6 * 1.01), "its holder has renewed it"


def test_a_look_that_finds_a_mark_only_has_found_no_renewal() -> None:
    rival = seen(HDFS)
    rival.observe(replace(HDFS, sequence=6), 100.3)
    until_due = rival.poll_interval(Attestation())
    rival.observe(replace(HDFS, sequence=6).asked_to_look(), 102.0)
    assert rival.poll_interval(Attestation()) == TIMING.retry < until_due


def test_without_zookeeper_an_attested_lease_takes_the_whole_long_ttl() -> None:
    rival = seen(ZOOKEEPER)
    assert rival.next_check(Attestation(), 100.0) is None, "there is nobody to ask"
    assert rival.expired_reason(160.5) is None
    assert rival.expired_reason(160.6) == "expired"


def test_a_released_lease_is_free_at_once() -> None:
    assert seen(RELEASED).expired_reason(100.0) == "released"
    assert seen(replace(RELEASED, successor=ANYBODY)).expired_reason(100.0) == "released"
    assert seen(replace(RELEASED, successor="b")).expired_reason(100.0) == "released"


@pytest.mark.parametrize("gone", [False, True], ids=["alive", "its old leader's process is gone"])
def test_one_reserved_for_another_is_free_when_that_one_does_not_come(*, gone: bool) -> None:
    rival = seen(replace(RELEASED, successor="c"))
    if gone:
        rival.mark_process_gone(A)
    assert (rival.expired_reason(100.0), rival.expiry()) == (None, 100 + TIMING.hand_over)
    assert rival.expired_reason(100 + TIMING.hand_over) == "successor-absent"


def test_an_own_lease_of_the_past_is_held_by_nobody() -> None:
    rival = seen(HDFS)
    rival.abandon(B)
    assert rival.expired_reason(100.0) is None
    rival.abandon(A)
    assert rival.expired_reason(100.0) == "own"


def test_only_so_many_sessions_are_remembered() -> None:
    rival = seen(HDFS)
    rival.abandon(A)
    new = numbered()
    for _ in range(REMEMBERED_SESSIONS - 1):
        rival.abandon(new())
    rival.abandon(new())
    assert rival.expired_reason(100.0) == "own", "as long as it is the one that is seen"
    rival.observe(RELEASED, 100.0)
    rival.observe(HDFS, 100.0)
    assert rival.expired_reason(100.0) is None, "then it expires like anybody's"


def asked(rival: RivalLease, now: float = 100.0) -> RivalLease:
    rival.check_due = now
    assert rival.next_check(USABLE, now) == TOKEN
    return rival


def test_it_asks_about_an_attested_lease_only() -> None:
    for lease in (HDFS, RELEASED):
        rival = seen(lease)
        rival.check_due = 100.0
        assert rival.next_check(USABLE, 100.0) is None
    rival = seen(ZOOKEEPER)
    assert rival.next_check(USABLE, 100.0) is None, "not before it is due"
    asked(rival)
    assert rival.next_check(USABLE, 100.0) is None, "one question at a time"


def test_a_session_that_is_gone_frees_its_lease() -> None:
    rival = asked(seen(ZOOKEEPER))
    rival.on_checked(TOKEN, present=False, now=100.1)
    assert rival.expired_reason(100.1) == "session-gone"
    assert rival.next_check(USABLE, 200.0) is None, "it never comes back: nothing to ask"


def test_a_lease_that_was_switched_meanwhile_is_not_freed_by_it() -> None:
    rival = asked(seen(ZOOKEEPER))
    rival.observe(replace(HDFS, sequence=6), 100.05)
    rival.on_checked(TOKEN, present=False, now=100.1)
    assert rival.expired_reason(100.1) is None
    rival.observe(replace(ZOOKEEPER, sequence=7, attestation="cafe0123-1003"), 101.0)
    assert rival.expired_reason(101.0) is None, "another session attests it"


@pytest.mark.parametrize(("present", "again"), [(True, None), (None, TOKEN)], ids=["lives", "nobody knows"])
def test_a_session_that_is_not_known_to_be_gone_frees_nothing(present: bool | None, again: str | None) -> None:
    rival = asked(seen(ZOOKEEPER))
    rival.on_checked(TOKEN, present=present, now=100.1)
    assert rival.expired_reason(100.1) is None
    assert rival.next_check(USABLE, 100.1) is None
    assert rival.next_check(USABLE, 100.1 + TIMING.poll) == again


def test_the_answer_to_another_question_is_ignored() -> None:
    rival = asked(seen(ZOOKEEPER))
    rival.on_checked("cafe0123-1003", present=False, now=100.1)
    assert rival.expired_reason(100.1) is None
    rival.on_checked(TOKEN, present=False, now=100.2)
    assert rival.expired_reason(100.2) == "session-gone"


def test_a_change_during_a_check_has_it_asked_again() -> None:
    """A watch event may overtake the answer to the read that has set the watch."""
    rival = asked(seen(ZOOKEEPER))
    rival.recheck(100.05)
    assert rival.next_check(USABLE, 100.06) is None, "one question at a time"
    rival.on_checked(TOKEN, present=True, now=100.1)
    assert rival.poll_interval(USABLE) == TIMING.poll
    assert rival.next_check(USABLE, 100.1) == TOKEN
    rival.on_checked(TOKEN, present=True, now=100.2)
    assert rival.next_check(USABLE, 1e9) is None


def test_a_present_node_is_asked_about_again_only_after_a_change() -> None:
    rival = asked(seen(ZOOKEEPER))
    rival.on_checked(TOKEN, present=True, now=100.1)
    assert rival.next_check(USABLE, 500.0) is None
    rival.recheck(200.0)
    assert rival.next_check(USABLE, 200.0) == TOKEN


def test_the_lease_is_read_often_unless_zookeeper_watches_it() -> None:
    rival = asked(seen(ZOOKEEPER))
    assert rival.poll_interval(USABLE) == TIMING.poll
    rival.on_checked(TOKEN, present=True, now=100.1)
    assert rival.poll_interval(USABLE) == TIMING.long_ttl / 3
    assert rival.poll_interval(Attestation()) == TIMING.poll
    rival.recheck(101.0)
    assert rival.poll_interval(USABLE) == TIMING.poll
    assert seen(HDFS).poll_interval(USABLE) == TIMING.poll


def test_a_process_that_is_gone_frees_the_lease_that_it_holds_and_no_other() -> None:
    rival = seen(ZOOKEEPER)
    assert rival.expired_reason(100.1) is None
    rival.mark_process_gone(A)
    assert rival.expired_reason(100.1) == "process-gone"
    for renewed in (replace(ZOOKEEPER, sequence=6), replace(HDFS, sequence=7)):
        rival.observe(renewed, 100.2)
        assert rival.expired_reason(100.2) == "process-gone", "a renewal or a switch that was executed late"
    for other in (replace(HDFS, sequence=8, owner=B), replace(ZOOKEEPER, sequence=8, owner=B)):
        rival.observe(other, 100.3)
        assert rival.expired_reason(100.3) is None


def test_a_lease_released_for_a_successor_is_not_taken_back_by_its_own_contender() -> None:
    rival = RivalLease("a", TIMING)
    rival.abandon(A)
    rival.observe(replace(RELEASED, successor="b"), at=100.0)
    assert rival.expired_reason(100.0) is None
    assert rival.expired_reason(100.0 + TIMING.hand_over) == "successor-absent"


def test_the_renewals_of_one_holder_say_nothing_of_the_next() -> None:
    rival = seen(HDFS, 100.0)
    rival.observe(replace(HDFS, sequence=6), 100.5)
    assert rival.poll_interval(USABLE) > TIMING.poll
    rival.observe(replace(HDFS, sequence=7, owner=B), 102.4)
    assert rival.poll_interval(USABLE) == TIMING.poll


def test_a_named_successor_is_waited_for_until_it_has_surely_looked() -> None:
    """Without ZooKeeper it looks when the next renewal would be due, however short its precedence is set."""
    timing = dataclasses.replace(TIMING, hand_over=0.1)
    rival = RivalLease("b", timing)
    rival.observe(replace(RELEASED, successor="c"), 100.0)
    assert rival.expired_reason(100.0 + timing.renewal) is None
    assert rival.expired_reason(100.0 + timing.renewal + timing.retry) == "successor-absent"
