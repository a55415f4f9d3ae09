"""Inspection: what a checkpoint says, by small files for one batch; by names for all, as their closures say."""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.inspection import BatchRange, Inspection, Skew, by_names, inspect
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import Condition
from store.open import open_files
from tests.unit.ha.checkpoints.simulated_spark import HDFS, ROCKSDB, ROCKSDB_IDS, SimulatedSpark, utf
from tests.unit.ha.checkpoints.test_closure import closed, names, runs, until_batch
from tests.unit.ha.checkpoints.test_schemas import KEY, KEYS, VALUE, VALUES, chunks


def inspected(simulated: SimulatedSpark, place: Path, batch: int | None = None) -> Inspection:
    simulated.write_to(place)
    with open_files(place.as_uri()) as files:
        return inspect(CheckpointReader(Tree(files)), batch)


def test_the_state_of_each_store_is_told(tmp_path: Path) -> None:
    simulated = until_batch(ROCKSDB_IDS, 6)
    simulated.files["state/0/0/left/_metadata/schema"] = utf("v2") + chunks(KEY) + chunks(VALUE)
    found = inspected(simulated, tmp_path)
    assert (found.id, found.batch, found.format, found.partitions) == ("b0-b0-b0-b0-b0", 6, "RocksDB with ids", 2)
    assert found.sources == {"0": {"logOffset": 6}}
    assert found.settings == {"spark.sql.shuffle.partitions": "2"}
    (join,) = found.operators
    left, right = join.stores
    assert (join.id, join.name, left.name, right.name) == (0, "join", "left", "right")
    assert (left.partitions, left.replayed) == (2, 1)
    assert (left.keys, left.keys_from, left.keys_to) == (12, 5, 5), "as of the snapshot of version 6"
    assert left.key_skew == Skew(1.0, 0)
    assert [(each.name, each.key, each.value) for each in left.states] == [("default", KEYS, VALUES)]
    assert right.states == []
    whole = closed(simulated.files, 6)
    assert (found.files, found.bytes) == (len(whole.files), whole.bytes)
    stores = sum(size for path, size in whole.files.items() if path.startswith("state/0/") and "_metadata" not in path)
    assert left.bytes + right.bytes == stores


def test_keys_are_not_counted_where_spark_does_not_count_them(tmp_path: Path) -> None:
    found = inspected(until_batch(HDFS, 4), tmp_path)
    (left, _) = found.operators[0].stores
    assert (found.format, left.keys, left.keys_from, left.key_skew) == ("HDFSBackedStateStore", None, None, None)


def test_the_largest_partition_is_compared_with_the_mean(tmp_path: Path) -> None:
    simulated = until_batch(HDFS, 4)
    for path in [each for each in simulated.files if each.startswith("state/0/1/left/")]:
        simulated.files[path] = b"x" * 300
    for path in [each for each in simulated.files if each.startswith("state/0/0/left/")]:
        simulated.files[path] = b"x" * 100
    left = inspected(simulated, tmp_path).operators[0].stores[0]
    assert left.byte_skew == Skew(1.5, 1)


def test_batches_with_the_same_hole_are_one_row(tmp_path: Path) -> None:
    simulated = until_batch(HDFS, 4)
    hole = "state/0/1/left/4.delta"
    del simulated.files[hole]
    found = inspected(simulated, tmp_path)
    assert [(each.first, each.last, each.condition, each.missing) for each in found.batches] == [
        (0, 1, Condition.REBUILT, ""),
        (2, 2, Condition.RESTORABLE, ""),
        (3, 4, Condition.DAMAGED, hole),
    ]
    assert found.batch == 2, "the newest that can be continued is described"


def test_a_table_that_is_missing_is_damage_of_the_batch_that_is_described(tmp_path: Path) -> None:
    simulated = until_batch(ROCKSDB, 5)
    newest = closed(simulated.files, 5)
    table = next(each for each in newest.files if each.endswith(".sst"))
    del simulated.files[table]
    assert inspected(simulated, tmp_path / "1").batches[-1].condition is Condition.REPAIRED
    changes = [each for each in simulated.files if each.startswith(f"{table.partition('/SSTs')[0]}/2.changelog")]
    for each in changes:
        del simulated.files[each]
    last = inspected(simulated, tmp_path / "2").batches[-1]
    assert last == BatchRange(5, 5, Condition.DAMAGED, table, "It is missing.")


