"""Files of a task: each row in one file of its partition, whatever the partition is called, within bounds."""

import threading
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from ha.spark.sink import part_files
from ha.spark.sink.options import COMPRESSIONS, SinkOptions
from ha.spark.sink.part_files import PartFiles, escaped, split
from store.streams import Stream
from tests.patience import PATIENCE_S


def options(kind: str = "parquet", columns: tuple[str, ...] = (), compression: str = "") -> SinkOptions:
    return SinkOptions("file:///out", kind, columns, "output", compression or COMPRESSIONS[kind][0], "spark/q")


def batch(**columns: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_rows_go_to_their_partitions_in_order() -> None:
    rows = batch(n=[1, 2, 3, 4, 5], p=["b", "a", "b", None, ""], day=[date(2026, 1, 2)] * 5)
    found = {path: part.to_pydict() for path, part in split(rows, ("day", "p"))}
    assert found == {
        "day=2026-01-02/p=a": {"n": [2]},
        "day=2026-01-02/p=b": {"n": [1, 3]},
        "day=2026-01-02/p=__HIVE_DEFAULT_PARTITION__": {"n": [4, 5]},
    }


def test_values_of_each_type_are_named_as_spark_names_them() -> None:
    rows = batch(n=[1], i=[-7], b=[True], text=["x/y:z 50%"])
    ((path, _),) = split(rows, ("i", "b", "text"))
    assert path == "i=-7/b=true/text=x%2Fy%3Az 50%25"


def test_names_are_escaped_as_by_spark() -> None:
    assert escaped("\x00\x85it\x92s") == "%00\x85it\x92s"
    assert escaped("a b,ä\n\"#%'*/:=?\\{[]^}\x7f") == "a b,ä%0A%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E}%7F"


def test_nothing_is_nothing(tmp_path: Path) -> None:
    files = PartFiles(tmp_path.as_uri(), options(), 0)
    files.add(batch(n=[]))
    assert files.finish() == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize("which", range(5))
def test_each_format_and_compression(tmp_path: Path, kind: str, which: int) -> None:
    files = PartFiles(tmp_path.as_uri(), options(kind, (), COMPRESSIONS[kind][which]), 3)
    files.add(batch(n=[1, 2]))
    files.add(batch(n=[3]))
    ((name, size),) = files.finish()[""].items()
    assert name.startswith("part-00003-")
    assert name.endswith(f".{kind}")
    assert (tmp_path / name).stat().st_size == size
    read = pyarrow.parquet.read_table if kind == "parquet" else pyarrow.orc.read_table
    assert read(tmp_path / name).to_pydict() == {"n": [1, 2, 3]}


def test_text(tmp_path: Path) -> None:
    files = PartFiles(tmp_path.as_uri(), options("text", ("p",)), 0)
    files.add(batch(line=["ä", None, "b"], p=[1, 1, 1]))
    ((name, size),) = files.finish()["p=1"].items()
    assert (tmp_path / "p=1" / name).read_bytes() == "ä\n\nb\n".encode()
    assert size == 6


def test_open_files_and_kept_rows_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_files, "MOST_OPEN", 2)
    monkeypatch.setattr(part_files, "MOST_BYTES", 40)
    files = PartFiles(tmp_path.as_uri(), options("text", ("p",)), 0)
    for number, partition in enumerate("abacab"):
        files.add(batch(line=[f"{number}"], p=[partition]))
        assert len(files._open) <= 2
        assert files._kept < 40
    done = files.finish()
    assert {path: len(names) for path, names in done.items()} == {"p=a": 1, "p=b": 2, "p=c": 1}
    lines = {path: sorted("".join((tmp_path / path / name).read_text() for name in names).split())
             for path, names in done.items()}  # fmt: skip
    assert lines == {"p=a": ["0", "2", "4"], "p=b": ["1", "5"], "p=c": ["3"]}


def test_files_are_closed_together_and_an_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=PATIENCE_S)  # each close waits for the other one
    close = Stream.close

    def waits(stream: Stream) -> None:
        open_yet = not stream.closed
        close(stream)
        if open_yet:
            both.wait()

    monkeypatch.setattr(Stream, "close", waits)
    files = PartFiles(tmp_path.as_uri(), options("text", ("p",)), 0)
    files.add(batch(line=["1", "2"], p=["a", "b"]))
    assert [len(each) for each in files.finish().values()] == [1, 1]
    both.abort()
    files.add(batch(line=["3"], p=["a"]))
    with pytest.raises(threading.BrokenBarrierError):
        files.finish()


def test_two_tries_of_a_task_write_other_files(tmp_path: Path) -> None:
    names: set[str] = set()
    for _ in range(2):
        files = PartFiles(tmp_path.as_uri(), options("text"), 0)
        files.add(batch(line=["x"]))
        names |= files.finish()[""].keys()
    assert len(names) == 2
