"""Region groups: every part in exactly one region, and in the same one as long as their number is the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.spark.supervision.flow import file_regions, kafka_regions
from leader.errors import InvalidName, InvalidSettings


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
