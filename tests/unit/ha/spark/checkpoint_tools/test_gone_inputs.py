"""Inputs that are gone: a rewind says how many files nobody will read again."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.inputs import files_since
from ha.checkpoints.trees import Tree
from ha.spark.checkpoint_tools import rewinding
from ha.spark.checkpoint_tools.rewinding import GoneInputs, gone_inputs
from store.bounded import BoundedFiles
from store.errors import PermissionDenied
from store.open import open_files
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch


def opened(uri: str) -> BoundedFiles:
    return open_files(uri)


def uris(folder: Path, *names: str) -> list[str]:
    return [f"{folder.as_uri()}/{each}" for each in names]


@pytest.mark.parametrize("batch", range(1, 6))
def test_the_logs_tell_what_was_read_after_a_batch(batch: int, tmp_path: Path) -> None:
    simulated = until_batch(HDFS, 5)
    simulated.write_to(tmp_path)
    with open_files(tmp_path.as_uri()) as files:
        reader = CheckpointReader(Tree(files))
        found = files_since(reader, reader.files(), batch)
    assert found == ([f"file:///in/{each}" for each in range(batch + 1, 6)], "")


@pytest.mark.parametrize("damage", [b"", b"v9\n", b'v1\n{"path":"file:///in/5","times'], ids=["empty", "new", "cut"])
@pytest.mark.parametrize(("path", "known"), [("sources/0/5.compact", [2, 3, 4]), ("offsets/1", [])])
def test_a_log_that_cannot_be_read_is_named(damage: bytes, path: str, known: list[int], tmp_path: Path) -> None:
    until_batch(HDFS, 5).write_to(tmp_path)
    (tmp_path / path).write_bytes(damage)
    with open_files(tmp_path.as_uri()) as files:
        reader = CheckpointReader(Tree(files))
        assert files_since(reader, reader.files(), 1) == ([f"file:///in/{each}" for each in known], path)
        assert files_since(reader, reader.files(), 7) == ([], "offsets/7")


def test_what_is_gone_is_counted_and_one_is_named(tmp_path: Path) -> None:
    for name in ("a 1.txt", "b", "day=1/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    read = [*uris(tmp_path, "a%201.txt", "b", "x%202", "y"), *uris(tmp_path / "day=1", "c"), *uris(tmp_path / "z", "d")]
    assert gone_inputs(opened, "file:///jobs", read) == GoneInputs(6, 3, f"{tmp_path.as_uri()}/x 2", 0)
    assert gone_inputs(opened, "file:///jobs", []) == GoneInputs()


def test_what_cannot_be_looked_for_is_said_to_be_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: str) -> Any:
        def call(*_: object) -> Any:
            raise PermissionDenied("no")

        return SimpleNamespace(call=call, close=lambda: None)

    assert gone_inputs(refused, "file:///jobs", uris(tmp_path, "a", "b")) == GoneInputs(2, unknown=2)
    assert gone_inputs(opened, "hdfs://names/jobs", uris(tmp_path, "a")) == GoneInputs(1, unknown=1), "another host's"
    assert gone_inputs(opened, "file:///jobs", ["s3a://bucket/in/a"]) == GoneInputs(1, unknown=1)
    monkeypatch.setattr(rewinding, "MOST_FOLDERS", 1)
    read = [*uris(tmp_path / "a", "1"), *uris(tmp_path / "b", "1", "2")]
    assert gone_inputs(opened, "file:///jobs", read) == GoneInputs(3, 1, f"{tmp_path.as_uri()}/a/1", 2)
