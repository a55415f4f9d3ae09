"""Footers of the files of a merge: read from their ends, in runs of one schema; others are left alone."""

import io
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from ha.checkpoints.trees import Tree
from ha.outputs import footers
from ha.outputs.footers import Footed, footed
from ha.outputs.merge_plan import Merge
from ha.outputs.parquet_footer import length
from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound
from store.local import LocalFiles

ONE, OTHER = "id", "number"


def plan(folder: Path, *contents: bytes) -> Merge:
    """A merge of files with these contents."""
    names = [f"batch-{number}.parquet" for number in range(len(contents))]
    for name, data in zip(names, contents, strict=True):
        (folder / name).write_bytes(data)
    sizes = dict(zip(names, map(len, contents), strict=True))
    return Merge(folder.name, f"merged-0-{len(names) - 1}-t.parquet", sizes)


def file(column: str, *values: int) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({column: pa.array(values, pa.int64())}), out)
    return out.getvalue()


def found(tmp_path: Path, *contents: bytes) -> list[Footed]:
    folder = tmp_path / "day=1"
    folder.mkdir()
    with BoundedFiles(lambda: LocalFiles(tmp_path), uri=tmp_path.as_uri()) as files:
        return list(footed(Tree(files).tail, plan(folder, *contents)))


def read(tmp_path: Path, each: Footed) -> list[int]:
    parts = [(tmp_path / each.merge.partition / name).read_bytes() for name in each.merge.files if name[0] != "."]
    return [
        row
        for column in pq.read_table(io.BytesIO(b"".join([*parts, each.footer]))).columns
        for row in column.to_pylist()
    ]


def test_files_of_one_schema_get_one_footer(tmp_path: Path) -> None:
    (each,) = found(tmp_path, file(ONE, 1, 2), file(ONE, 3), file(ONE))
    assert read(tmp_path, each) == [1, 2, 3]
    assert each.merge.files[each.merge.footer] == len(each.footer)
    assert (each.merge.target, each.problem) == ("merged-0-2-t.parquet", "")


def test_another_schema_and_what_is_no_parquet_cut_the_row(tmp_path: Path) -> None:
    rows = found(tmp_path, *[file(ONE, 1), file(ONE, 2), file(OTHER, 3), b"text", file(ONE, 4), file(ONE, 5)])
    assert [each.merge.batches for each in rows] == [[0, 1], [2], [3], [4, 5]]
    assert [each.problem.partition(":")[0] for each in rows] == [
        "", "no file beside it has the same schema and writer", "batch-3.parquet", "",
    ]  # fmt: skip
    assert rows[2].problem == "batch-3.parquet: it is no Parquet file"
    assert [read(tmp_path, each) for each in (rows[0], rows[3])] == [[1, 2], [4, 5]]


@pytest.mark.parametrize("by", [-1, 0, 1])
def test_a_footer_that_is_longer_than_the_first_look_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    data = file(ONE, 1)
    monkeypatch.setattr(footers, "FIRST_LOOK", length(data[-8:]) + by)
    (each,) = found(tmp_path, data, file(ONE, 2))
    assert read(tmp_path, each) == [1, 2]


def test_a_file_that_is_shorter_than_its_footer_is_left_alone(tmp_path: Path) -> None:
    each, *_ = found(tmp_path, b"PAR1" + (500).to_bytes(4, "little") + b"PAR1", file(ONE, 2))
    assert each.problem == "batch-0.parquet: it is shorter than its footer"


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    merge = Merge("", "merged-0-1-t.parquet", {"batch-0.parquet": 9, "batch-1.parquet": 9})
    with BoundedFiles(lambda: LocalFiles(tmp_path), uri=tmp_path.as_uri()) as files, pytest.raises(NotFound):
        list(footed(Tree(files).tail, merge))


def test_files_of_orc_get_one_of_theirs(tmp_path: Path) -> None:
    names, data = [f"batch-{number}.zstd.orc" for number in range(2)], []
    for number, name in enumerate(names):
        orc.write_table(pa.table({ONE: [number]}), tmp_path / name, compression="zstd")
        data.append((tmp_path / name).read_bytes())
    merge = Merge("", "merged-0-1-t.zstd.orc", dict(zip(names, map(len, data), strict=True)))
    with BoundedFiles(lambda: LocalFiles(tmp_path), uri=tmp_path.as_uri()) as files:
        (each,) = footed(Tree(files).tail, merge)
    assert (each.problem, each.merge.needs_footer) == ("", True)
    assert orc.read_table(io.BytesIO(b"".join([*data, each.footer]))).column(ONE).to_pylist() == [0, 1]


def test_files_of_orc_need_packages_that_others_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ha.outputs.orc_footer", None)
    monkeypatch.delattr("ha.outputs.orc_footer", raising=False)
    merge = Merge("", "merged-0-1-t.orc", {"batch-0.orc": 9, "batch-1.orc": 9})
    with BoundedFiles(lambda: LocalFiles(tmp_path), uri=tmp_path.as_uri()) as files, pytest.raises(Invalid) as error:
        list(footed(Tree(files).tail, merge))
    assert "pip install 'hybrid-ha[spark]'" in str(error.value)


def test_text_needs_none_and_is_not_read(tmp_path: Path) -> None:
    merge = Merge("", "merged-0-1-t.json", {"batch-0.json": 9, "batch-1.json": 9})
    with BoundedFiles(lambda: LocalFiles(tmp_path), uri=tmp_path.as_uri()) as files:
        assert list(footed(Tree(files).tail, merge)) == [Footed(merge)]
