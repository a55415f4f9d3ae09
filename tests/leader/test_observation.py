"""When a standby may seize somebody else's lease, and when it has to ask or to look again."""

import dataclasses

import pytest
from msgspec.structs import replace

from leader.lease import ANYBODY, Attestation, Lease, Mode
from leader.observation import NEVER, REMEMBERED_SESSIONS, Observation
from leader.timing import Timing
from tests.leader.samples import A, B, numbered

TIMING = Timing()
TOKEN = "cafe0123-1001"  # noqa: S105  # the name of a node
HDFS = Lease(5, Mode.HDFS, 6000, A, "", "a")
ZOOKEEPER = Lease(5, Mode.ZOOKEEPER, 60_000, A, TOKEN, "a")
RELEASED = Lease(5, Mode.RELEASED, 0, A, "", "a")
USABLE = Attestation("cafe0123-2002", until=1e9, usable=True)


def seen(lease: Lease, at: float = 100.0) -> Observation:
    observation = Observation("b", TIMING)
    observation.see(lease, at)
    return observation


def test_what_was_never_seen_is_never_seized() -> None:
    observation = Observation("b", TIMING)
    assert observation.seizable(1e9) is None
    assert observation.expiry() == NEVER
    assert observation.check(USABLE, 1e9) is None


def test_a_lease_expires_after_its_whole_ttl_and_the_drift_counted_from_the_first_answer() -> None:
    observation = seen(HDFS)
    observation.see(HDFS, 103.0)
    assert observation.expiry() == pytest.approx(100 + 6 * 1.01)
    assert observation.seizable(observation.expiry() - 0.001) is None
    assert observation.seizable(observation.expiry()) == "expired"


@pytest.mark.parametrize(
    "changed",
    [
        replace(HDFS, sequence=6),
        replace(HDFS, owner=B),
        replace(HDFS, ttl_ms=7000),
        HDFS.asked_to("b"),
        replace(ZOOKEEPER, sequence=6),
    ],
    ids=lambda lease: lease.name,
)
def test_any_change_begins_the_wait_anew(changed: Lease) -> None:
    observation = seen(HDFS)
    observation.see(changed, 105.0)
    assert observation.seizable(107.0) is None
    assert observation.expiry() == pytest.approx(105 + changed.ttl * 1.01)


def test_without_zookeeper_an_attested_lease_takes_the_whole_long_ttl() -> None:
    observation = seen(ZOOKEEPER)
    assert observation.check(Attestation(), 100.0) is None, "there is nobody to ask"
    assert observation.seizable(160.5) is None
    assert observation.seizable(160.6) == "expired"


def test_a_released_lease_is_free_at_once() -> None:
    assert seen(RELEASED).seizable(100.0) == "released"
    assert seen(replace(RELEASED, successor=ANYBODY)).seizable(100.0) == "released"
    assert seen(replace(RELEASED, successor="b")).seizable(100.0) == "released"


def test_one_reserved_for_another_is_free_when_that_one_does_not_come() -> None:
    observation = seen(replace(RELEASED, successor="c"))
    assert observation.seizable(100.0) is None
    assert observation.expiry() == 100 + TIMING.hand_over
    assert observation.seizable(100 + TIMING.hand_over) == "successor-absent"


def test_an_own_lease_of_the_past_is_held_by_nobody() -> None:
    observation = seen(HDFS)
    observation.disown(B)
    assert observation.seizable(100.0) is None
    observation.disown(A)
    assert observation.seizable(100.0) == "own"


def test_only_so_many_sessions_are_remembered() -> None:
    observation = seen(HDFS)
    observation.disown(A)
    new = numbered()
    for _ in range(REMEMBERED_SESSIONS - 1):
        observation.disown(new())
    observation.disown(new())
    assert observation.seizable(100.0) == "own", "as long as it is the one that is seen"
    observation.see(RELEASED, 100.0)
    observation.see(HDFS, 100.0)
    assert observation.seizable(100.0) is None, "then it expires like anybody's"


# --- ZooKeeper's word


def asked(observation: Observation, now: float = 100.0) -> Observation:
    observation.check_due = now
    assert observation.check(USABLE, now) == TOKEN
    return observation


def test_it_asks_about_an_attested_lease_only() -> None:
    for lease in (HDFS, RELEASED):
        observation = seen(lease)
        observation.check_due = 100.0
        assert observation.check(USABLE, 100.0) is None
    observation = seen(ZOOKEEPER)
    assert observation.check(USABLE, 100.0) is None, "not before it is due"
    asked(observation)
    assert observation.check(USABLE, 100.0) is None, "one question at a time"


def test_a_session_that_is_gone_frees_its_lease() -> None:
    observation = asked(seen(ZOOKEEPER))
    observation.checked(TOKEN, present=False, now=100.1)
    assert observation.seizable(100.1) == "session-gone"
    assert observation.check(USABLE, 200.0) is None, "it never comes back: nothing to ask"


