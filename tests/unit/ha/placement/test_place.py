"""The place of a job: its home, and the names that point elsewhere."""

import pytest

from ha.groups.marks import CopyMark
from ha.placement.place import Pointer, home_of, lies_here, pointer_in, roots_of
from leader.errors import InvalidName
from leader.layout.names import LeaderDirectory
from store.errors import Invalid

ROOTS = ["hdfs://ns1/ha", "hdfs://ns2/ha", "hdfs://ns3/ha"]
JOBS = [f"job-{number}" for number in range(3000)]
LEADER = "0000000001-00000000-0000-0000-0000-000000000000"


def test_the_order_of_the_roots_does_not_matter() -> None:
    assert [home_of(ROOTS, job) for job in JOBS] == [home_of(reversed(ROOTS), job) for job in JOBS]


def test_each_root_is_the_home_of_its_share() -> None:
    counts = [sum(home_of(ROOTS, job) == root for job in JOBS) for root in ROOTS]
    assert all(900 < each < 1100 for each in counts)


def test_one_root_more_takes_only_what_becomes_its_own() -> None:
    more = [*ROOTS, "hdfs://ns4/ha"]
    changed = [job for job in JOBS if home_of(more, job) != home_of(ROOTS, job)]
    assert {home_of(more, job) for job in changed} == {"hdfs://ns4/ha"}
    assert 600 < len(changed) < 900


def test_a_pointer_is_read_back() -> None:
    pointer = Pointer(12, "hdfs://ns2:8020/ha/jobs")
    assert Pointer.parse(pointer.name) == pointer
    assert "/" not in pointer.name
    assert ":" not in pointer.name


@pytest.mark.parametrize("name", ["moved~0~a", "moved~01~a", "moved~1~", "moved~x~a", "moved~1~_zz", LEADER, "moved"])
def test_other_names_are_no_pointers(name: str) -> None:
    assert Pointer.parse(name) is None


def test_a_root_with_a_long_uri_cannot_be_pointed_to() -> None:
    with pytest.raises(InvalidName, match="A pointer to a root is too long"):
        _ = Pointer(1, f"hdfs://ns1/{'a' * 250}").name


def test_the_newest_pointer_counts() -> None:
    names = [Pointer(9, "hdfs://ns1/ha").name, Pointer(10, "hdfs://ns2/ha").name, "junk"]
    assert pointer_in(names) == Pointer(10, "hdfs://ns2/ha")
    assert pointer_in(["junk", LEADER]) is None


def test_a_job_lies_where_its_leader_directory_is() -> None:
    assert lies_here(["junk", LEADER])
    assert not lies_here([Pointer(1, "hdfs://ns1/ha").name])


def test_roots_are_separated_by_commas() -> None:
    assert roots_of("hdfs://ns1/ha, hdfs://ns2/ha") == ["hdfs://ns1/ha", "hdfs://ns2/ha"]
    assert roots_of("hdfs://ns1/ha") == ["hdfs://ns1/ha"]


@pytest.mark.parametrize("files", ["hdfs://ns1/ha,", "hdfs://ns1/ha,hdfs://ns1/ha", ",hdfs://ns1/ha"])
def test_a_comma_too_much_and_a_root_twice_are_refused(files: str) -> None:
    with pytest.raises(Invalid, match="names a root twice, or has a comma too much"):
        roots_of(files)


def test_roots_of_two_kinds_are_refused() -> None:
    with pytest.raises(Invalid, match="several schemes"):
        roots_of("hdfs://ns1/ha,webhdfs://ns2/ha")


@pytest.mark.parametrize("name", ["arriving~1~abc", "arriving~0~0000000001-" + "a" * 8, "arrived~1", "moved~1~x", ""])
def test_other_names_are_no_copies_of_a_job(name: str) -> None:
    assert CopyMark.parse(name) is None


def test_a_copy_is_read_back() -> None:
    leader = LeaderDirectory(7, "0000000a-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
    for undone in (True, False):
        assert CopyMark.parse(CopyMark(3, undone, leader).name) == CopyMark(3, undone, leader)
