"""Holding: a holder believes the least that any entry promises that may be in the store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from leader.election.holding import Holding
from leader.layout.lease import Attestation, Lease, Mode
from leader.timing import NEVER, PAST
from tests.unit.leader.samples import A, B

HDFS = Lease(1, Mode.HDFS, 6000, A, "", "a")
ZOOKEEPER = Lease(2, Mode.ZOOKEEPER, 60_000, A, "cafe0123-1001", "a")


def holding(*promises: tuple[Lease, float]) -> Holding:
    """Return the state of a holder that sent these entries and got the first one acknowledged."""
    held = Holding(drift=0.01)
    for lease, start in promises:
        held.send(lease, start)
        if held.current is None:
            held.confirm(lease)
    return held


def test_nothing_is_held_at_first_and_after_clear() -> None:
    held = Holding(drift=0.01)
    assert held.until() == PAST
    held.send(HDFS, 10.0)
    assert held.until() == PAST, "what was only sent is not held"
    held.confirm(HDFS)
    held.clear()
    assert (held.until(), held.current, HDFS in held) == (PAST, None, False)


def test_the_belief_counts_from_the_start_of_the_call_less_the_drift() -> None:
    assert holding((HDFS, 10.0)).until() == pytest.approx(10 + 6 * 0.99)


def test_zookeepers_mode_needs_both_the_attestation_and_the_ttl() -> None:
    held = holding((ZOOKEEPER, 10.0))
    assert held.until() == PAST, "nothing has attested it yet"
    held.attest(Attestation(ZOOKEEPER.attestation, until=20.0, usable=True))
    assert held.until() == 20
    held.attest(Attestation(ZOOKEEPER.attestation, until=NEVER, usable=True))
    assert held.until() == pytest.approx(10 + 60 * 0.99)


def test_a_confirmation_of_an_earlier_session_stays_true() -> None:
    held = holding((ZOOKEEPER, 10.0))
    held.attest(Attestation(ZOOKEEPER.attestation, until=20.0, usable=True))
    held.attest(Attestation("cafe0123-1002", until=99.0, usable=True))
    assert held.until() == 20
    held.attest(Attestation())
    assert held.until() == 20


@pytest.mark.parametrize(
    ("sent", "until"),
    [(replace(HDFS, sequence=3), 12 + 6 * 0.99), (replace(HDFS, sequence=2, mode=Mode.RELEASED, ttl_ms=0), PAST)],
    ids=["a renewal", "a release"],
)
def test_the_moment_it_is_sent_it_caps_the_belief(sent: Lease, until: float) -> None:
    held = holding((ZOOKEEPER, 10.0))
    held.attest(Attestation(ZOOKEEPER.attestation, until=40.0, usable=True))
    held.send(sent, 12.0)
    assert held.until() == pytest.approx(until)


def test_sending_once_more_keeps_the_first_start() -> None:
    held = holding((HDFS, 10.0))
    renewed = replace(HDFS, sequence=2)
    held.send(renewed, 12.0)
    held.send(renewed, 14.0)
    assert held.started(renewed) == 12
    assert held.pending(replace(HDFS, sequence=99)) == renewed
    assert held.pending(ZOOKEEPER) is None
    held.confirm(renewed)
    assert held.until() == pytest.approx(12 + 6 * 0.99)


def test_confirming_one_entry_ends_every_other_try_from_the_same_source() -> None:
    renewed, switched = replace(HDFS, sequence=2), replace(ZOOKEEPER, sequence=3)
    held = holding((HDFS, 10.0), (switched, 11.0), (renewed, 12.0))
    assert held.until() == PAST, "the switch is not attested and may be executed yet"
    held.confirm(renewed)
    assert (held.current, switched in held, HDFS in held) == (renewed, False, False)
    assert held.until() == pytest.approx(12 + 6 * 0.99)


def test_reading_the_present_entry_again_keeps_the_pending_ones() -> None:
    renewed = replace(HDFS, sequence=2)
    held = holding((HDFS, 10.0), (renewed, 12.0))
    held.see(HDFS)
    assert renewed in held
    assert held.next_sequence == 3


def test_an_entry_that_is_only_listed_is_renamed_next_and_promises_nothing_new() -> None:
    """The next NameNode may never have heard of it. That one may hold the entry before, and rename from there."""
    renewed = replace(HDFS, sequence=2)
    held = holding((HDFS, 10.0), (renewed, 12.0))
    held.see(renewed)
    assert (held.present, held.current) == (renewed, HDFS)
    assert held.until() == pytest.approx(10 + 6 * 0.99)
    assert held.pending(HDFS) is None, "no name of the past, and not the same once more"
    held.see(HDFS)
    assert held.pending(replace(HDFS, sequence=99)) == renewed
    held.see(renewed)
    again = replace(HDFS, sequence=3)
    held.send(again, 13.0)
    held.see(HDFS)
    assert held.pending(replace(HDFS, sequence=99)) == again, "not the one that this was built on, should it be late"
    held.see(renewed)
    held.confirm(again)
    assert (held.present, held.current) == (again, again)
    assert held.until() == pytest.approx(13 + 6 * 0.99)


def test_no_sequence_ever_comes_back() -> None:
    """Not even that of an entry that was listed and forgotten: a process that saw it would take the new one for old."""
    shown = replace(HDFS, sequence=2)
    held = holding((HDFS, 10.0), (shown, 12.0))
    held.see(shown)
    held.send(replace(HDFS, sequence=3), 13.0)
    held.see(HDFS)
    switched = replace(ZOOKEEPER, sequence=held.next_sequence)
    held.send(switched, 14.0)
    held.confirm(switched)
    assert (switched.sequence, held.next_sequence) == (4, 5)
    held.adopt(replace(switched, sequence=7, successor="b"))
    assert held.next_sequence == 8


def test_a_try_whose_number_an_operator_has_taken_is_not_sent_again() -> None:
    """Seen in the simulator: the lease went from sequence 6 to 6, because the mark was taken away by an old try."""
    renewed = replace(HDFS, sequence=2)
    held = holding((HDFS, 10.0), (renewed, 12.0))
    assert held.pending(renewed) == renewed
    held.adopt(HDFS.asked_to_look())
    assert held.pending(renewed) is None
    assert held.next_sequence == 3


def test_an_adopted_entry_promises_no_more_than_the_least_before() -> None:
    renewed = replace(HDFS, sequence=2)
    held = holding((HDFS, 10.0), (renewed, 12.0))
    asked = renewed.asked_to("b")
    held.adopt(asked)
    assert (held.present, held.current) == (asked, HDFS)
    assert held.started(asked) == 10
    assert held.next_sequence == 4
    assert held.until() == pytest.approx(10 + 6 * 0.99)


SENT = st.lists(
    st.tuples(st.sampled_from([HDFS, ZOOKEEPER]), st.floats(0, 100), st.integers(1, 100_000)), min_size=1, max_size=8
)


@given(SENT, st.floats(0, 200))
def test_the_belief_is_the_least_of_everything_sent(sent: list[tuple[Lease, float, int]], attested: float) -> None:
    held = Holding(drift=0.0)
    starts: dict[Lease, float] = {}
    for number, (like, start, ttl_ms) in enumerate(sent):
        lease = replace(like, sequence=number, ttl_ms=ttl_ms, owner=B)
        held.send(lease, start)
        starts[lease] = start
    held.confirm(next(iter(starts)))  # of the first, so only this one and its tries are left
    first = next(iter(starts))
    held.attest(Attestation(ZOOKEEPER.attestation, attested, usable=True))
    for lease, start in starts.items():
        held.send(lease, start)
    ends = [
        min(start + lease.ttl, attested if lease.mode is Mode.ZOOKEEPER else NEVER) for lease, start in starts.items()
    ]
    assert held.current == first
    assert held.until() == pytest.approx(min(ends))
