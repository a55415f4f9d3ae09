"""Options of the format ``ha``: what is accepted, and one sentence for everything else."""

from pathlib import Path

import pytest

from ha.program.grant_file import grant
from ha.spark.sink.leader_home import LeaderHome, home_of_environment, settling
from ha.spark.sink.options import SinkOptions, options_of
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
