"""ORC's footers: one for files that lie behind each other, made of theirs. Pure.

An ORC file ends with statistics of its stripes, a footer, a postscript and the length of that. Only the footer says
where stripes begin, counted from the beginning of the file. So files behind each other, with one more such end, are one
file, in which no row was written again. The fields are those of
https://github.com/apache/orc-format/blob/main/src/main/proto/orc/proto/orc_proto.proto.

    stripes ... | stripe statistics | footer | postscript | 1 byte
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from store.errors import Invalid

MAGIC = b"ORC"

MOST_BYTES = 64 << 20
"""Longest end of a file that is read."""

LARGEST_BLOCK = 1 << 23
"""Bytes of a compressed block, whose length is written with 23 bits."""

_HEADER = 3
"""Bytes in front of a block: twice its length, and 1 more if it is not compressed."""

NONE, ZLIB, SNAPPY, ZSTD = 0, 1, 2, 5

_U64, _BOOL, _BYTES, _MESSAGE = 4, 8, 12, 11
_MESSAGES: dict[str, dict[str, tuple[int, int, str]]] = {
    "PostScript": {
        "footer": (1, _U64, ""),
        "compression": (2, _U64, ""),
        "block": (3, _U64, ""),
        "metadata": (5, _U64, ""),
        "stripe_statistics": (7, _U64, ""),
    },
    "Stripe": {"offset": (1, _U64, "")},
    "Statistics": {"values": (1, _U64, ""), "has_null": (10, _BOOL, ""), "bytes_on_disk": (11, _U64, "")},
    "Footer": {
        "header": (1, _U64, ""),
        "content": (2, _U64, ""),
        "stripes": (3, _MESSAGE, "Stripe"),
        "rows": (6, _U64, ""),
        "statistics": (7, _MESSAGE, "Statistics"),
        "encryption": (10, _BYTES, ""),
    },
}
"""What is changed in an end; the library keeps all other fields, and writes them behind these, in their order."""


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="ha_orc_footer.proto", package="ha_orc", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, of) in fields.items():
            label = 3 if of else 1  # repeated, optional
            message.field.add(
                name=field, number=number, type=kind, label=label, type_name=f".ha_orc.{of}" if of else None
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {each: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ha_orc.{each}")) for each in _MESSAGES}


_CLASSES = _classes()


class End(NamedTuple):
    """The end of a file: postscript and footer as messages, and the statistics of its stripes as bytes."""

    postscript: Any
    footer: Any
    stripe_statistics: bytes


def length(data: bytes) -> int:
    """Return the bytes of a file's end, by its last bytes, of which 256 are enough.

    Raises:
        Invalid: it is no ORC file, or one that cannot be merged.
    """
    postscript = _postscript(data)
    return 1 + data[-1] + int(postscript.footer) + int(postscript.metadata)


def parsed(tail: bytes) -> End:
    """Read the end of a file: its last bytes, as many as :func:`length` says.

    Raises:
        Invalid: it says something else, or the file cannot be merged.
    """
    postscript = _postscript(tail)
    until = len(tail) - 1 - tail[-1]
    start = until - postscript.footer
    try:
        footer = _CLASSES["Footer"].FromString(_expanded(tail[start:until], postscript))
        statistics = _expanded(tail[start - postscript.metadata : start], postscript)
    except (DecodeError, zlib.error, OSError, ValueError) as error:
        raise Invalid("its footer says something else") from error
    if footer.HasField("encryption"):
        raise Invalid("columns of it are encrypted")
    return End(postscript, footer, statistics)


def alike(ends: Sequence[End]) -> list[range]:
    """Return the runs of files, in their order, whose ends are the same but for the rows: those can be merged."""
    runs: list[range] = []
    frames = [_frame(each) for each in ends]
    for number, each in enumerate(frames):
        if runs and each == frames[number - 1]:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def joined(files: Iterable[tuple[End, int]]) -> bytes:
    """Return what comes behind files that lie behind each other, so that they are one.

    The statistics of stripes are those of the files. Of the whole file's only the numbers of values are kept, which can
    be added whatever the type of a column is; readers skip stripes and rows by the former.

    Args:
        files: of each its end and its bytes; the ends are alike.
    """
    start = rows = 0
    stripes: list[Any] = []
    columns: list[list[Any]] = []
    statistics = b""
    whole: End | None = None
    for end, size in files:
        whole = whole or end
        for each in end.footer.stripes:
            moved = _CLASSES["Stripe"].FromString(each.SerializeToString())
            moved.offset += start
            stripes.append(moved)
        rows += end.footer.rows
        columns.append(list(end.footer.statistics))
        statistics += end.stripe_statistics  # a repeated field, so two lists behind each other are one
        start += size
    assert whole is not None, "there are files"
    footer, postscript = _bare(whole.footer), _bare(whole.postscript)
    footer.header = whole.footer.header
    footer.content, footer.rows = start - whole.footer.header, rows
    footer.stripes.extend(stripes)
    if len({len(each) for each in columns}) == 1:
        footer.statistics.extend(_sum(each) for each in zip(*columns, strict=True))
    stored = _stored(statistics, postscript), _stored(footer.SerializeToString(), postscript)
    postscript.metadata, postscript.footer = map(len, stored)
    said = postscript.SerializeToString()
    return b"".join([*stored, said, bytes([len(said)])])


def _postscript(data: bytes) -> Any:
    """Return the postscript of a file by its last bytes.

    Raises:
        Invalid: it has none, or its blocks cannot be read.
    """
    size = data[-1] if data else 0
    said = data[-1 - size : -1]
    if len(said) < size or not said.endswith(MAGIC):
        raise Invalid("it is no ORC file")
    try:
        found = _CLASSES["PostScript"].FromString(said)
    except DecodeError as error:
        raise Invalid("its footer says something else") from error
    if found.compression not in (NONE, ZLIB, SNAPPY, ZSTD):
        raise Invalid("its footer is compressed neither with zlib, nor with snappy, nor with zstd")
    if found.stripe_statistics:
        raise Invalid("columns of it are encrypted")
    if (needed := 1 + size + found.footer + found.metadata) > MOST_BYTES:
        raise Invalid(f"its footer has {needed:,} bytes")
    return found


def _frame(end: End) -> tuple[bytes, ...]:
    return tuple(each.SerializeToString() for each in (_bare(end.postscript), _bare(end.footer)))


def _bare(message: Any) -> Any:
    """Return a copy without what differs between files of one schema and writer."""
    found = type(message)()
    found.CopyFrom(message)
    for field in ("footer", "metadata", "header", "content", "stripes", "rows", "statistics"):
        if field in found.DESCRIPTOR.fields_by_name:
            found.ClearField(field)
    return found


def _sum(columns: Sequence[Any]) -> Any:
    """Return the statistics of a column in all files; ``bytes_on_disk`` only if all of them know it."""
    found = _CLASSES["Statistics"](values=sum(each.values for each in columns))
    found.has_null = any(each.has_null for each in columns)
    if all(each.HasField("bytes_on_disk") for each in columns):
        found.bytes_on_disk = sum(each.bytes_on_disk for each in columns)
    return found


def _expanded(data: bytes, postscript: Any) -> bytes:
    """Return what blocks hold.

    Raises:
        ValueError, OSError, zlib.error: they say something else.
    """
    if postscript.compression == NONE:
        return data
    parts, at, most = [], 0, postscript.block or LARGEST_BLOCK
    while at < len(data):
        header = int.from_bytes(data[at : at + _HEADER], "little")
        at += _HEADER
        block = data[at : at + header // 2]
        at += header // 2
        part = block if header % 2 else _block(block, postscript.compression, most)
        if at > len(data) or len(part) > most:
            raise ValueError("a block has another length")
        parts.append(part)
    return b"".join(parts)


def _block(data: bytes, compression: int, most: int) -> bytes:
    if compression == ZLIB:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, most + 1)
    if compression == SNAPPY:
        size = _varint(data)
        if size > most:
            raise ValueError("a block has another length")
        found: bytes = pa.decompress(data, size, codec="snappy", asbytes=True)
        return found
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read(most + 1))


def _varint(data: bytes) -> int:
    """Return the number at the beginning: 7 bits a byte, the lowest first."""
    found = 0
    for place, each in enumerate(data[:5]):
        found |= (each & 127) << 7 * place
        if each < 128:  # noqa: PLR2004  # the last one
            break
    return found


def _stored(data: bytes, postscript: Any) -> bytes:
    """Return blocks that hold the data, not compressed: an end is short."""
    if postscript.compression == NONE:
        return data
    step = min(postscript.block or LARGEST_BLOCK, LARGEST_BLOCK - 1)
    parts = [data[at : at + step] for at in range(0, len(data), step)]
    return b"".join((2 * len(each) + 1).to_bytes(_HEADER, "little") + each for each in parts)
