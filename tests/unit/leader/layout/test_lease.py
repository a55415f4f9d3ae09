"""The lease: its name, and the facts read from it."""

from collections.abc import Callable
from functools import reduce

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from leader.errors import InvalidName
from leader.layout.lease import ANYBODY, LOOK, Lease, Mode, check_contender, first_lease
from leader.layout.names import MAX_REACHED
from store.files import MAX_COMPONENT_BYTES
from tests.unit.leader.samples import SESSION_IDS, TEXTS, WORDS, A, B

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
    marks=st.integers(0, 999_999_999),
)


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
    st.sampled_from(["0", "1", "01", "", "0\n"]),
).map("~".join)


@given(PARTS | TEXTS)
@example(f"lease~0000000001~hdfs~06000~{A}~~a~~0")
@example(f"lease~000000000\u0663~hdfs~6000~{A}~~a~~0")
@example(f"lease~0000000001~hdfs~6000~{A}~~a~~0\n")
def test_a_name_that_parses_as_a_lease_is_written_back_the_same(name: str) -> None:
    lease = Lease.parse(name)
    assert lease is None or lease.name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "lease",
        f"lease~1~hdfs~6000~{A}~~a~~0",
        f"lease~0000000001~none~6000~{A}~~a~~0",
        f"lease~0000000001~hdfs~-1~{A}~~a~~0",
        f"lease~0000000001~hdfs~06000~{A}~~a~~0",
        f"lease~000000000\u0663~hdfs~6000~{A}~~a~~0",
        f"lease~0000000001~hdfs~6000~{A.upper()}~~a~~0",
        f"lease~0000000001~hdfs~6000~{A}~/~a~~0",
        f"lease~0000000001~hdfs~6000~{A}~~~~0",
        f"lease~0000000001~hdfs~6000~{A}~~_any~~0",
        f"lease~0000000001~hdfs~6000~{A}~~a",
        f"lease~0000000001~hdfs~6000~{A}~~a~",
        f"lease~0000000001~hdfs~6000~{A}~~a~~",
        f"lease~0000000001~hdfs~6000~{A}~~a~~00",
        f"lease~0000000001~hdfs~6000~{A}~~a~~1000000000",
        f"lease~0000000001~hdfs~6000~{A}~~a~b~c~0",
    ],
)
def test_other_names_are_no_lease(name: str) -> None:
    assert Lease.parse(name) is None


def test_a_sequence_that_no_job_reaches_is_not_believed() -> None:
    highest = replace(HDFS, sequence=MAX_REACHED)
    assert Lease.parse(highest.name) == highest
    for sequence in (MAX_REACHED + 1, 9_999_999_999):
        assert Lease.parse(replace(HDFS, sequence=sequence).name) is None


def test_the_first_lease_is_free_and_a_request_is_the_next_entry() -> None:
    first = first_lease(A)
    assert (first.mode, first.sequence, first.ttl, first.successor) == (Mode.RELEASED, 0, 0.0, "")
    assert Lease.parse(first.name) == first
    assert HDFS.asked_to("b") == replace(HDFS, sequence=2, successor="b", marks=1)


def test_no_contender_can_have_the_name_for_anybody() -> None:
    assert check_contender("node-1.example") == "node-1.example"
    with pytest.raises(InvalidName, match="a contender"):
        check_contender(ANYBODY)


def test_a_request_to_look_is_one_more_entry_and_keeps_a_hand_over() -> None:
    lease = Lease(5, Mode.HDFS, 6000, A, "", "a")
    assert lease.asked_to_look() == replace(lease, sequence=6, successor=LOOK, marks=1)
    assert lease.asked_to_look().asked_to_look() == replace(lease, sequence=7, successor=LOOK, marks=2)
    assert lease.asked_to("b").asked_to_look() == replace(lease, sequence=7, successor="b", marks=2)
    assert lease.asked_to_look().asked_to("b") == replace(lease, sequence=7, successor="b", marks=2)


OTHERS = [Lease.asked_to_look, Lease.as_paused, Lease.as_resumed, lambda lease: lease.asked_to("b")]


@given(st.lists(st.sampled_from(OTHERS), max_size=5))
def test_what_operators_ask_is_no_renewal(marks: list[Callable[[Lease], Lease]]) -> None:
    marked = reduce(lambda lease, mark: mark(lease), marks, HDFS)
    assert not marked.renewed_since(HDFS)
    renewed = replace(marked, sequence=marked.sequence + 1, marks=0)
    assert renewed.renewed_since(HDFS)
    assert renewed.renewed_since(marked)
    assert renewed.asked_to_look().renewed_since(marked), "a mark does not hide the renewal before it"


@pytest.mark.parametrize(
    "changed",
    [replace(HDFS, owner=B), replace(HDFS, ttl_ms=7), replace(HDFS, mode=Mode.RELEASED), replace(HDFS, contender="b")],
    ids=["owner", "ttl", "mode", "contender"],
)
def test_whatever_else_differs_was_changed_by_a_holder(changed: Lease) -> None:
    assert changed.renewed_since(HDFS)
