"""Parquet's footers: one for files that lie behind each other, made of theirs. Pure.

A Parquet file ends with a footer, which says where everything lies, counted from the beginning of the file, and with
the length of that. What is in between is read only if a footer points to it. So files behind each other, and one more
footer at the end, are one file, in which no row was written again. The fields are those of
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
"""

from collections.abc import Iterable, Sequence

from ha.outputs.thrift_compact import I64, LIST, Fields, Items, Value, decoded, encoded
from store.errors import Invalid

MAGIC = b"PAR1"

ENCRYPTED = b"PARE"
"""Ends a file whose footer is encrypted."""

END = 8
"""Bytes behind the footer: its length, and the magic word."""

MOST_BYTES = 64 << 20
"""Longest footer that is read: 10,000 columns in a hundred row groups have less."""

_NUM_ROWS, _ROW_GROUPS, _ENCRYPTION = 3, 4, 8
"""Fields of ``FileMetaData``."""

_COLUMNS, _ORDINAL, _GROUP_OFFSET = 1, 7, 5
"""Fields of ``RowGroup``. Its ordinal says which one it is in its file, and is of use to decryption alone."""

_FILE_PATH, _CHUNK_OFFSET, _META_DATA, _CRYPTO = 1, 2, 3, 8
"""Fields of ``ColumnChunk``."""

_PAGE_INDEXES = (4, 5, 6, 7)
"""Likewise: where the page indexes lie. One of them counts from the beginning of its file, and lies in front of the
footer, where nobody can change it. So they are left out: readers skip row groups, and no single pages."""

_OFFSETS = (9, 10, 11, 14)
"""Fields of ``ColumnMetaData``: data pages, index page, dictionary, bloom filter."""


def length(end: bytes) -> int:
    """Return the bytes of a footer, and of what is behind it, by the last 8 bytes of the file.

    Raises:
        Invalid: it is no Parquet file, or one that cannot be merged.
    """
    if end[-len(MAGIC) :] == ENCRYPTED:
        raise Invalid("its footer is encrypted")
    if len(end) < END or end[-len(MAGIC) :] != MAGIC:
        raise Invalid("it is no Parquet file")
    found = int.from_bytes(end[-END : -len(MAGIC)], "little") + END
    if found > MOST_BYTES:
        raise Invalid(f"its footer has {found:,} bytes")
    return found


def parsed(tail: bytes) -> Fields:
    """Read a footer: the last bytes of a file, as many as :func:`length` says.

    Raises:
        Invalid: it says something else, or the file cannot be merged.
    """
    try:
        found = decoded(tail[:-END])
        for group in _groups(found):
            for chunk in _chunks(group):
                if _CRYPTO in chunk:
                    raise Invalid("columns of it are encrypted")
                if _FILE_PATH in chunk or _META_DATA not in chunk:
                    raise Invalid("columns of it lie in other files")
        joined([(found, 0)])  # all that is needed is there
    except (KeyError, TypeError, AttributeError) as error:
        raise Invalid("its footer says something else") from error
    if _ENCRYPTION in found:
        raise Invalid("columns of it are encrypted")
    return found


def alike(footers: Sequence[Fields]) -> list[range]:
    """Return the runs of files, in their order, whose footers are the same but for the rows: those can be merged."""
    runs: list[range] = []
    for number, each in enumerate(footers):
        if runs and _frame(each) == _frame(footers[number - 1]):
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def joined(files: Iterable[tuple[Fields, int]]) -> bytes:
    """Return what comes behind files that lie behind each other, so that they are one.

    Args:
        files: of each its footer and its bytes; the footers are alike.
    """
    start = rows = 0
    groups: list[Fields] = []
    whole: Fields = {}
    for footer, size in files:
        whole = whole or dict(footer)
        rows += footer[_NUM_ROWS].content
        groups += [_moved(group, start) for group in _groups(footer)]
        start += size
    first = whole[_ROW_GROUPS].content
    whole[_NUM_ROWS] = Value(I64, rows)
    whole[_ROW_GROUPS] = Value(LIST, Items(first.kind, groups))
    data = encoded(whole)
    return data + len(data).to_bytes(4, "little") + MAGIC


def _moved(group: Fields, by: int) -> Fields:
    """Return a row group whose file begins so many bytes later."""
    found = {number: value for number, value in group.items() if number != _ORDINAL}
    chunks = []
    for chunk in _chunks(group):
        kept = {number: value for number, value in chunk.items() if number not in _PAGE_INDEXES}
        meta = kept[_META_DATA]
        kept[_META_DATA] = Value(meta.kind, _shifted(meta.content, _OFFSETS, by))
        chunks.append(_shifted(kept, (_CHUNK_OFFSET,), by))
    columns = group[_COLUMNS]
    found[_COLUMNS] = Value(columns.kind, Items(columns.content.kind, chunks))
    return _shifted(found, (_GROUP_OFFSET,), by)


def _shifted(fields: Fields, offsets: Iterable[int], by: int) -> Fields:
    """Return the fields with places that are ``by`` higher. 0 is no place: each file begins with the magic word."""
    moved = {
        number: Value(fields[number].kind, fields[number].content + by)
        for number in offsets
        if number in fields and fields[number].content
    }
    return {**fields, **moved}


def _frame(footer: Fields) -> Fields:
    return {number: value for number, value in footer.items() if number not in (_NUM_ROWS, _ROW_GROUPS)}


def _groups(footer: Fields) -> list[Fields]:
    found: list[Fields] = footer[_ROW_GROUPS].content.contents
    return found


def _chunks(group: Fields) -> list[Fields]:
    found: list[Fields] = group[_COLUMNS].content.contents
    return found
