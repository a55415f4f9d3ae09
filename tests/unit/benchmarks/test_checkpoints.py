"""Benchmark of checkpoints: what it makes is a checkpoint, and what it finds is in its report."""

from pathlib import Path

from benchmarks import checkpoints
from benchmarks.checkpoints.made import FIRST_BATCH, SNAPSHOT_EVERY, Size, make
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.inspection import inspect
from ha.checkpoints.trees import Tree
from store.open import open_files


def test_every_batch_of_what_is_made_can_be_continued(tmp_path: Path) -> None:
    size = Size(partitions=2, operators=2, batches=SNAPSHOT_EVERY + 3, table_bytes=100)
    made = make(tmp_path / "checkpoint", size)
    with open_files(tmp_path.as_uri()) as files:
        reader = CheckpointReader(Tree(files, "checkpoint"))
        names = reader.files()
        found = inspect(reader)
        closures = reader.closures(names, names.batches)
    assert all(each.restorable for each in closures)
    assert (closures[0].batch, len(closures)) == (FIRST_BATCH, size.batches)
    assert max(max(each.replayed.values()) for each in closures) == SNAPSHOT_EVERY - 1
    assert (found.format, found.partitions, len(found.operators)) == ("RocksDB with ids", 2, 2)
    assert made["files"] > size.partitions * size.operators * size.batches


def test_the_report_says_whether_the_targets_are_met() -> None:
    rounds = {
        checkpoints.INSPECT: [checkpoints.Asked(1.0, 0.9)],
        checkpoints.VERIFY: [checkpoints.Asked(11.0, 9.0)],
        checkpoints.SPARK: [checkpoints.Asked(14.0, 0.5)],
    }
    result = checkpoints.summarise(rounds, {"files": 5, "bytes": 10}, {"reads": 3, "bytes_read": 4_000_000})
    assert [(each.measured, each.met) for each in result.targets] == [(1.0, True), (4.0, True), (11.0, False)]
    assert [row[0] for row in result.rows] == list(rounds)