def test_a_lease_that_was_switched_meanwhile_is_not_freed_by_it() -> None:
    observation = asked(seen(ZOOKEEPER))
    observation.see(replace(HDFS, sequence=6), 100.05)
    observation.checked(TOKEN, present=False, now=100.1)
    assert observation.seizable(100.1) is None
    observation.see(replace(ZOOKEEPER, sequence=7, attestation="cafe0123-1003"), 101.0)
    assert observation.seizable(101.0) is None, "another session attests it"


def test_a_session_that_lives_or_that_nobody_knows_about_frees_nothing() -> None:
    for present in (True, None):
        observation = asked(seen(ZOOKEEPER))
        observation.checked(TOKEN, present=present, now=100.1)
        assert observation.seizable(100.1) is None


def test_the_answer_to_another_question_is_ignored() -> None:
    observation = asked(seen(ZOOKEEPER))
    observation.checked("cafe0123-1003", present=False, now=100.1)
    assert observation.seizable(100.1) is None
    observation.checked(TOKEN, present=False, now=100.2)
    assert observation.seizable(100.2) == "session-gone"


def test_what_changed_while_it_was_asked_is_asked_again() -> None:
    """A watch that goes off may overtake the answer to the read that has set it."""
    observation = asked(seen(ZOOKEEPER))
    observation.doubt(100.05)
    assert observation.check(USABLE, 100.06) is None, "one question at a time"
    observation.checked(TOKEN, present=True, now=100.1)
    assert observation.poll_interval(USABLE) == TIMING.poll
    assert observation.check(USABLE, 100.1) == TOKEN
    observation.checked(TOKEN, present=True, now=100.2)
    assert observation.check(USABLE, 1e9) is None


def test_who_cannot_say_is_asked_again_after_the_poll_interval() -> None:
    observation = asked(seen(ZOOKEEPER))
    observation.checked(TOKEN, present=None, now=100.1)
    assert observation.check(USABLE, 100.1) is None
    assert observation.check(USABLE, 100.1 + TIMING.poll) == TOKEN


def test_who_said_yes_is_asked_again_only_when_something_changed() -> None:
    observation = asked(seen(ZOOKEEPER))
    observation.checked(TOKEN, present=True, now=100.1)
    assert observation.check(USABLE, 500.0) is None
    observation.doubt(200.0)
    assert observation.check(USABLE, 200.0) == TOKEN


def test_the_lease_is_read_often_unless_zookeeper_watches_it() -> None:
    observation = asked(seen(ZOOKEEPER))
    assert observation.poll_interval(USABLE) == TIMING.poll
    observation.checked(TOKEN, present=True, now=100.1)
    assert observation.poll_interval(USABLE) == TIMING.long_ttl / 3
    assert observation.poll_interval(Attestation()) == TIMING.poll
    observation.doubt(101.0)
    assert observation.poll_interval(USABLE) == TIMING.poll
    assert seen(HDFS).poll_interval(USABLE) == TIMING.poll


def test_a_process_that_is_gone_frees_the_lease_that_it_holds_and_no_other() -> None:
    observation = seen(ZOOKEEPER)
    assert observation.seizable(100.1) is None
    observation.process_gone()
    assert observation.seizable(100.1) == "process-gone"
    observation.see(replace(ZOOKEEPER, sequence=6), 100.2)
    assert observation.seizable(100.2) == "process-gone", "a renewal that was executed late"
    for other in (
        replace(HDFS, sequence=6),
        replace(ZOOKEEPER, sequence=6, owner=B),
        replace(ZOOKEEPER, sequence=6, attestation="cafe0123-1003"),
    ):
        observation.see(other, 100.3)
        assert observation.seizable(100.3) is None


def test_what_zookeeper_says_is_the_reason_if_both_say_it() -> None:
    observation = asked(seen(ZOOKEEPER))
    observation.process_gone()
    observation.checked(TOKEN, present=False, now=100.1)
    assert observation.seizable(100.1) == "session-gone"


def test_nothing_is_gone_where_no_lease_was_seen() -> None:
    observation = Observation("b", TIMING)
    observation.process_gone()
    assert observation.seizable(100.0) is None


def test_a_lease_released_for_a_successor_is_not_taken_back_by_its_own_contender() -> None:
    observation = Observation("a", TIMING)
    observation.disown(A)
    observation.see(replace(RELEASED, successor="b"), at=100.0)
    assert observation.seizable(100.0) is None
    assert observation.seizable(100.0 + TIMING.hand_over) == "successor-absent"


def test_the_rhythm_of_one_holder_says_nothing_of_the_next() -> None:
    observation = seen(HDFS, 100.0)
    observation.see(replace(HDFS, sequence=6), 100.5)
    assert observation.poll_interval(USABLE) > TIMING.poll
    observation.see(replace(HDFS, sequence=7, owner=B), 102.4)
    assert observation.poll_interval(USABLE) == TIMING.poll


def test_a_named_successor_is_waited_for_until_it_has_surely_looked() -> None:
    """Without ZooKeeper it looks when the next renewal would be due, however short the courtesy was set."""
    timing = dataclasses.replace(TIMING, hand_over=0.1)
    observation = Observation("b", timing)
    observation.see(replace(RELEASED, successor="c"), 100.0)
    assert observation.seizable(100.0 + timing.renewal) is None
    assert observation.seizable(100.0 + timing.renewal + timing.retry) == "successor-absent"
