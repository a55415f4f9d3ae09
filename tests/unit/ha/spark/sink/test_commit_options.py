"""Partition commit of the format ``ha``: Flink's options, and one sentence for what cannot be had there."""

import pickle

import pytest

from ha.outputs.partition_commit import PARTITION_TIME, PROCESS_TIME, CommittedPartition, Moment, PartitionCommit
from ha.spark.sink import commit_options
from ha.spark.sink.commit_options import Imported, commit_of
from ha.spark.sink.options import options_of
from leader.errors import InvalidSettings

LEADER = "hdfs://names:8020/ha/orders/leader"
SUCCESS = {"sink.partition-commit.policy.kind": "success-file"}
told: list[CommittedPartition] = []


def tell(partition: CommittedPartition) -> None:
    told.append(partition)


def test_none_of_them_is_no_commit() -> None:
    assert commit_of({"path": "/out"}) is None


def test_what_is_not_said_is_as_with_output() -> None:
    assert commit_of(SUCCESS) == PartitionCommit(policy=("success-file",))


def test_all_of_them() -> None:
    given = {
        "sink.partition-commit.trigger": "partition-time",
        "sink.partition-commit.delay": "1 h",
        "sink.partition-commit.policy.kind": "custom, success-file",
        "sink.partition-commit.policy.class": f"{__name__}.tell",
        "sink.partition-commit.success-file.name": "_DONE",
        "sink.partition-commit.watermark-time-zone": "Europe/Vienna",
        "partition.time-extractor.timestamp-pattern": "{day} {hour}:00",
    }
    commit = commit_of(given)
    policies = (Imported(f"{__name__}.tell"), "success-file")
    assert commit == PartitionCommit(PARTITION_TIME, 3600.0, policies, "_DONE", "", "{day} {hour}:00", "Europe/Vienna")
    again: PartitionCommit = pickle.loads(pickle.dumps(commit))  # noqa: S301  # our own
    eight = 1782885600000  # 2026-07-01 08:00 in Vienna
    path = "day=2026-07-01/hour=07"
    assert again.decides.due(path, 0, Moment(eight, 0))
    assert not again.decides.due(path, 0, Moment(eight - 1, 0))


def test_a_function_of_the_program_is_called() -> None:
    partition = CommittedPartition("day=1", "file:///out/day=1", {"day": "1"}, [3])
    Imported(f"{__name__}.tell")(partition)
    assert told.pop() is partition


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("0", 0.0), ("1 min", 60.0)])
def test_delays(text: str, seconds: float) -> None:
    commit = commit_of({commit_options.DELAY: text})
    assert commit is not None
    assert (commit.delay, commit.trigger) == (seconds, PROCESS_TIME)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"trigger": "daily"}, "no trigger 'daily': choose process-time or partition-time"),
        ({"trigger": "partition-time"}, r"nobody knows here .* state it as time_zone \(sink\.partition-commit\.water"),
        ({"delay": "soon"}, r"is 'soon': give 0 or more seconds, or a duration such as 1 h\."),
        ({"delay": "-1 s"}, "give 0 or more seconds"),
        ({"policy.kind": "metastore,success-file"}, r"without a Spark session, .* use ha\.spark\.Output for that"),
        ({"policy.kind": "mail"}, "has no 'mail': choose success-file or custom"),
        ({"policy.kind": " , "}, "needs a list of policies"),
        ({"policy.kind": "custom"}, "belong together: give both"),
        ({"policy.class": "a.b"}, "belong together: give both"),
        ({"policy.kind": "custom", "policy.class": "tell"}, "no such function"),
        ({"policy.kind": "custom", "policy.class": "no.such.module"}, "no such function"),
        ({"policy.kind": "custom", "policy.class": "os.no_such"}, "no such function"),
        ({"policy.kind": "custom", "policy.class": "os.sep"}, "cannot be called"),
        ({"success-file.name": "done"}, "would take a file 'done' for rows"),
        ({"watermark-time-zone": "Mars"}, "no time zone 'Mars'"),
    ],
)
def test_one_sentence_for_each_mistake(given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSettings, match=says):
        commit_of({f"sink.partition-commit.{name}": value for name, value in given.items()})


def test_a_pattern_of_flink_s_is_refused() -> None:
    with pytest.raises(InvalidSettings, match=r"write \{day\} for \$day"):
        commit_of({"partition.time-extractor.timestamp-pattern": "$day $hour:00:00"})


def test_partitions_are_needed() -> None:
    with pytest.raises(InvalidSettings, match="'output' has no partitions to commit: give partitionBy"):
        options_of({"path": "/out", "queryName": "q", **SUCCESS}, LEADER)


def test_what_a_query_with_a_name_gets() -> None:
    made = options_of({"path": "/out", "partitionBy": "day", "queryName": "q", **SUCCESS}, LEADER)
    assert (made.commit, made.checkpoint) == (PartitionCommit(policy=("success-file",)), "spark/q")
    assert hash(made) == hash(options_of({"path": "/out", "partitionBy": "day", "queryName": "q", **SUCCESS}, LEADER))
