"""Inputs: the folders that file sources have read, and which of them a checkpoint leaves behind when it moves."""

from pathlib import Path

import pytest

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.inputs import bound, inputs
from ha.checkpoints.trees import Tree
from store.open import open_files
from tests.unit.ha.checkpoints.simulated_spark import HDFS, SimulatedSpark
from tests.unit.ha.checkpoints.test_closure import closed, until_batch

OLD, NEW = "hdfs://old:8020", "hdfs://new:8020"


def on_hdfs(simulated: SimulatedSpark, folder: str = f"{OLD}/out/clean") -> SimulatedSpark:
    for path, data in simulated.files.items():
        if path.startswith("sources/"):
            simulated.files[path] = data.replace(b"file:///in/", f"{folder}/".encode())
    return simulated


def read(simulated: SimulatedSpark, batch: int, place: Path) -> list[str]:
    found = closed(simulated.files, batch)
    simulated.write_to(place)
    with open_files(place.as_uri()) as files:
        return inputs(CheckpointReader(Tree(files)), [*found.files, *found.rebuilt.values()])


@pytest.mark.parametrize("batch", [2, 3, 4])
def test_a_compacted_log_and_a_later_entry_tell_the_folder(batch: int, tmp_path: Path) -> None:
    assert read(on_hdfs(until_batch(HDFS, batch)), batch, tmp_path) == [f"{OLD}/out/clean"]


def test_a_log_that_has_to_be_rebuilt_tells_the_folder(tmp_path: Path) -> None:
    simulated = until_batch(HDFS, 5)
    for path in [each for each in simulated.files if each.startswith("sources/") and not each.endswith("/5.compact")]:
        del simulated.files[path]
    assert closed(simulated.files, 4).rebuilt, "the batch of the test"
    assert read(on_hdfs(simulated), 4, tmp_path) == [f"{OLD}/out/clean"]


def test_partitions_are_no_part_of_the_folder(tmp_path: Path) -> None:
    simulated = on_hdfs(until_batch(HDFS, 1), f"{OLD}/out/clean/region=eu/batch=3")
    assert read(simulated, 1, tmp_path) == [f"{OLD}/out/clean"]


def test_each_source_counts_and_one_that_reads_no_files_does_not(tmp_path: Path) -> None:
    simulated = until_batch(HDFS, 1)
    simulated.files["sources/1/0"] = b'v1\n{"path":"hdfs://old:8020/other/part-0","timestamp":1,"batchId":0}'
    simulated.files["sources/2/0"] = b"1795470577723"
    simulated.write_to(tmp_path)
    with open_files(tmp_path.as_uri()) as files:
        assert inputs(CheckpointReader(Tree(files)), simulated.files) == ["file:///in", f"{OLD}/other"]


def test_what_is_on_another_file_system_is_told() -> None:
    read_by = {"sums": [f"{OLD}/out/clean"], "clean": ["file:///in"], "totals": [f"{NEW}/out/sums"]}
    (said,) = bound(read_by, f"{NEW}/jobs")
    assert said.startswith(f"sums has read files of {OLD}/out/clean, which is on another file system than {NEW}/jobs")
    assert "`Wrong FS`" in said
    assert [each.split()[0] for each in bound(read_by, f"{OLD}/jobs")] == ["totals"]
    assert len(bound(read_by, "file:///jobs")) == 2
    assert bound({}, NEW) == []


def test_another_port_or_scheme_is_another_file_system() -> None:
    assert bound({"sums": ["hdfs://old:9000/out"]}, OLD)
    assert bound({"sums": ["webhdfs://old:8020/out"]}, OLD)
    assert not bound({"sums": ["hdfs://old:8020/out"]}, f"{OLD}/elsewhere")
