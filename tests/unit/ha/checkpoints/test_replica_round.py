"""Replication, pure: which line of batches it is, what is ambiguous, in which order files come and go."""

import pytest
from hypothesis import given

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.replica_round import ReplicaLine, ambiguous, anchor, beyond, is_unique, phases, same_line, surplus
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, HDFS, ROCKSDB_IDS, SimulatedSpark
from tests.unit.ha.checkpoints.test_closure import closed, runs, until_batch

UUID = "00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("batch", "newest", "here", "there", "line"),
    [
        (7, 5, b"five", b"five", ReplicaLine.SAME),
        (7, 5, b"five", b"another five", ReplicaLine.OTHER),
        (7, 7, b"seven", b"seven", ReplicaLine.SAME),
        (5, 7, None, b"seven", ReplicaLine.OTHER),  # it was put back
        (7, 7, None, b"seven", ReplicaLine.UNKNOWN),
        (300, 7, None, b"seven", ReplicaLine.UNKNOWN),  # Spark has forgotten it
        (7, None, None, None, ReplicaLine.UNKNOWN),
    ],
)
def test_the_line_is_told_by_the_newest_offsets(
    batch: int, newest: int | None, here: bytes | None, there: bytes | None, line: ReplicaLine
) -> None:
    assert same_line(batch, newest, here, there) is line


def test_the_anchor_is_the_newest_offset() -> None:
    assert anchor(["offsets/9", "offsets/10", "commits/11", "offsets/x"]) == 10
    assert anchor(["commits/11"]) is None


@pytest.mark.parametrize(
    ("path", "unique"),
    [
        (f"state/0/0/left/5_{UUID}.changelog", True),
        (f"state/0/0/left/5_{UUID}.changelog.crc", True),
        (f"state/0/0/SSTs/000001-{UUID}.sst", True),
        ("state/0/0/SSTs/000001.sst", False),
        ("state/0/0/5.changelog", False),
        ("state/0/0/5.zip", False),
        ("offsets/5", False),
        ("sources/0/5.compact", False),
        ("metadata", False),
    ],
)
def test_versions_with_ids_and_tables_say_what_they_are(path: str, unique: bool) -> None:
    assert is_unique(path) is unique


def test_ambiguous_is_what_is_there_and_not_unique() -> None:
    spark = until_batch(ROCKSDB_IDS, 5)
    closure = closed(spark.files, 5)
    present = dict(spark.sizes())
    del present["offsets/5"]
    found = ambiguous(closure, present)
    assert "metadata" in found
    assert "commits/5" in found
    assert "offsets/5" not in found
    assert not any("changelog" in path for path in found)


@given(runs)
def test_offsets_come_first_then_what_is_named_then_what_names_then_the_commit(spark: SimulatedSpark) -> None:
    newest = spark.newest()
    if newest is None:
        return
    found = closed(spark.files, newest)
    offsets, named, rest, commit = phases(found)
    assert (offsets, commit) == ([f"offsets/{newest}"], [f"commits/{newest}"])
    assert sorted([*offsets, *named, *rest, *commit]) == sorted(found.files.keys() | found.rebuilt.keys())
    assert all("/SSTs/" in path or "_metadata/schema" in path for path in named)
    assert not any("/SSTs/" in path for path in rest)


def test_commits_go_first_and_tables_last() -> None:
    table, zipped = f"state/0/0/SSTs/1-{UUID}.sst", "state/0/0/5.zip"
    going = surplus(["commits/4", "commits/5", table, zipped, "offsets/4"], [["commits/5"], []])
    assert going == [["commits/4"], ["offsets/4", zipped], [table]]
    assert surplus(["commits/5"], [["commits/5"]]) == []


@pytest.mark.parametrize("kind", FORMATS)
def test_a_cut_leaves_the_closure_and_nothing_newer(kind: str) -> None:
    spark = until_batch(kind, 9)
    closure = closed(spark.files, 8)
    names = CheckpointFiles({**spark.sizes(), "state/0/_metadata/v2/9": 1, "state/0/_metadata/v2/8": 1})
    gone = {path for paths in beyond(names, closure) for path in paths}
    left = names.sizes.keys() - gone
    assert closure.files.keys() <= left
    assert CheckpointFiles(dict.fromkeys(left, 1)).batches[-1] == 8
    assert {path for path in left if path.startswith("sources/")} <= closure.files.keys()
    assert "state/0/_metadata/v2/9" in gone
    assert "state/0/_metadata/v2/8" in left
    for path in left:
        version = CheckpointFiles.state_file(path)
        assert version is None or version[1].number <= 9
    if kind == HDFS:
        assert "state/0/0/left/9.delta" in left
        assert "state/0/0/left/10.delta" in gone
    files = {path: data for path, data in spark.files.items() if path in left}
    assert closed(files, 8).restorable
