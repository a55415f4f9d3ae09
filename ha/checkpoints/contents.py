"""Contents: what the small files of a Spark checkpoint say. Pure; each reader takes the bytes of one file.

Formats are Spark's: HDFSMetadataLog and OffsetSeqLog for offsets and commits, RocksDBCheckpointMetadata in a zip,
StateStoreChangelogWriterV3 and V4 for lineages, OperatorStateMetadata for operators.
"""

import io
import struct
import zipfile
from typing import Any

import msgspec

from ha.checkpoints.names import Version

Json = dict[str, Any]

LINEAGE_BYTES = 64 << 10
"""Bytes at the beginning of a changelog that contain its lineage: an entry takes about 80, and the file is packed."""

_LZ4 = b"LZ4Block"
_PLAIN = 0x10
"""Method of a block of LZ4BlockOutputStream that is not packed."""


class Unreadable(ValueError):
    """The file does not have the form that Spark gives it."""


class Offsets(msgspec.Struct, frozen=True):
    """``offsets/N``: the settings that are frozen, the batch's watermark and time, and each source's place."""

    settings: dict[str, str]
    watermark_ms: int
    sources: dict[str, Any]
    time_ms: int = 0

    @property
    def partitions(self) -> int:
        """Number of state partitions."""
        return int(self.settings.get("spark.sql.shuffle.partitions", 0))

    @property
    def named(self) -> bool:
        """Whether the program has named its sources; else they have numbers."""
        return not all(each.isdecimal() for each in self.sources)


def offsets(data: bytes) -> Offsets:
    """Read ``offsets/N``.

    Raises:
        Unreadable: it has another form.
    """
    lines = _lines(data)
    head = _object(lines[1])
    found: dict[str, Any] = {}
    for number, line in enumerate(lines[2:]):
        # Version 2 is of sources with names, which are those of their directories as well.
        name, _, said = line.partition(":") if lines[0] == "v2" else (str(number), "", line)
        try:
            found[name] = None if said == "-" else msgspec.json.decode(said)
        except msgspec.DecodeError:  # a source may write what it likes
            found[name] = said
    watermark, time = (int(head.get(each, 0)) for each in ("batchWatermarkMs", "batchTimestampMs"))
    return Offsets(head.get("conf") or {}, watermark, found, time)


def log_offset(offset: Any) -> int | None:
    """Return the newest entry of its log that a file source has used; None if it is another source."""
    number = offset.get("logOffset") if isinstance(offset, dict) else None
    return number if isinstance(number, int) else None


def logged_files(data: bytes) -> list[str]:
    """Read an entry of a file source's log: the URIs of files; none if it is another source's."""
    try:
        said = [_object(line) for line in _lines(data)[1:] if line]
        return [each["path"] for each in said if isinstance(each.get("path"), str)]
    except (Unreadable, AttributeError):
        return []


def state_ids(data: bytes) -> dict[int, list[list[str]]]:
    """Read ``commits/N``: the id of each store's version, by operator, partition and store; empty in format 1.

    Raises:
        Unreadable: it has another form.
    """
    ids = _object(_lines(data)[1]).get("stateUniqueIds") or {}
    try:
        return {int(operator): [list(each) for each in partitions] for operator, partitions in ids.items()}
    except (TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"Its ids of state are no lists ({error}).") from error


def next_watermark(data: bytes) -> int:
    """Read ``commits/N``: the watermark of the batch after it, in milliseconds since 1970; 0 if there is none yet.

    Raises:
        Unreadable: it has another form.
    """
    try:
        return int(_object(_lines(data)[1]).get("nextBatchWatermarkMs") or 0)
    except (TypeError, ValueError) as error:
        raise Unreadable(f"Its watermark is no number ({error}).") from error


class OperatorStores(msgspec.Struct, frozen=True):
    """Operator metadata: its name, its stores in order, their number of partitions, and their schemas' files."""

    name: str
    stores: list[str]
    partitions: int
    schemas: list[str]
    properties: Json


