"""The lease: its name, and the facts read from it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from leader.errors import InvalidName
from leader.layout.lease import ANYBODY, LOOK, Lease, Mode, check_contender, first_lease
from leader.layout.names import MAX_REACHED
from store.files import MAX_COMPONENT_BYTES
from tests.unit.leader.samples import SESSION_IDS, TEXTS, WORDS, A

HDFS = Lease(1, Mode.HDFS, 6000, A, "", "a")
ZOOKEEPER = Lease(2, Mode.ZOOKEEPER, 60_000, A, "cafe0123-1001", "a")

LEASES = st.builds(
    Lease,
    sequence=st.integers(0, MAX_REACHED),
    mode=st.sampled_from(Mode),
    ttl_ms=st.integers(0, 999_999_999),
    owner=SESSION_IDS,
    attestation=st.text("0123456789abcdef-", max_size=40),
    contender=WORDS,
    successor=WORDS | st.sampled_from(["", ANYBODY, LOOK]),
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
    st.sampled_from(["", ANYBODY, LOOK, "b", "_b", "b\n"]),
).map("~".join)


@given(PARTS | TEXTS)
@example(f"lease~0000000001~hdfs~06000~{A}~~a~")
@example(f"lease~000000000\u0663~hdfs~6000~{A}~~a~")
@example(f"lease~0000000001~hdfs~6000~{A}~~a~\n")
def test_a_name_that_parses_as_a_lease_is_written_back_the_same(name: str) -> None:
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
def test_other_names_are_no_lease(name: str) -> None:
    assert Lease.parse(name) is None


def test_a_sequence_that_no_job_reaches_is_not_believed() -> None:
    highest = replace(HDFS, sequence=MAX_REACHED)
    assert Lease.parse(highest.name) == highest
    for sequence in (MAX_REACHED + 1, 9_999_999_999):
        assert Lease.parse(replace(HDFS, sequence=sequence).name) is None


def test_the_first_lease_is_free() -> None:
    first = first_lease(A)
    assert (first.mode, first.sequence, first.ttl, first.successor) == (Mode.RELEASED, 0, 0.0, "")
    assert Lease.parse(first.name) == first


def test_a_request_is_the_next_entry_and_changes_nothing_else() -> None:
    assert HDFS.asked_to("b") == replace(HDFS, sequence=2, successor="b")


def test_no_contender_can_have_the_name_for_anybody() -> None:
    assert check_contender("node-1.example") == "node-1.example"
    with pytest.raises(InvalidName, match="a contender"):
        check_contender(ANYBODY)


def test_a_request_to_look_is_one_more_entry_and_keeps_a_hand_over() -> None:
    lease = Lease(5, Mode.HDFS, 6000, A, "", "a")
    assert lease.asked_to_look() == replace(lease, sequence=6, successor=LOOK)
    assert lease.asked_to_look().asked_to_look() == replace(lease, sequence=7, successor=LOOK)
    assert lease.asked_to("b").asked_to_look() == replace(lease, sequence=7, successor="b")
    assert lease.asked_to_look().asked_to("b") == replace(lease, sequence=7, successor="b")
