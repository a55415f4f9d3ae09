"""One footer for many Parquet files: PyArrow, which wrote them, reads them as one."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ha.outputs.parquet_footer import END, MOST_BYTES, alike, joined, length, parsed
from ha.outputs.thrift_compact import BINARY, I64, Value, decoded, encoded
from store.errors import Invalid

SCHEMA = pa.schema([
    pa.field("id", pa.int64(), nullable=False),
    pa.field("text", pa.string()),
    pa.field("numbers", pa.list_(pa.int32())),
    pa.field("inner", pa.struct([("x", pa.float64()), ("y", pa.map_(pa.string(), pa.int16()))])),
])  # fmt: skip


def table(first: int, rows: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": first + each,
                "text": None if each % 5 == 1 else f"text {each % 3}",
                "numbers": list(range(each % 4)),
                "inner": {"x": each / 3, "y": [("k", each % 7)]},
            }
            for each in range(rows)
        ],
        schema=SCHEMA,
    )


def written(found: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(found, out, **options)
    return out.getvalue()


def footer(data: bytes) -> Any:
    return parsed(data[-length(data[-END:]) :])


def merged(files: list[bytes]) -> bytes:
    footers = [footer(each) for each in files]
    assert alike(footers) == [range(len(files))]
    return b"".join(files) + joined(zip(footers, map(len, files), strict=True))


OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "row_group_size": st.integers(1, 40),
    "compression": st.sampled_from(["none", "snappy", "zstd"]),
    "use_dictionary": st.booleans(),
    "write_statistics": st.booleans(),
    "write_page_index": st.booleans(),
    "data_page_version": st.sampled_from(["1.0", "2.0"]),
    "data_page_size": st.sampled_from([64, 1 << 20]),
}


@settings(max_examples=40)  # each writes and reads some files
@given(st.lists(st.integers(0, 60), min_size=2, max_size=6), st.fixed_dictionaries(OPTIONS))
def test_files_of_any_kind_become_one(rows: list[int], options: dict[str, Any]) -> None:
    tables = [table(100 * number, count) for number, count in enumerate(rows)]
    files = [written(each, **options) for each in tables]
    data = merged(files)
    found = pq.ParquetFile(io.BytesIO(data))
    assert found.read() == pa.concat_tables(tables)
    parts = [pq.ParquetFile(io.BytesIO(each)).metadata for each in files]
    assert found.metadata.num_rows == sum(rows)
    assert found.metadata.num_row_groups == sum(each.num_row_groups for each in parts)
    groups = [part.row_group(number) for part in parts for number in range(part.num_row_groups)]
    for number, group in enumerate(groups):
        for column in range(group.num_columns):
            mine, theirs = found.metadata.row_group(number).column(column), group.column(column)
            assert mine.statistics == theirs.statistics
            assert not mine.has_offset_index
            assert not mine.has_column_index
    wanted = [each["text"] for each in pa.concat_tables(tables).to_pylist() if each["id"] >= 130]
    filtered = pq.read_table(io.BytesIO(data), columns=["text"], filters=[("id", ">=", 130)])
    assert filtered.column("text").to_pylist() == wanted


def test_a_merged_file_can_be_merged_again() -> None:
    files = [written(table(100 * number, 10)) for number in range(4)]
    twice = merged([merged(files[:2]), merged(files[2:])])
    assert pq.ParquetFile(io.BytesIO(twice)).read().num_rows == 40


def test_bloom_filters_and_places_that_are_none_are_kept() -> None:
    data = footer(written(table(0, 3)))
    (group,) = data[4].content.contents
    (chunk, *_) = group[1].content.contents
    chunk[3].content.update({14: Value(I64, 77), 10: Value(I64, 0)})
    group[5] = Value(I64, 4)
    chunk[2] = Value(I64, 0)
    found = decoded(joined([(data, 1000), (data, 500)])[:-END])
    first, second = found[4].content.contents
    assert [each[5].content for each in (first, second)] == [4, 1004]
    chunks = [each[1].content.contents[0] for each in (first, second)]
    assert [each[2].content for each in chunks] == [0, 0]
    assert [each[3].content[14].content for each in chunks] == [77, 1077]
    assert [each[3].content[10].content for each in chunks] == [0, 0]
    assert [each[3].content[9].content - each[3].content[9].content % 1000 for each in chunks] == [0, 1000]
    assert 7 not in second


def test_what_nobody_knows_is_kept() -> None:
    data = {**footer(written(table(0, 3))), 99: Value(BINARY, b"new")}
    assert decoded(joined([(data, 1000), (data, 500)])[:-END])[99] == Value(BINARY, b"new")


def test_files_are_alike_in_runs() -> None:
    one, other = (footer(written(each)) for each in (table(0, 3), table(0, 3).drop_columns(["text"])))
    assert alike([one, one, other, one, one]) == [range(2), range(2, 3), range(3, 5)]
    assert alike([]) == []


def test_a_column_that_may_be_null_is_another_schema() -> None:
    strict = pa.table({"id": [1]}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    loose = pa.table({"id": [1]}, schema=pa.schema([pa.field("id", pa.int64())]))
    assert len(alike([footer(written(strict)), footer(written(loose))])) == 2


def changed(fields: dict[int, Any], chunk: dict[int, Any]) -> bytes:
    """The end of a file with these fields in its footer, and in that of its first column."""
    found = footer(written(table(0, 3)))
    found.update(fields)
    found[4].content.contents[0][1].content.contents[0].update(chunk)
    data = encoded(found)
    return data + len(data).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no Parquet file"),
        (b"PAR1", "no Parquet file"),
        (b"\0\0\0\0PAR2", "no Parquet file"),
        (b"\0\0\0\0PARE", "footer is encrypted"),
        ((MOST_BYTES - END + 1).to_bytes(4, "little") + b"PAR1", "its footer has 67,108,865 bytes"),
        (b"\0\1\0\0\0PAR1", "something else"),
        (b"\x15\x04\x00\3\0\0\0PAR1", "something else"),
        (b"\x35\x04\x15\x04\x00\5\0\0\0PAR1", "something else"),
        (changed({8: Value(12, {})}, {}), "columns of it are encrypted"),
        (changed({}, {8: Value(12, {})}), "columns of it are encrypted"),
        (changed({3: Value(BINARY, b"many")}, {}), "something else"),
        (changed({}, {3: Value(BINARY, b"nothing")}), "something else"),
        (changed({}, {1: Value(BINARY, b"other")}), "lie in other files"),
        (
            b"\x49\x16\x02\x00\4\0\0\0PAR1",
            "something else",
        ),
    ],
)
def test_what_cannot_be_merged_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        footer(data)


WHOLE = written(table(0, 3))


@given(st.integers(0, length(WHOLE[-END:]) - END - 1), st.integers(0, 255))
def test_of_a_footer_with_a_wrong_byte_another_one_is_made_or_none(place: int, byte: int) -> None:
    tail = bytearray(WHOLE[-length(WHOLE[-END:]) :])
    tail[place] = byte
    try:
        found = parsed(bytes(tail))
    except Invalid:
        return
    assert joined([(found, 1000), (found, 500)])[-4:] == b"PAR1"


def test_the_longest_footer_that_is_read() -> None:
    assert length((MOST_BYTES - END).to_bytes(4, "little") + b"PAR1") == MOST_BYTES
