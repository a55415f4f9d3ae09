"""File check: the content of one file: its check sums where it has any, else whether it has the form of its kind. Pure.

| file | what is checked |
|---|---|
| ``.changelog``, ``.zip`` of Spark 4.1 or newer | the CRC32C that Spark wrote beside it |
| any file on ``file://`` that Hadoop wrote | the CRC32 of every 512 bytes |
| ``.zip`` | the CRC32 of each member |
| ``.changelog``, ``.delta``, ``.snapshot`` | the xxHash of each block of LZ4; of Zstandard whether it unpacks |
| ``.sst`` | the mark at its end; its own sums need RocksDB |
| logs and metadata | whether they are empty; what a restart reads of them was read before |
"""

import struct
import zipfile
import zlib

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.check_sums import HadoopSums, SparkSums, are_hadoops
from ha.checkpoints.contents import Unreadable
from ha.checkpoints.packed import check_packed

MOST_KEPT = 64 << 20  # bytes of a file that are kept to look at its form; of a longer one only the sums are compared
_MOST_UNPACKED = 1 << 30  # bytes that a zip unpacks to: it has a few small files, and tables lie beside it
_TAIL = 8
_SST_MARKS = {
    struct.pack("<Q", mark) for mark in (0x88E241B785F4CFF7, 0xDB4775248B80FB57, 0x8242229663BF9564, 0xF4F5736DC73B4F3E)
}
"""The last bytes of a table of RocksDB: of blocks, of blocks in the first format, plain, plain in the first format."""

TEXTS = ("metadata", "offsets/", "commits/", "sources/")
PACKED = (".changelog", ".delta", ".snapshot")


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
