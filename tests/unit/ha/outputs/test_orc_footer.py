"""One footer for many ORC files: PyArrow, which wrote them, reads them as one."""

import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from ha.outputs import orc_footer
from ha.outputs.orc_footer import alike, joined, length, parsed
from store.errors import Invalid
from tests.unit.ha.outputs.test_parquet_footer import table

SAID = b"\x82\xf4\x03\x03ORC\x09"
"""The magic word, field 8000 of a postscript with two more bytes, and its length."""


def written(found: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    orc.write_table(found, out, **options)
    return out.getvalue()


def end(data: bytes) -> Any:
    return parsed(data[-length(data[-256:]) :])


def merged(files: list[bytes]) -> bytes:
    ends = [end(each) for each in files]
    assert alike(ends) == [range(len(files))]
    return b"".join(files) + joined(zip(ends, map(len, files), strict=True))


OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "stripe_size": st.sampled_from([1024, 64 << 20]),
    "batch_size": st.integers(1, 40),
    "compression": st.sampled_from(["uncompressed", "snappy", "zlib", "zstd"]),
    "compression_block_size": st.sampled_from([1 << 16, 1 << 17]),
    "row_index_stride": st.sampled_from([16, 10000]),
    "bloom_filter_columns": st.sampled_from([None, [1]]),
}


@settings(max_examples=40)  # each writes and reads some files
@given(st.lists(st.integers(0, 60), min_size=2, max_size=6), st.fixed_dictionaries(OPTIONS))
def test_files_of_any_kind_become_one(rows: list[int], options: dict[str, Any]) -> None:
    tables = [table(100 * number, count) for number, count in enumerate(rows)]
    files = [written(each, **options) for each in tables]
    data = merged(files)
    found = orc.ORCFile(io.BytesIO(data))
    assert found.nrows == sum(rows)
    assert found.nstripes == found.nstripe_statistics == sum(orc.ORCFile(io.BytesIO(each)).nstripes for each in files)
    assert found.read().to_pylist() == pa.concat_tables(tables).to_pylist()
    assert found.read(columns=["id"]).column("id").to_pylist() == [
        100 * number + each for number, count in enumerate(rows) for each in range(count)
    ]
    assert found.content_length == sum(map(len, files)) - len(orc_footer.MAGIC)
    whole = end(data).footer.statistics
    assert whole[0].values == sum(rows)
    assert whole[2].has_null == any(count > 1 for count in rows)


def test_a_merged_file_can_be_merged_again() -> None:
    files = [written(table(100 * number, 10)) for number in range(4)]
    twice = merged([merged(files[:2]), merged(files[2:])])
    assert orc.ORCFile(io.BytesIO(twice)).read().num_rows == 40


def test_an_end_that_needs_several_blocks_can_be_read() -> None:
    options = {"compression": "zlib", "compression_block_size": 1 << 16}
    files = [written(table(0, 1), **options)] * 1000
    assert len(joined((end(each), len(each)) for each in files)) > 1 << 17
    assert orc.ORCFile(io.BytesIO(merged(files))).read().num_rows == 1000


def test_what_nobody_knows_is_kept() -> None:
    data = end(written(table(0, 3)))
    data.footer.MergeFromString(b"\x9a\x06\x03new")  # field 99
    again = end(joined([(data, 1000), (data, 500)]))
    assert b"\x9a\x06\x03new" in again.footer.SerializeToString()
    assert [each.offset for each in again.footer.stripes] == [3, 1003]


def test_sizes_on_disk_are_added_if_all_files_know_them() -> None:
    one, other = (end(written(table(0, 3))) for _ in "12")
    for each, size in ((one, 5), (other, 7)):
        for column in each.footer.statistics:
            column.bytes_on_disk = size
    assert {each.bytes_on_disk for each in end(joined([(one, 9), (other, 9)])).footer.statistics} == {12}
    other.footer.statistics[0].ClearField("bytes_on_disk")
    found = end(joined([(one, 9), (other, 9)])).footer.statistics
    assert [each.HasField("bytes_on_disk") for each in found][:2] == [False, True]


def test_files_are_alike_in_runs() -> None:
    one, other = (end(written(each)) for each in (table(0, 3), table(0, 3).drop_columns(["text"])))
    third = end(written(table(0, 3), compression="zlib"))
    assert alike([one, one, other, one, one, third]) == [range(2), range(2, 3), range(3, 5), range(5, 6)]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no ORC file"),
        (b"\x00", "no ORC file"),
        (b"ORC\x04", "no ORC file"),
        (b"some text", "no ORC file"),
        (b"\xffORC\x04", "says something else"),
        (b"\x10\x04" + SAID, "compressed neither"),
        (b"\x38\x01" + SAID, "encrypted"),
    ],
)
def test_what_is_no_file_that_can_be_merged(data: bytes, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        length(data)


def test_how_long_an_end_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(table(0, 3))
    monkeypatch.setattr(orc_footer, "MOST_BYTES", length(data))
    assert length(data) == orc_footer.MOST_BYTES
    monkeypatch.setattr(orc_footer, "MOST_BYTES", length(data) - 1)
    with pytest.raises(Invalid, match="its footer has"):
        length(data)


def test_encrypted_columns_are_left_alone() -> None:
    data = end(written(table(0, 3)))
    data.footer.encryption = b""
    with pytest.raises(Invalid, match="encrypted"):
        end(joined([(data, 9)]))


@pytest.mark.parametrize("compression", ["snappy", "zlib", "zstd", "uncompressed"])
@given(st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_a_damaged_end_is_refused_or_read(compression: str, place: int, damage: bytes) -> None:
    data = bytearray(written(table(0, 20), compression=compression))
    size = length(bytes(data))
    place = len(data) - size + place % size
    data[place : place + len(damage)] = damage
    try:
        end(bytes(data))
    except Invalid:
        return
