"""Leader information: names in HDFS, and in ZooKeeper bytes that anybody may have written."""

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from leader.errors import InvalidName
from leader.layout.information import (
    MAX_ENDPOINTS,
    MAX_RECORD_BYTES,
    MAX_VERSION,
    EndpointEntry,
    LeaderInformation,
    Record,
    check_endpoints,
    decode,
    encode,
    endpoint_entries,
)
from leader.layout.lease import Lease, Mode, first_lease
from leader.layout.names import MAX_EPOCH, LeaderDirectory
from tests.unit.leader.samples import SESSION_IDS, TEXTS, WORDS, A, B

DIRECTORY = LeaderDirectory(7, A)
INFORMATION = LeaderInformation("orders", 7, A, {"jobmaster": "host:6123", "rest": "http://[::1]:8081/ä?x=1"}, 2)

ADDRESSES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
ENDPOINTS = st.dictionaries(WORDS, ADDRESSES, max_size=5)
INFORMATIONS = st.builds(
    LeaderInformation,
    job=st.just("orders"),
    epoch=st.integers(1, MAX_EPOCH),
    session_id=SESSION_IDS,
    endpoints=ENDPOINTS,
    version=st.integers(1, MAX_VERSION),
)


def names_of(information: LeaderInformation) -> list[str]:
    return [entry.name for entry in endpoint_entries(information)]


@given(INFORMATIONS)
def test_information_published_as_names_is_read_back(information: LeaderInformation) -> None:
    directory = LeaderDirectory(information.epoch, information.session_id)
    found = Record.parse(names_of(information)).published("orders", directory)
    assert found == structs.replace(information, endpoints=MappingProxyType(dict(information.endpoints)))


PARTS = st.tuples(
    st.just("endpoint"),
    st.from_regex(r"\d{10}", fullmatch=True),
    st.from_regex(r"\d{1,9}", fullmatch=True),
    st.from_regex(r"\d{1,2}", fullmatch=True),
    st.from_regex(r"[a-c]?=[a_0-9f]{0,4}", fullmatch=True),
).map("~".join)


@given(PARTS | TEXTS)
@example("endpoint~0000000007~01~1~rest=a")
@example("endpoint~0000000007~1~01~rest=a")
@example("endpoint~000000000\u0667~1~1~rest=a")
@example("endpoint~0000000007~1~1~rest=_41")
def test_a_name_that_parses_as_an_endpoint_is_written_back_the_same(name: str) -> None:
    entry = EndpointEntry.parse(name)
    assert entry is None or entry.name == name, (
        "else the leader would try for ever to remove an entry that is not there"
    )


def test_a_publication_counts_only_when_all_its_entries_are_there() -> None:
    entries = names_of(INFORMATION)
    for missing in entries:
        rest = [name for name in entries if name != missing]
        assert Record.parse(rest).published("orders", DIRECTORY) is None
    assert Record.parse(entries).published("orders", DIRECTORY) == INFORMATION


def test_the_newest_complete_publication_counts() -> None:
    newer = structs.replace(INFORMATION, version=10, endpoints={"rest": "b:1", "ui": "b:2"})
    half = names_of(newer)[:1]
    assert Record.parse(names_of(INFORMATION) + half).published("orders", DIRECTORY) == INFORMATION
    assert Record.parse(names_of(INFORMATION) + names_of(newer)).published("orders", DIRECTORY) == newer


def test_a_leader_without_endpoints_is_published_too() -> None:
    nothing = LeaderInformation("orders", 7, A)
    assert len(names_of(nothing)) == 1
    assert Record.parse(names_of(nothing)).published("orders", DIRECTORY) == nothing


def test_endpoints_of_another_epoch_are_ignored() -> None:
    for epoch in (6, 8):
        others = names_of(structs.replace(INFORMATION, epoch=epoch, version=99))
        assert Record.parse(others).published("orders", DIRECTORY) is None
        assert Record.parse(others + names_of(INFORMATION)).published("orders", DIRECTORY) == INFORMATION


def test_a_leader_whose_lease_was_seized_is_no_longer_an_answer() -> None:
    theirs = Lease(9, Mode.HDFS, 6000, B, "", "b").name
    assert Record.parse([*names_of(INFORMATION), theirs]).published("orders", DIRECTORY) is None


def test_contradicting_entries_are_no_publication() -> None:
    counts = ["endpoint~0000000007~3~1~rest=a", "endpoint~0000000007~3~2~ui=b"]
    twice = ["endpoint~0000000007~3~2~rest=a", "endpoint~0000000007~3~2~rest=b"]
    for strays in (counts, twice):
        assert Record.parse(strays).published("orders", DIRECTORY) is None
        assert Record.parse(strays + names_of(INFORMATION)).published("orders", DIRECTORY) == INFORMATION


@given(st.lists(TEXTS))
def test_strays_in_the_record_are_ignored(strays: list[str]) -> None:
    lease = Lease(3, Mode.HDFS, 6000, A, "", "a")
    strays = [name for name in strays if not Lease.parse(name) and not EndpointEntry.parse(name)]
    record = Record.parse([*strays, lease.name, *names_of(INFORMATION)])
    assert (record.lease, record.published("orders", DIRECTORY)) == (lease, INFORMATION)


