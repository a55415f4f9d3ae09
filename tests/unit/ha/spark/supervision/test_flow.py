"""Regions: connected components of what queries read and write, and every part of a wide source in exactly one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.spark.supervision.flow import Flow, file_regions, kafka_regions, regions
from leader.errors import InvalidName, InvalidSettings


def cut(**queries: tuple[str, str]) -> list[tuple[str, ...]]:
    return regions(Flow(name, reads.split(), writes.split()) for name, (reads, writes) in queries.items())


@pytest.mark.parametrize(
    ("queries", "found"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"a": ("x", "p"), "b": ("y", "q")}, [("a",), ("b",)], id="nothing is shared"),
        pytest.param({"a": ("in", "p"), "b": ("in", "q")}, [("a",), ("b",)], id="a source that no query writes"),
        pytest.param(
            {"reader": ("p", "q"), "other": ("x", "y"), "writer": ("x", "p")},
            [("reader", "writer"), ("other",)],
            id="one reads what another writes",
        ),
        pytest.param({"a": ("x", "p"), "b": ("y", "p")}, [("a", "b")], id="two writers of one output"),
        pytest.param({"a": ("s", "1"), "b": ("1", "2"), "c": ("1", "3")}, [("a", "b", "c")], id="a tree out of one"),
    ],
)
def test_queries_are_one_region_if_one_writes_what_another_reads_or_writes(
    queries: dict[str, tuple[str, str]], found: list[tuple[str, ...]]
) -> None:
    assert cut(**queries) == found


@pytest.mark.parametrize("turned", [False, True])
def test_a_tree_of_joins_is_one_region(turned: bool) -> None:
    queries = {
        "a": ("s", "1"), "b": ("s", "2"), "c": ("s", "3"), "d": ("s", "4"),
        "ab": ("1 2", "5"), "cd": ("3 4", "6"), "root": ("5 6", "7"),
    }  # fmt: skip
    if turned:
        queries = dict(reversed(queries.items()))
    assert cut(**queries) == [tuple(queries)]


def test_a_diamond_and_a_ring_are_one_region_each() -> None:
    diamond = {"top": ("s", "1"), "left": ("1", "2"), "right": ("1", "3"), "bottom": ("2 3", "4")}
    ring = {"there": ("y", "x"), "back": ("x", "y")}
    assert cut(**diamond, **ring) == [tuple(diamond), tuple(ring)]


def test_ten_thousand_chains_are_cut() -> None:
    chains = {
        f"{step}-{chain}": (f"{chain}/{step - 1}", f"{chain}/{step}") for chain in range(10_000) for step in (1, 2)
    }
    assert len(cut(**chains)) == 10_000


def test_a_chain_of_ten_thousand_is_one_region_in_either_direction() -> None:
    chain = {f"q{step}": (str(step), str(step + 1)) for step in range(10_000)}
    assert cut(**chain) == [tuple(chain)]
    back = dict(reversed(chain.items()))
    assert cut(**back) == [tuple(back)]


@given(st.dictionaries(st.sampled_from(["orders", "payments"]), st.integers(1, 40), min_size=1), st.integers(1, 9))
def test_every_kafka_partition_is_in_one_region(topics: dict[str, int], count: int) -> None:
    groups = kafka_regions("all", topics, count)
    found = [(topic, each) for group in groups.values() for topic, listed in json.loads(group).items()
             for each in listed]  # fmt: skip
    assert sorted(found) == sorted((topic, each) for topic, most in topics.items() for each in range(most))
    sizes = [sum(map(len, json.loads(group).values())) for group in groups.values()]
    assert max(sizes) - min(sizes) <= len(topics)


def test_partitions_that_are_added_move_no_other() -> None:
    before, after = kafka_regions("all", {"orders": 5}, 4), kafka_regions("all", {"orders": 9}, 4)
    assert before.keys() == after.keys()
    for region, group in before.items():
        assert set(json.loads(group)["orders"]) <= set(json.loads(after[region])["orders"])


def test_the_names_say_how_many_there_are() -> None:
    assert list(kafka_regions("all", {"orders": 8}, 3)) == ["all-0-of-3", "all-1-of-3", "all-2-of-3"]
    assert len(kafka_regions("all", {"orders": 2}, 3)) == 2, "none without a partition"


def test_every_folder_is_in_one_region() -> None:
    folders = [f"/in/{number}" for number in range(50)]
    groups = file_regions("all", folders, 4)
    found = [f"/{each}" for group in groups.values() for each in group.strip("/{}").split(",")]
    assert sorted(found) == sorted(folders)
    assert file_regions("all", [*folders, "/in/50"], 4).keys() == groups.keys()
    assert file_regions("all", ["/in/a"], 1) == {"all-0-of-1": "/in/a"}


@pytest.mark.parametrize(
    ("folders", "count"), [([], 1), (["/a"], 0), (["/a"], -1), (["/{a"], 1), (["/a,b"], 1), (["a"], 1)]
)
def test_what_cannot_be_split(folders: list[str], count: int) -> None:
    with pytest.raises(InvalidSettings, match=r"cannot be"):
        file_regions("all", folders, count)


def test_folders_with_a_scheme_keep_it_before_the_braces() -> None:
    folders = ["hdfs://names/in/a", "hdfs://names/in/b"]
    assert file_regions("all", folders, 1) == {"all-0-of-1": "hdfs://names/{in/a,in/b}"}
    assert file_regions("all", ["file:///a", "file:///b"], 1) == {"all-0-of-1": "file:///{a,b}"}
    with pytest.raises(InvalidSettings, match="several stores cannot be"):
        file_regions("all", [*folders, "/in/c"], 1)


def test_a_name_that_no_query_can_have() -> None:
    with pytest.raises(InvalidName):
        kafka_regions("a b", {"orders": 1}, 1)
