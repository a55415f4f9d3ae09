"""File check: the content of one file: its check sums where it has any, else whether it has the form of its kind. Pure.

| file | what is checked |
|---|---|
| ``.changelog``, ``.zip`` of Spark 4.1 or newer | the CRC32C that Spark wrote beside it |
| any file on ``file://`` that Hadoop wrote | the CRC32 of every 512 bytes |
| ``.zip`` | the CRC32 of each member |
| ``.changelog``, ``.delta``, ``.snapshot`` | the xxHash of each block of LZ4; of Zstandard whether it unpacks |
| ``.sst`` | the mark at its end; its own sums need RocksDB |
| logs and metadata | whether they are empty; what a restart reads of them was read before |

Files of state are blocks of Java's LZ4BlockOutputStream, or Zstandard. The sum of a block is 28 bits of the xxHash of
what it unpacks to. An empty block ends the file, so a part of a file is noticed as well.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.check_sums import HadoopSums, SparkSums, are_hadoops
from ha.checkpoints.contents import Unreadable

if TYPE_CHECKING:
    import numpy as np

MOST_KEPT = 64 << 20  # bytes of a file that are kept to look at its form; of a longer one only the sums are compared
_MOST_UNPACKED = 1 << 30  # bytes that a zip unpacks to: it has a few small files, and tables lie beside it
_TAIL = 8
_SST_MARKS = {
    struct.pack("<Q", mark) for mark in (0x88E241B785F4CFF7, 0xDB4775248B80FB57, 0x8242229663BF9564, 0xF4F5736DC73B4F3E)
}
"""The last bytes of a table of RocksDB: of blocks, of blocks in the first format, plain, plain in the first format."""

TEXTS = ("metadata", "offsets/", "commits/", "sources/")
PACKED = (".changelog", ".delta", ".snapshot")

_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_OTHERS = (b"\x82SNAPPY\x00", b"ZV")  # snappy and LZF: nothing here can unpack these
_HEADER = struct.Struct("<8sBIII")
_SEED = 0x9747B28C
_SUM_BITS = 0x0FFFFFFF

# Steps in which sums are computed, some seconds: one for 16 bytes of all blocks of 32 MiB, which side by side are fast
# if they have 32 KiB, as Spark writes them, and slow if they are long.
_MOST_STEPS = 1_000_000

_MOST_MIB = 16 << 10  # to which a file unpacks that is kept to be looked at: as a file of LZ4 of that length could

_P1, _P2, _P3, _P4, _P5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1


class Checked(msgspec.Struct, frozen=True):
    """The result of a check; ``fault`` is a sentence, empty if nothing is wrong."""

    fault: str = ""
    summed: bool = False  # whether the whole file was compared with a check sum that lies beside it or in it
    # Whether its form was looked at; not if it is too long, or packed in a way that cannot be read here.
    formed: bool = False
    altered: bool = False  # whether it has its form, and only differs from check sums that Spark does not compare


class ContentCheck:
    """One file, seen piece by piece."""

    def __init__(
        self, path: str, size: int, spark: bytes | None = None, hadoop: bytes | None = None, most: int = 0
    ) -> None:
        # path: of the file in the checkpoint.
        # size: length in the listing.
        # spark: content of `NAME.crc`, if there is one.
        # hadoop: content of `.NAME.crc`, if there is one.
        # most: bytes of a file that are kept to look at its form; by default `MOST_KEPT`.
        self._path, self._size = path, size
        self._spark = SparkSums(spark) if spark is not None else None
        self._hadoop = HadoopSums(hadoop) if hadoop is not None and are_hadoops(hadoop) else None
        self._sums = [each for each in (self._spark, self._hadoop) if each is not None]
        self._kept: list[bytes] | None = [] if size <= (most or MOST_KEPT) else None
        self._tail = b""
        self._seen = 0

    def add(self, piece: bytes) -> None:
        """See the next piece."""
        for each in self._sums:
            each.add(piece)
        if self._kept is not None:
            self._kept.append(piece)
        self._tail = (self._tail + piece)[-_TAIL:]
        self._seen += len(piece)

    def result(self) -> Checked:
        """Return what was found, now that all was seen."""
        if self._seen != self._size:
            return Checked(f"It has {self._seen:,} bytes, and {self._size:,} are listed.")
        if self._spark is not None and (fault := self._spark.fault()):
            return Checked(fault, summed=True)
        found = self._form(b"".join(self._kept or []), summed=bool(self._sums))
        if not found.fault and self._hadoop is not None and (fault := self._hadoop.fault()):
            return Checked(fault, summed=True, altered=True)
        return found

    def _form(self, data: bytes, *, summed: bool) -> Checked:
        if self._path.endswith(".sst"):
            marked = self._tail in _SST_MARKS
            return Checked("" if marked else "It does not end as a table of RocksDB does.", summed, formed=True)
        if self._kept is None:
            return Checked(summed=summed)
        try:
            if self._path.endswith(".zip"):
                return Checked(_zip_fault(data), summed=True, formed=True)
            if self._path.endswith(PACKED):
                inside = check_packed(data)
                return Checked(summed=summed or inside is True, formed=inside is not None)
        except Unreadable as error:
            return Checked(f"{error}", summed, formed=True)
        text = self._path.startswith(TEXTS) or "/_metadata/" in self._path
        empty = text and not data and not self._path.startswith("sources/")  # Kafka does not read its log again
        return Checked("It is empty." if empty else "", summed, formed=text)


def _zip_fault(data: bytes) -> str:
    try:
        with contents.opened_zip(data) as packed:
            if sum(each.file_size for each in packed.infolist()) > _MOST_UNPACKED:
                return f"It unpacks to more than {_MOST_UNPACKED:,} bytes."
            if bad := packed.testzip():
                return f"Its member {bad!r} is damaged: its check sum is another one."
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        return f"It is no zip, or a part of one ({error})."
    contents.whole(data)
    return ""


def check_packed(data: bytes) -> bool | None:
    """Unpack all of a file, and compare its check sums; returns whether it has some, None if it is unreadable here."""
    if data.startswith(_ZSTANDARD):
        _unpack_zstandard(data)
        return False
    if data.startswith(_OTHERS):
        return None
    if not data.startswith(contents.LZ4):
        raise Unreadable("It begins like no file of state." if data else "It is empty.")
    lot: list[tuple[bytes, int]] = []
    size = steps = 0
    for block, expected in _blocks(data):
        lot.append((block, expected))
        size += len(block)
        if size > contents.MOST_PLAIN:  # a small file may unpack to more than the memory has
            steps = _compare(lot, steps)
            lot, size = [], 0
    return _compare(lot, steps) <= _MOST_STEPS


def _compare(lot: list[tuple[bytes, int]], steps: int) -> int:
    """Compare the sums of blocks, unless too many steps were taken; returns those that were taken by then."""
    sums: dict[int, list[tuple[bytes, int]]] = {}
    for block, expected in lot:
        sums.setdefault(len(block), []).append((block, expected))
    for length, blocks in sums.items():
        steps += length // 16
        if steps > _MOST_STEPS:
            break
        found = xxh32([block for block, _ in blocks], _SEED)
        if any(each & _SUM_BITS != expected for each, (_, expected) in zip(found, blocks, strict=True)):
            raise Unreadable("It is not what was written: the check sum of a block is another one.")
    return steps


def _blocks(data: bytes) -> Iterator[tuple[bytes, int]]:
    import pyarrow as pa  # noqa: PLC0415  # takes 60 ms

    codec, at = pa.Codec("lz4_raw"), 0
    while True:
        try:
            magic, token, packed, plain, expected = _HEADER.unpack_from(data, at)
        except struct.error as error:
            raise Unreadable("It is a part of itself: its last block is missing.") from error
        at += _HEADER.size
        block = data[at : at + packed]
        if magic != contents.LZ4 or len(block) != packed or plain > contents.MOST_PLAIN:
            raise Unreadable(f"It is damaged or a part of itself, before byte {at + packed:,}.")
        at += packed
        if not plain:
            if at != len(data):
                raise Unreadable(f"It goes on after its last block, at byte {at:,}.")
            return
        try:
            unpacked = block if token & 0xF0 == contents.PLAIN else codec.decompress(block, plain, asbytes=True)
        except OSError as error:
            raise Unreadable(f"A block of it cannot be unpacked ({error}).") from error
        if len(unpacked) != plain:
            raise Unreadable(f"A block of it has {len(unpacked):,} bytes, and should have {plain:,}.")
        yield unpacked, expected


def _unpack_zstandard(data: bytes) -> None:
    import pyarrow as pa  # noqa: PLC0415

    try:
        with pa.input_stream(pa.BufferReader(data), compression="zstd") as stream:
            for _ in range(_MOST_MIB):
                if not stream.read(1 << 20):
                    return
    except OSError as error:
        raise Unreadable(f"It cannot be unpacked ({error}).") from error
    raise Unreadable(f"It unpacks to more than {_MOST_MIB:,} MiB.")


def xxh32(blocks: list[bytes], seed: int) -> list[int]:
    """Return the xxHash (32 bits) of each block; all have the same length, so numpy computes them side by side."""
    import numpy as np  # noqa: PLC0415  # takes 60 ms

    length = len(blocks[0])
    stripes = length // 16
    data = np.frombuffer(b"".join(blocks), np.uint8).reshape(len(blocks), length)
    if stripes:
        words = np.ascontiguousarray(data[:, : stripes * 16]).view("<u4").reshape(len(blocks), stripes, 4)
        lanes = np.empty((len(blocks), 4), np.uint32)
        lanes[:] = [(seed + each) & 0xFFFFFFFF for each in (_P1 + _P2, _P2, 0, -_P1)]
        for stripe in words.transpose(1, 0, 2).copy():
            lanes = _turned(lanes + stripe * np.uint32(_P2), 13) * np.uint32(_P1)
        turned = [_turned(lanes[:, n], by) for n, by in enumerate((1, 7, 12, 18))]
        found: np.ndarray[Any, Any] = turned[0] + turned[1] + turned[2] + turned[3]
    else:
        found = np.full(len(blocks), (seed + _P5) & 0xFFFFFFFF, np.uint32)
    found = found + np.uint32(length)
    at = stripes * 16
    for place in range(at, length - 3, 4):
        word = np.ascontiguousarray(data[:, place : place + 4]).view("<u4")[:, 0]
        found = _turned(found + word * np.uint32(_P3), 17) * np.uint32(_P4)
    for place in range(length - length % 4, length):
        found = _turned(found + data[:, place].astype(np.uint32) * np.uint32(_P5), 11) * np.uint32(_P1)
    for by, prime in ((15, _P2), (13, _P3)):
        found = (found ^ (found >> np.uint32(by))) * np.uint32(prime)
    return [int(each) for each in found ^ (found >> np.uint32(16))]


def _turned(values: "np.ndarray[Any, Any]", by: int) -> "np.ndarray[Any, Any]":
    import numpy as np  # noqa: PLC0415

    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))
