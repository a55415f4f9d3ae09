"""Options of the format ``ha``: what is accepted, and one sentence for everything else."""

import pytest

from ha.spark.sink.leader_home import LeaderHome, home_of_environment, settling
from ha.spark.sink.options import SinkOptions, options_of
from leader.errors import InvalidName, InvalidSettings

LEADER = "hdfs://names:8020/ha/orders/leader"


def test_a_path_is_enough() -> None:
    expected = SinkOptions("hdfs://names:8020/out", "parquet", (), "output", "snappy")
    assert options_of({"path": "hdfs://names:8020/out/"}, LEADER) == expected


def test_all_of_them_in_any_case() -> None:
    given = {"PATH": "/out", "Format": "ORC", "partitionBy": " day , hour,", "name": "clean", "compression": "ZLIB"}
    assert options_of({**given, "checkpointlocation": "/x"}, LEADER) == SinkOptions(
        "hdfs://names:8020/out", "orc", ("day", "hour"), "clean", "zlib"
    )


@pytest.mark.parametrize("path", ["/out/x", "hdfs:///out/x", "hdfs:/out/x"])
def test_a_path_without_a_host_is_on_the_leaders_file_system(path: str) -> None:
    assert options_of({"path": path}, LEADER).path == "hdfs://names:8020/out/x"


def test_another_file_system_is_kept_for_the_error_that_names_it() -> None:
    assert options_of({"path": "file:///out"}, LEADER).path == "file:///out"


def test_uncompressed_is_none() -> None:
    assert options_of({"path": "/out", "compression": "uncompressed"}, LEADER).compression == "none"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, r"needs option\('path', URI\)"),
        ({"path": " "}, r"needs option\('path', URI\)"),
        ({"path": "out"}, "'out' is relative: give the format ha an absolute one"),
        ({"path": "/out", "format": "json"}, "of format 'json': choose parquet, orc or text, or use ha.spark.Output"),
        ({"path": "/out", "format": "text", "compression": "gzip"}, "compress text with 'gzip': choose none"),
        ({"path": "/out", "compression": "zlib"}, "choose snappy, zstd, gzip, lz4 or none"),
        ({"path": "/out", "partitionBy": "a,b,a"}, "names a column twice"),
        ({"path": "/out", "partitionBy": "a,batch"}, "has folders batch=... of its own"),
        ({"path": "/out", "partitonBy": "a"}, "no option 'partitonby': it has path, format, partitionBy, name"),
    ],
)
def test_one_sentence_for_each_mistake(given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSettings, match=says):
        options_of(given, LEADER)


def test_a_name_that_no_output_can_have() -> None:
    with pytest.raises(InvalidName):
        options_of({"path": "/out", "name": "a/b"}, LEADER)


KNOWN = {"HA_JOB": "orders", "HA_EPOCH": "7", "HA_SESSION_ID": "x", "HA_LEADER_DIRECTORY": LEADER}


def test_the_leader_in_the_environment() -> None:
    assert home_of_environment(KNOWN) == LeaderHome("orders", 7, "x", LEADER)


@pytest.mark.parametrize("name", KNOWN)
def test_without_a_leader_it_says_how_to_get_one(name: str) -> None:
    with pytest.raises(
        InvalidSettings, match=r"needs a leader: start the program with `ha run --spark .*register_form"
    ):
        home_of_environment({**KNOWN, name: ""})


def test_it_settles_when_the_program_does(tmp_path: object) -> None:
    settle = f"{tmp_path}/settle"
    assert not settling({})
    assert not settling({"HA_SETTLE": settle})
    with open(f"{settle}.settling", "w"):  # noqa: PTH123
        assert settling({"HA_SETTLE": settle})