def operator_stores(data: bytes) -> OperatorStores:
    """Read the metadata of an operator, of either version.

    Raises:
        Unreadable: it has another form.
    """
    said = _object(_lines(data)[1])
    try:
        stores = said["stateStoreInfo"]
        # transformWithState writes absolute paths, and a checkpoint can be moved: what counts is below ``state``.
        schemas = [
            "state/" + path.rpartition("/state/")[2] for each in stores for path in each.get("stateSchemaFilePaths", ())
        ]
        return OperatorStores(
            said["operatorInfo"]["operatorName"],
            [each["storeName"] for each in stores],
            max((int(each["numPartitions"]) for each in stores), default=0),
            schemas,
            _object(said["operatorPropertiesJson"]) if said.get("operatorPropertiesJson") else {},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Unreadable(f"It is no operator metadata ({error!r}).") from error


class Whole(msgspec.Struct, frozen=True):
    """The zip of one version of RocksDB: its number of keys, and the size of each file that it needs, by path."""

    keys: int
    files: dict[str, int]


def whole(data: bytes) -> Whole:
    """Read the zip of a version.

    Raises:
        Unreadable: it is no such zip.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            said = _object(_lines(packed.read("metadata"))[1])
        tables = {f"SSTs/{each['dfsSstFileName']}": int(each["sizeBytes"]) for each in said.get("sstFiles") or ()}
        logs = {f"logs/{each['dfsLogFileName']}": int(each["sizeBytes"]) for each in said.get("logFiles") or ()}
        return Whole(int(said.get("numKeys", 0)), tables | logs)
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError) as error:
        raise Unreadable(f"It is no snapshot of RocksDB ({error!r}).") from error


def lineage(head: bytes) -> list[Version]:
    """Read the versions before this one, from the newest snapshot that its writer knew on.

    Args:
        head: the first :data:`LINEAGE_BYTES` of a changelog of format 2, or all of it.

    Raises:
        Unreadable: it has another form, or is packed with another codec than LZ4, Spark's default, or Zstandard.
    """
    text = _unpacked(head)
    try:
        version, text = _utf(text)
        if version == b"v2":
            raise Unreadable("It is a changelog of version 2, which has no lineage.")
        entries = msgspec.json.decode(_utf(text)[0])
        return [Version(int(each["version"]), each["checkpointUniqueId"]) for each in entries]
    except (struct.error, KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"It has no lineage ({error}).") from error


def rebuilt_log(data: bytes, newest: int) -> bytes:
    """Return a compacted log of a file source without the entries after ``newest``.

    Raises:
        Unreadable: it has another form.
    """
    first, *entries = _lines(data)
    kept = [line for line in entries if line and int(_object(line).get("batchId", 0)) <= newest]
    return "\n".join([first, *kept]).encode()


def _lines(data: bytes) -> list[str]:
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise Unreadable("It is no text.") from error
    if not lines[0].startswith("v") or len(lines) < 2:  # noqa: PLR2004  # a version, and what it says
        raise Unreadable("It is empty, or a part of itself.")
    return lines


def _object(line: str) -> Json:
    try:
        return msgspec.json.decode(line, type=Json)
    except msgspec.DecodeError as error:
        raise Unreadable(f"It says {line[:40]!r} where an object should be.") from error


def _utf(data: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack_from(">H", data)
    return data[2 : 2 + length], data[2 + length :]


def _unpacked(data: bytes) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  # takes 60 ms, only for format 2

    try:
        if not data.startswith(_LZ4):
            with pa.input_stream(pa.BufferReader(data), compression="zstd") as stream:
                return bytes(stream.read(LINEAGE_BYTES))
        codec, found, at = pa.Codec("lz4_raw"), b"", 0
        while data[at : at + 8] == _LZ4 and len(found) < LINEAGE_BYTES:
            token = data[at + 8]
            packed, plain, _ = struct.unpack_from("<iii", data, at + 9)
            block = data[at + 21 : at + 21 + packed]
            if not packed or len(block) < packed:
                break  # the end, or the end of what was read
            found += block if token & 0xF0 == _PLAIN else codec.decompress(block, plain, asbytes=True)
            at += 21 + packed
    except (OSError, struct.error, IndexError) as error:
        raise Unreadable(f"It is packed in another way than LZ4 or Zstandard ({error}).") from error
    return found