def test_an_earlier_batch_can_be_described(tmp_path: Path) -> None:
    found = inspected(until_batch(ROCKSDB, 6), tmp_path, 4)
    assert (found.batch, found.sources, found.operators[0].stores[0].keys_to) == (4, {"0": {"logOffset": 4}}, 2)


def test_a_checkpoint_without_a_batch_says_so(tmp_path: Path) -> None:
    simulated = until_batch(HDFS, 0)
    for path in [each for each in simulated.files if not each.startswith("metadata")]:
        del simulated.files[path]
    found = inspected(simulated, tmp_path)
    assert (found.batches, found.batch, found.format, found.operators, found.files) == ([], None, "", [], 0)


@pytest.mark.parametrize("path", ["offsets/4", "metadata", "state/0/_metadata/metadata"])
def test_what_cannot_be_read_is_left_out_and_does_not_stop_the_rest(path: str, tmp_path: Path) -> None:
    simulated = until_batch(HDFS, 4)
    simulated.files[path] = b"nothing"
    found = inspected(simulated, tmp_path)
    assert found.batches
    assert found.operators


def test_sources_with_names_have_logs_of_those_names() -> None:
    simulated = until_batch(HDFS, 4)
    files = {each.replace("sources/0/", "sources/orders/"): data for each, data in simulated.files.items()}
    for batch in range(5):
        said = files[f"offsets/{batch}"].decode().split("\n")
        files[f"offsets/{batch}"] = "\n".join(["v2", said[1], f"orders:{said[2]}"]).encode()
    found = closed(files, 4)
    assert {each for each in found.files if each.startswith("sources/")} == {
        "sources/orders/2.compact",
        "sources/orders/3",
        "sources/orders/4",
    }
    assert CheckpointFiles(dict.fromkeys(files, 0)).sources.keys() == {"orders"}
    del files["sources/orders/3"]
    assert closed(files, 4).missing == "sources/orders/3"
    assert json.loads(files["offsets/4"].decode().split("\n")[2].partition(":")[2]) == {"logOffset": 4}


def looked(files: Mapping[str, bytes]) -> tuple[list[Closure], set[str]]:
    there = names(files)
    asking = by_names(there, there.batches)
    said: dict[str, bytes | None] | None = None
    read: set[str] = set()
    while True:
        try:
            wanted = asking.send(said)  # type: ignore[arg-type]  # None starts it
        except StopIteration as end:
            found: list[Closure] = end.value
            return found, read
        read |= wanted
        said = {path: files.get(path) for path in read}


@given(runs)
def test_names_tell_which_batches_can_be_continued(simulated: SimulatedSpark) -> None:
    found, read = looked(simulated.files)
    assert not any(path.endswith(".zip") for path in read)
    for each in found:
        whole = closed(simulated.files, each.batch)
        assert (each.restorable, each.rebuilt) == (whole.restorable, whole.rebuilt)


@given(runs, st.randoms(use_true_random=False))
def test_a_hole_is_seen_wherever_the_closure_sees_it(simulated: SimulatedSpark, random: Random) -> None:
    lost = random.choice(sorted(simulated.files))
    del simulated.files[lost]
    for each in looked(simulated.files)[0]:
        whole = closed(simulated.files, each.batch)
        if lost.endswith((".zip", ".sst")):
            assert each.restorable or not whole.restorable
        else:
            assert each.restorable == whole.restorable, lost


def test_the_first_missing_file_is_named() -> None:
    files = until_batch(HDFS, 4).files
    del files["state/0/1/left/4.delta"]
    assert [(each.batch, each.missing) for each in looked(files)[0] if each.missing] == [
        (3, "state/0/1/left/4.delta"),
        (4, "state/0/1/left/4.delta"),
    ]


def test_retained_commits_save_the_reading_of_changelogs() -> None:
    files = until_batch(ROCKSDB_IDS, 4).files
    _, read = looked(files)
    assert not any(path.endswith(".changelog") for path in read)
    del files["commits/0"], files["commits/1"]
    found, read = looked(files)
    assert {path.partition("_")[0].rpartition("/")[2] for path in read if path.endswith(".changelog")} <= {"3", "4"}
    assert all(each.restorable for each in found)


def test_a_damaged_changelog_is_named() -> None:
    files = until_batch(ROCKSDB_IDS, 1).files
    del files["commits/0"]
    damaged = next(path for path in files if path.startswith("state/0/0/left/2_"))
    files[damaged] = b"nothing of the kind"
    assert [each.missing for each in looked(files)[0]] == [damaged]
