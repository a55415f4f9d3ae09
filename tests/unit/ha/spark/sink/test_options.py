"""Options of the format ``ha``: what is accepted, and one sentence for everything else."""

import pickle
from pathlib import Path

import pytest

from ha.outputs.partition_commit import PARTITION_TIME, PROCESS_TIME, CommittedPartition, Moment, PartitionCommit
from ha.program.grant_file import grant
from ha.spark.sink import options
from ha.spark.sink.leader_home import LeaderHome, home_of_environment, settling
from ha.spark.sink.options import Imported, SinkOptions, commit_of, options_of
from leader.errors import InvalidName, InvalidSettings
from leader.layout.names import LeaderDirectory
from tests.unit.ha.led import session

LEADER = "hdfs://names:8020/ha/orders/leader"

NAMED = {"queryname": "orders"}
"""As Spark adds it."""


def test_a_path_is_enough() -> None:
    expected = SinkOptions("hdfs://names:8020/out", "parquet", (), "output", "snappy", "spark/orders")
    assert options_of({"path": "hdfs://names:8020/out/", **NAMED}, LEADER) == expected


def test_all_of_them_in_any_case() -> None:
    given = {"PATH": "/out", "Format": "ORC", "partitionBy": " day , hour,", "name": "clean", "compression": "ZLIB"}
    assert options_of({**given, "checkpointlocation": f"{LEADER}/spark/x/"}, LEADER) == SinkOptions(
        "hdfs://names:8020/out", "orc", ("day", "hour"), "clean", "zlib", "spark/x"
    )


@pytest.mark.parametrize(
    ("path", "used"),
    [
        *((path, "hdfs://names:8020/out/x") for path in ("/out/x", "hdfs:///out/x", "hdfs:/out/x")),
        ("file:///out", "file:///out"),  # kept for the error that names it
        *(
            (path, f"hdfs://names:8020{path}")
            for path in ("/out/50%41 ä,b", "/out/a b", "/out/[x]{1}&'^", "/out/日/🚀", "/out//x/../y", "/out/it\x92s")
        ),
    ],
)
def test_a_path_is_used_as_it_was_given_and_without_a_host_on_the_leaders_file_system(path: str, used: str) -> None:
    assert options_of({"path": path, **NAMED}, LEADER).path == used


def test_uncompressed_is_none() -> None:
    assert options_of({"path": "/out", "compression": "uncompressed", **NAMED}, LEADER).compression == "none"


LOSSY = ["/out/x#1", "/out/y?z", "/out/x#", " /out", "/out/x ", "/out/a\tb", "hdfs://names:8020/o#1"]
"""Paths of which something would be lost."""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, r"needs option\('path', URI\)"),
        ({"path": " "}, "has white space"),
        ({"path": "out"}, "'out' is relative: give the format ha an absolute one"),
        ({"path": "/out", "format": "json"}, "of format 'json': choose parquet, orc or text, or use ha.spark.Output"),
        ({"path": "/out", "format": "text", "compression": "gzip"}, "compress text with 'gzip': choose none"),
        ({"path": "/out", "compression": "zlib"}, "choose snappy, zstd, gzip, lz4 or none"),
        ({"path": "/out", "partitionBy": "a,b,a"}, "names a column twice"),
        ({"path": "/out", "partitionBy": "a,batch"}, "has folders batch=... of its own"),
        ({"path": "/out", "partitonBy": "a"}, "no option 'partitonby': it has path, format, partitionBy, name"),
        *(({"path": path}, r"path: .* (where a URI's path ends|has white space)") for path in LOSSY),
    ],
)
def test_one_sentence_for_each_mistake(given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSettings, match=says):
        options_of({**NAMED, **given}, LEADER)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "it has no name, so it begins anew at each start: set queryName"),
        ({"queryName": "bronze/orders"}, "'bronze/orders' cannot be the name of a query with a checkpoint here"),
        ({"queryName": "orders v2"}, "cannot be the name of a query"),
        ({"queryName": "q", "checkpointLocation": "/own/x"}, "its checkpoint /own/x is not in hdfs://.*/spark, so no"),
        ({"checkpointLocation": f"{LEADER}/spark/a/b"}, "is not in"),
        ({"checkpointLocation": f"{LEADER}/spark/50%"}, "'50%' cannot be the name"),
    ],
)
def test_a_query_that_would_not_go_on_after_a_takeover_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSettings, match=f"The format ha begins no batch of the query .*{says}"):
        options_of({"path": "/out", **given}, LEADER)


def test_a_checkpoint_below_the_leader_directory_may_be_said() -> None:
    for place in (f"{LEADER}/spark/x", "/ha/orders/leader/spark/x", "hdfs:///ha/orders/leader/spark/x/"):
        assert options_of({"path": "/out", "checkpointLocation": place}, LEADER).checkpoint == "spark/x"


def test_a_name_that_no_output_can_have() -> None:
    with pytest.raises(InvalidName):
        options_of({"path": "/out", "name": "a/b"}, LEADER)


KNOWN = {"HA_JOB": "orders", "HA_EPOCH": "7", "HA_SESSION_ID": "x", "HA_LEADER_DIRECTORY": LEADER}


def test_the_leader_in_the_environment() -> None:
    assert home_of_environment(KNOWN) == LeaderHome("orders", 7, "x", LEADER)


@pytest.mark.parametrize("name", KNOWN)
def test_without_a_leader_it_says_how_to_get_one(name: str) -> None:
    with pytest.raises(InvalidSettings, match=r"needs a leader: start the query in the block of ha\.spark\.lead"):
        home_of_environment({**KNOWN, name: ""})


def test_the_leader_of_a_warm_standby_is_in_its_grant(tmp_path: Path) -> None:
    warm = {"HA_JOB": "orders", "HA_EPOCH": "", "HA_SESSION_ID": "", "HA_LEADER_DIRECTORY": ""}
    warm["HA_GRANT"] = str(tmp_path / "grant")
    with pytest.raises(InvalidSettings, match="needs a leader"):
        home_of_environment(warm)
    directory = LeaderDirectory(8, session(8))
    grant(tmp_path / "grant", directory, f"{LEADER}-8")
    assert home_of_environment(warm) == LeaderHome("orders", 8, session(8), f"{LEADER}-8")


def test_it_settles_when_the_program_does(tmp_path: object) -> None:
    settle = f"{tmp_path}/settle"
    assert not settling({})
    assert not settling({"HA_SETTLE": settle})
    with open(f"{settle}.settling", "w"):  # noqa: PTH123
        assert settling({"HA_SETTLE": settle})


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
    commit = commit_of({options.DELAY: text})
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
def test_one_sentence_for_each_mistake_of_a_partition_commit(given: dict[str, str], says: str) -> None:
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
