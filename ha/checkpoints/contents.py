"""Contents: parses the small files of a Spark checkpoint. Pure.

Each reader takes the bytes of one file, and raises :class:`Unreadable` if it has another form.

Formats are Spark's: HDFSMetadataLog and OffsetSeqLog for offsets and commits, RocksDBCheckpointMetadata in a zip,
StateStoreChangelogWriterV3 and V4 for lineages, OperatorStateMetadata for operators.
"""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from ha.checkpoints.checkpoint_files import Version

Json = dict[str, Any]

T = TypeVar("T")

# At the beginning of a changelog, with its lineage: an entry takes about 80, and the file is packed.
LINEAGE_BYTES = 64 << 10

PLANNED = "ha.planned"  # a setting that a seek writes: Spark reads only those that it knows

MOST_PARTITIONS = 100_000  # state partitions of an operator; a larger number is damage, and would fill the memory
_MOST_PACKED = 1 << 20  # bytes of the metadata in a zip of RocksDB: a line for each table, of some hundred bytes
_MOST_MEMBERS = 1000  # members of a zip of RocksDB, which has a few
MOST_PLAIN = 32 << 20  # longest block that LZ4BlockOutputStream can write
_ID = re.compile(r"[0-9a-fA-F]{1,8}(?:-[0-9a-fA-F]{1,4}){3}-[0-9a-fA-F]{1,12}")
_VERSION = re.compile(r"v[1-9][0-9]{0,8}")

LZ4 = b"LZ4Block"
PLAIN = 0x10  # method of a block of LZ4BlockOutputStream that is not packed


class Unreadable(ValueError):
    """The file does not have the form that Spark gives it."""


class Altered(Unreadable):
    """The file has its form, so Spark takes it, and yet it is not what was written."""


def parsed(reader: Callable[[bytes], T], data: bytes | None) -> T | None:
    """Return what a file says; None if there is none, or it has another form."""
    try:
        return None if data is None else reader(data)
    except Unreadable:
        return None


class Offsets(msgspec.Struct, frozen=True):
    """``offsets/N``: the settings that are frozen, the batch's watermark and time, and each source's place."""

    settings: dict[str, str]
    watermark_ms: int
    sources: dict[str, Any]
    time_ms: int = 0
    partitions: int = 0  # number of state partitions
    planned: str = ""  # digest of what the batch was, if a seek has changed the offsets since

    @property
    def named(self) -> bool:
        """Whether the program has named its sources; else they have numbers."""
        return not all(each.isdecimal() for each in self.sources)


def offsets(data: bytes) -> Offsets:
    """Read ``offsets/N``."""
    lines = _lines(data)
    head = _object(lines[1])
    found: dict[str, Any] = {}
    for number, line in enumerate(lines[2:]):
        # Version 2 is of sources with names, which are those of their directories as well.
        name, _, said = line.partition(":") if lines[0] == "v2" else (str(number), "", line)
        if not said:
            raise Unreadable(f"It has no offset of source {name}.")
        try:
            found[name] = None if said == "-" else decoded(said)
        except Unreadable:
            if said[0] in "{[":
                raise
            found[name] = said  # a source may write what it likes
    try:
        watermark, time = (int(head.get(each, 0)) for each in ("batchWatermarkMs", "batchTimestampMs"))
        settings = msgspec.convert(head.get("conf") or {}, dict[str, str])
        planned = settings.pop(PLANNED, "")
        partitions = int(settings.get("spark.sql.shuffle.partitions", 0))
    except (TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"Its settings or times are none ({error}).") from error
    if not 0 <= partitions <= MOST_PARTITIONS:
        raise Unreadable(f"It says {partitions:,} state partitions, and {MOST_PARTITIONS:,} are the most.")
    return Offsets(settings, watermark, found, time, partitions, planned)


