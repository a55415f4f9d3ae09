"""The lease: its name, and what its holder may believe."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from leader.errors import InvalidName
from leader.lease import ANYBODY, Attestation, Holding, Lease, Mode, check_contender, first_lease
from store.files import MAX_COMPONENT_BYTES
from tests.leader.samples import SESSION_IDS, TEXTS, WORDS, A, B

FOREVER = float("inf")
NEVER = float("-inf")

HDFS = Lease(1, Mode.HDFS, 6000, A, "", "a")
ZOOKEEPER = Lease(2, Mode.ZOOKEEPER, 60_000, A, "cafe0123-1001", "a")

LEASES = st.builds(
    Lease,
    sequence=st.integers(0, 9_999_999_999),
    mode=st.sampled_from(Mode),
    ttl_ms=st.integers(0, 999_999_999),
    owner=SESSION_IDS,
    attestation=st.text("0123456789abcdef-", max_size=40),
    contender=WORDS,
    successor=WORDS | st.sampled_from(["", ANYBODY]),
)


# --- the name


@given(LEASES)
def test_a_lease_is_read_back(lease: Lease) -> None:
    assert Lease.parse(lease.name) == lease
    assert len(lease.name) <= MAX_COMPONENT_BYTES


PARTS = st.tuples(
    st.sampled_from(["lease", "Lease", "endpoint", ""]),
    st.from_regex(r"\d{9,11}", fullmatch=True),
    st.sampled_from(["zookeeper", "hdfs", "released", "HDFS", ""]),
    st.from_regex(r"-?\d{0,10}", fullmatch=True),
    st.sampled_from([A, A.upper(), ""]),
    st.text(max_size=3),
    st.text(max_size=3),
    st.sampled_from(["", ANYBODY, "b", "_b", "b\n"]),
).map("~".join)


@given(PARTS | TEXTS)
@example(f"lease~0000000001~hdfs~06000~{A}~~a~")
@example(f"lease~000000000\u0663~hdfs~6000~{A}~~a~")
@example(f"lease~0000000001~hdfs~6000~{A}~~a~\n")
def test_what_reads_as_a_lease_is_written_just_so(name: str) -> None:
    lease = Lease.parse(name)
    assert lease is None or lease.name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "lease",
        f"lease~1~hdfs~6000~{A}~~a~",
        f"lease~0000000001~none~6000~{A}~~a~",
        f"lease~0000000001~hdfs~-1~{A}~~a~",
        f"lease~0000000001~hdfs~06000~{A}~~a~",
        f"lease~000000000\u0663~hdfs~6000~{A}~~a~",
        f"lease~0000000001~hdfs~6000~{A.upper()}~~a~",
        f"lease~0000000001~hdfs~6000~{A}~/~a~",
        f"lease~0000000001~hdfs~6000~{A}~~~",
        f"lease~0000000001~hdfs~6000~{A}~~_any~",
        f"lease~0000000001~hdfs~6000~{A}~~a",
        f"lease~0000000001~hdfs~6000~{A}~~a~b~c",
    ],
)
def test_what_is_no_lease(name: str) -> None:
    assert Lease.parse(name) is None


def test_the_first_lease_is_free() -> None:
    first = first_lease(A)
    assert (first.mode, first.sequence, first.ttl, first.successor) == (Mode.RELEASED, 0, 0.0, "")
    assert Lease.parse(first.name) == first


def test_a_request_is_the_next_entry_and_changes_nothing_else() -> None:
    assert HDFS.asked_to("b") == replace(HDFS, sequence=2, successor="b")


def test_no_contender_can_be_called_like_anybody() -> None:
    assert check_contender("node-1.example") == "node-1.example"
    with pytest.raises(InvalidName, match="a contender"):
        check_contender(ANYBODY)


# --- the belief


def holding(*promises: tuple[Lease, float]) -> Holding:
    """What a holder knows that sent these, and was answered the first."""
    held = Holding(drift=0.01)
    for lease, start in promises:
        held.send(lease, start)
        if held.current is None:
            held.confirm(lease)
    return held


def test_nothing_is_held_at_first_and_after_clear() -> None:
    held = Holding(drift=0.01)
    assert held.until() == NEVER
    held.send(HDFS, 10.0)
    assert held.until() == NEVER, "what was only sent is not held"
    held.confirm(HDFS)
    held.clear()
    assert (held.until(), held.current, HDFS in held) == (NEVER, None, False)


def test_the_belief_counts_from_the_start_of_the_call_less_the_drift() -> None:
    assert holding((HDFS, 10.0)).until() == pytest.approx(10 + 6 * 0.99)


def test_zookeepers_mode_needs_both_the_attestation_and_the_ttl() -> None:
    held = holding((ZOOKEEPER, 10.0))
    assert held.until() == NEVER, "nothing has attested it yet"
    held.attest(Attestation(ZOOKEEPER.attestation, until=20.0, usable=True))
    assert held.until() == 20
    held.attest(Attestation(ZOOKEEPER.attestation, until=FOREVER, usable=True))
    assert held.until() == pytest.approx(10 + 60 * 0.99)


def test_an_attestation_of_another_token_does_not_count() -> None:
    held = holding((ZOOKEEPER, 10.0))
    held.attest(Attestation("cafe0123-1002", until=20.0, usable=True))
    assert held.until() == NEVER


def test_what_was_confirmed_of_an_earlier_session_stays_true() -> None:
    held = holding((ZOOKEEPER, 10.0))
    held.attest(Attestation(ZOOKEEPER.attestation, until=20.0, usable=True))
    held.attest(Attestation("cafe0123-1002", until=99.0, usable=True))
    assert held.until() == 20
    held.attest(Attestation())
    assert held.until() == 20


def test_the_moment_a_renewal_is_sent_it_caps_the_belief() -> None:
    held = holding((ZOOKEEPER, 10.0))
    held.attest(Attestation(ZOOKEEPER.attestation, until=40.0, usable=True))
    held.send(replace(HDFS, sequence=3), 12.0)
    assert held.until() == pytest.approx(12 + 6 * 0.99)


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
    assert held.until() == NEVER, "the switch is not attested and may be executed yet"
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
    """The next NameNode may never have heard of it; it may hold the one before, and be renamed from there."""
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
    """Not that of an entry that was shown and forgotten either: who saw it then would take it for an old one."""
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


def test_an_adopted_entry_promises_no_more_than_the_least_before() -> None:
    renewed = replace(HDFS, sequence=2)
    held = holding((HDFS, 10.0), (renewed, 12.0))
    asked = renewed.asked_to("b")
    held.adopt(asked)
    assert (held.present, held.current) == (asked, HDFS)
    assert held.started(asked) == 10
    assert held.next_sequence == 4
    assert held.until() == pytest.approx(10 + 6 * 0.99)


def test_a_released_lease_promises_nothing() -> None:
    held = holding((HDFS, 10.0))
    held.send(replace(HDFS, sequence=2, mode=Mode.RELEASED, ttl_ms=0), 11.0)
    assert held.until() == NEVER


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
    held.confirm(next(iter(starts)))  # of the first: so only this one and its tries are left
    first = next(iter(starts))
    held.attest(Attestation(ZOOKEEPER.attestation, attested, usable=True))
    for lease, start in starts.items():
        held.send(lease, start)
    ends = [
        min(start + lease.ttl, attested if lease.mode is Mode.ZOOKEEPER else FOREVER) for lease, start in starts.items()
    ]
    assert held.current == first
    assert held.until() == pytest.approx(min(ends))