def test_the_later_of_two_leases_counts_and_there_may_be_none() -> None:
    early, late = first_lease(A), Lease(3, Mode.HDFS, 6000, A, "", "a")
    for entries in ([early.name, late.name], [late.name, early.name]):
        assert Record.parse(entries).lease == late
    assert Record.parse([]).lease is None
    assert Record.parse([early.name]).released
    assert not Record.parse([late.name]).released
    assert not Record.parse([]).released


def test_good_endpoints_and_too_many() -> None:
    many = {f"e{number}": "a" for number in range(MAX_ENDPOINTS)}
    assert [check_endpoints(each) for each in ({}, {"rest": "a:1"}, many)] == [{}, {"rest": "a:1"}, many]
    with pytest.raises(InvalidName, match="65 endpoints are too many: at most 64"):
        check_endpoints({**many, "one-more": "a"})


@pytest.mark.parametrize("name", ["", "a b", "_any", "a=b", "a~b", "a/b", "x" * 65])
def test_a_bad_name_of_an_endpoint(name: str) -> None:
    with pytest.raises(InvalidName, match="is not a name of an endpoint"):
        check_endpoints({name: "a:1"})


def test_bad_addresses_are_errors_that_name_the_endpoint() -> None:
    with pytest.raises(InvalidName, match="The address of endpoint 'rest' is '': give a text that is not empty"):
        check_endpoints({"rest": ""})
    with pytest.raises(InvalidName, match=r"The address of endpoint 'rest' is too long: .* 255 are allowed"):
        check_endpoints({"rest": "x" * 250})
    with pytest.raises(InvalidName, match="lone surrogate"):
        check_endpoints({"rest": "\ud800"})


@given(st.text(min_size=1, max_size=300))
def test_accepted_endpoints_fit_into_a_name_at_any_epoch_and_version(address: str) -> None:
    try:
        check_endpoints({"rest": address})
    except InvalidName:
        return
    assert len(EndpointEntry(MAX_EPOCH, MAX_VERSION, MAX_ENDPOINTS, "rest", address).name) <= 255


@given(INFORMATIONS)
def test_a_record_is_read_back(information: LeaderInformation) -> None:
    assert decode(encode(information), "orders") == information


def test_a_record_is_json_for_people() -> None:
    assert json.loads(encode(INFORMATION)) == {
        "format": 1,
        "job": "orders",
        "epoch": 7,
        "session_id": A,
        "version": 2,
        "endpoints": dict(INFORMATION.endpoints),
    }


def changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(encode(INFORMATION)), **fields}).encode()


def test_fields_of_a_later_release_are_ignored() -> None:
    assert decode(changed(colour="blue"), "orders") == INFORMATION


@pytest.mark.parametrize(
    "fields",
    [
        {"format": 2}, {"format": "1"}, {"job": "payments"}, {"job": None}, {"epoch": 0}, {"epoch": -1},
        {"epoch": MAX_EPOCH + 1}, {"epoch": 10**400}, {"epoch": 1.5}, {"epoch": "7"}, {"session_id": ""},
        {"session_id": A.upper()}, {"version": 0}, {"version": MAX_VERSION + 1}, {"endpoints": None},
        {"endpoints": []}, {"endpoints": {"rest": 1}}, {"endpoints": {"rest": ""}}, {"endpoints": {"a b": "c"}},
        {"endpoints": {"rest": "x" * 300}}, {"endpoints": {f"e{number}": "a" for number in range(65)}},
    ],
    ids=str,
)  # fmt: skip
def test_a_foreign_record_is_ignored(fields: dict[str, Any]) -> None:
    assert decode(changed(**fields), "orders") is None


@pytest.mark.parametrize(
    "data",
    [
        b"", b"null", b"[]", b"{}", b"192.168.0.1:6123", b"\xff\xfe", b"\xac\xed\x00\x05sr", b"[" * 60_000,
        b'{"a":' * 10_000, b" " * (MAX_RECORD_BYTES + 1) + encode(INFORMATION), encode(INFORMATION) + b"x",
        encode(INFORMATION).replace(b"host", b"\\ud800"), encode(INFORMATION).replace(b"host", b"\xc3\x28"),
        b'{"epoch":1e999}', *(encode(INFORMATION)[:length] for length in range(len(encode(INFORMATION)))),
    ],
    ids=lambda data: f"{len(data)}-{data[:20]}",
)  # fmt: skip
def test_hostile_and_truncated_bytes_are_ignored(data: bytes) -> None:
    assert decode(data, "orders") is None


@given(
    st.binary() | st.integers(0, 200).flatmap(lambda at: st.binary(min_size=1, max_size=3).map(lambda b: spoilt(at, b)))
)
def test_no_bytes_raise_an_exception(data: bytes) -> None:
    found = decode(data, "orders")
    assert found is None or found.job == "orders"


def spoilt(at: int, by: bytes) -> bytes:
    good = encode(INFORMATION)
    return good[:at] + by + good[at + len(by) :]