def rewritten(data: bytes, settings: Mapping[str, str], source: Callable[[str], str] = str) -> bytes:
    """Return ``offsets/N`` with these settings, and with what ``source`` makes of the offset of each source."""
    version, head, *sources = _lines(data)
    said = _object(head)
    said["conf"] = {**(said.get("conf") or {}), **settings}
    lines = []
    for line in sources:
        name, colon, offset = line.partition(":") if version == "v2" else ("", "", line)
        lines.append(f"{name}{colon}{source(offset)}")
    return "\n".join([version, msgspec.json.encode(said).decode(), *lines]).encode()


def kafka_offset(offset: Any) -> dict[str, dict[int, int]] | None:
    """Return by topic and partition where a Kafka source goes on; None if it is another source."""
    try:
        return msgspec.convert(offset, dict[str, dict[int, int]], strict=False) or None
    except msgspec.ValidationError:
        return None


def query_id(data: bytes) -> str:
    """Read ``metadata``: the id of the query."""
    said = decoded(data)
    found = said.get("id") if isinstance(said, dict) else None
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise Unreadable("It has no id of a query." if data else "It is empty.")
    return found


def log_offset(offset: Any) -> int | None:
    """Return the newest entry of its log that a file source has used; None if it is another source."""
    number = offset.get("logOffset") if isinstance(offset, dict) else None
    return number if isinstance(number, int) else None


def logged_files(data: bytes, after: int = -1) -> list[str]:
    """Read an entry of a file source's log: the URIs of files, without those up to the entry ``after``."""
    first, *entries = _lines(data, least=1)
    if first != "v1":
        raise Unreadable(f"It is of version {first!r}, which no file source writes.")
    said = [_object(line) for line in (entries[:-1] if entries and not entries[-1] else entries)]
    if not all(isinstance(each.get("path"), str) and isinstance(each.get("timestamp"), int) for each in said):
        raise Unreadable("It has an entry without a file.")
    return [each["path"] for each in said if after < 0 or int(each.get("batchId", after)) > after]


def state_ids(data: bytes) -> dict[int, list[list[str]]]:
    """Read ``commits/N``: the id of each store's version, by operator, partition and store; empty in format 1."""
    ids = _object(_lines(data)[1]).get("stateUniqueIds") or {}
    try:
        return {int(operator): [list(each) for each in partitions] for operator, partitions in ids.items()}
    except (TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"Its ids of state are no lists ({error}).") from error


def next_watermark(data: bytes) -> int:
    """Read ``commits/N``: the watermark of the batch after it, in milliseconds since 1970; 0 if there is none yet."""
    try:
        return int(_object(_lines(data)[1]).get("nextBatchWatermarkMs") or 0)
    except (TypeError, ValueError) as error:
        raise Unreadable(f"Its watermark is no number ({error}).") from error


class OperatorStores(msgspec.Struct, frozen=True):
    """Operator metadata: its name, its stores in order, their number of partitions, and their schemas' files."""

    # Variables are those of a program's transformWithState, by name: the type of each.

    name: str
    stores: list[str]
    partitions: int
    schemas: list[str]
    properties: Json
    variables: dict[str, str]


def operator_stores(data: bytes) -> OperatorStores:
    """Read the metadata of an operator, of either version."""
    said = _object(_lines(data)[1])
    try:
        stores = said["stateStoreInfo"]
        # transformWithState writes absolute paths, and a checkpoint can be moved: what counts is below ``state``.
        schemas = [
            "state/" + path.rpartition("/state/")[2] for each in stores for path in each.get("stateSchemaFilePaths", ())
        ]
        properties = _object(said["operatorPropertiesJson"]) if said.get("operatorPropertiesJson") else {}
        variables = properties.get("stateVariables") or ()
        return OperatorStores(
            said["operatorInfo"]["operatorName"],
            [each["storeName"] for each in stores],
            max((int(each["numPartitions"]) for each in stores), default=0),
            schemas,
            properties,
            {str(each["stateName"]): str(each.get("stateVariableType")) for each in variables},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Unreadable(f"It is no operator metadata ({error!r}).") from error


class Whole(msgspec.Struct, frozen=True):
    """The zip of one version of RocksDB: its number of keys, and the size of each file that it needs, by path."""

    keys: int
    files: dict[str, int]


def opened_zip(data: bytes) -> zipfile.ZipFile:
    """Open a zip whose members fit into memory: Java packs by Deflate, and other ways unpack without a bound."""
    if (members := data.count(b"PK\1\2")) > _MOST_MEMBERS:
        raise Unreadable(f"It has {members:,} members, and {_MOST_MEMBERS:,} are the most.")
    packed = zipfile.ZipFile(io.BytesIO(data))
    if any(each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for each in packed.infolist()):
        raise Unreadable("It is packed in another way than Java packs.")
    return packed


def whole(data: bytes) -> Whole:
    """Read the zip of a version."""
    try:
        with opened_zip(data) as packed, packed.open("metadata") as file:
            said = _object(_lines(file.read(_MOST_PACKED))[1])
        tables = {f"SSTs/{each['dfsSstFileName']}": int(each["sizeBytes"]) for each in said.get("sstFiles") or ()}
        logs = {f"logs/{each['dfsLogFileName']}": int(each["sizeBytes"]) for each in said.get("logFiles") or ()}
        return Whole(int(said.get("numKeys", 0)), tables | logs)
    except _NO_ZIP as error:
        raise Unreadable(f"It is no snapshot of RocksDB ({error!r}).") from error


_NO_ZIP = (zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, EOFError, NotImplementedError, RuntimeError)


def lineage(head: bytes) -> list[Version]:
    """Read the versions before this one, from the newest snapshot that its writer knew on."""
    # From the first LINEAGE_BYTES of a changelog of format 2, packed with LZ4, Spark's default, or Zstandard.
    text = _unpacked(head)
    try:
        version, text = _utf(text)
        if version == b"v2":
            raise Unreadable("It is a changelog of version 2, which has no lineage.")
        entries = decoded(_utf(text)[0])
        return [Version(int(each["version"]), each["checkpointUniqueId"]) for each in entries]
    except (struct.error, KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"It has no lineage ({error}).") from error


def rebuilt_log(data: bytes, newest: int) -> bytes:
    """Return a compacted log of a file source without the entries after ``newest``."""
    first, *entries = _lines(data)
    kept = [line for line in entries if line and int(_object(line).get("batchId", 0)) <= newest]
    return "\n".join([first, *kept]).encode()


def _lines(data: bytes, least: int = 2) -> list[str]:
    """Return the lines of a log: a version, and what it says."""
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise Unreadable("It is no text.") from error
    if not _VERSION.fullmatch(lines[0]) or len(lines) < least:
        raise Unreadable("It is empty, or a part of itself." if lines[0][:1] in ("", "v") else "It has no version.")
    return lines


def _object(line: str) -> Json:
    found = decoded(line)
    if not isinstance(found, dict):
        raise Unreadable(f"It says {line[:40]!r} where an object should be.")
    return found


def decoded(text: bytes | str) -> Any:
    """Read JSON, however deep it is nested."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"It says {text[:40]!r}, which is no JSON." if text else "It is empty.") from error
    except RecursionError as error:
        raise Unreadable("Its JSON is nested too deep.") from error


def _utf(data: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack_from(">H", data)
    return data[2 : 2 + length], data[2 + length :]


def _unpacked(data: bytes) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  # takes 60 ms, only for format 2

    try:
        if not data.startswith(LZ4):
            with pa.input_stream(pa.BufferReader(data), compression="zstd") as stream:
                return bytes(stream.read(LINEAGE_BYTES))
        codec, found, at = pa.Codec("lz4_raw"), b"", 0
        while data[at : at + 8] == LZ4 and len(found) < LINEAGE_BYTES:
            token = data[at + 8]
            packed, plain, _ = struct.unpack_from("<iii", data, at + 9)
            block = data[at + 21 : at + 21 + packed]
            if not 0 < packed == len(block) or not 0 < plain <= MOST_PLAIN:
                break  # the end, or the end of what was read
            found += block if token & 0xF0 == PLAIN else codec.decompress(block, plain, asbytes=True)
            at += 21 + packed
    except (OSError, struct.error, IndexError) as error:
        raise Unreadable(f"It is packed in another way than LZ4 or Zstandard ({error}).") from error
    return found
