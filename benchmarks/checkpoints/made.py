"""A large checkpoint, made without Spark: RocksDB in format 2, with the names, lineages and zips that Spark writes."""

import io
import json
import struct
import uuid
import zipfile
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa

SNAPSHOT_EVERY = 10  # Versions between two that are kept whole: Spark's ``minDeltasForSnapshot``
TABLES = 5  # Tables of a whole version; a newer version replaces one of them
COMPACTED_EVERY = 10
OPERATORS = ("dedupe", "stateStoreSave")
FIRST_BATCH = 1000
KEYS = 10_000

_HEADER = struct.Struct("<8sBiii")
_OPTIONS = "\n".join(f"  option_{number}={number * 7919}" for number in range(300))
"""As long as the options that Spark's RocksDB keeps in each zip."""


class Size(NamedTuple):
    """How large the checkpoint is."""

    partitions: int = 200
    operators: int = 2
    batches: int = 100
    table_bytes: int = 4 << 20


def make(place: Path, size: Size) -> dict[str, int]:
    """Write the checkpoint into a new directory."""
    random = Random(0)  # noqa: S311  # the same files each time
    last = FIRST_BATCH + size.batches - 1
    stores = [(operator, partition) for operator in range(size.operators) for partition in range(size.partitions)]
    # The version before the oldest retained batch is kept whole, as Spark keeps it.
    ids = {
        (store, version): str(uuid.UUID(int=random.getrandbits(128)))
        for store in stores
        for version in range(FIRST_BATCH, last + 2)
    }
    _logs(place, size, ids)
    with ThreadPoolExecutor(8) as crew:
        totals = list(crew.map(lambda store: _store(place, size, store, ids), stores))
    small = [each for folder in ("offsets", "commits", "sources") for each in (place / folder).rglob("*")]
    return {"files": sum(totals) + len(small), "bytes": sum(each.stat().st_size for each in place.rglob("*"))}


def _logs(place: Path, size: Size, ids: dict[tuple[tuple[int, int], int], str]) -> None:
    conf = {"spark.sql.shuffle.partitions": str(size.partitions), "spark.sql.streaming.join.stateFormatVersion": "2"}
    write(place / "metadata", b'{"id":"6e5be03d-d156-4b8e-a5e3-773adc7b70e6"}')
    for batch in range(FIRST_BATCH, FIRST_BATCH + size.batches):
        head = json.dumps({"batchWatermarkMs": batch * 1000, "batchTimestampMs": batch * 1000, "conf": conf})
        write(place / f"offsets/{batch}", f'v1\n{head}\n{{"logOffset":{batch}}}'.encode())
        said = {
            operator: [[ids[(operator, partition), batch + 1]] for partition in range(size.partitions)]
            for operator in range(size.operators)
        }
        commit = {"nextBatchWatermarkMs": batch * 1000, "stateUniqueIds": said}
        write(place / f"commits/{batch}", f"v2\n{json.dumps(commit)}".encode())
    for entry in range(FIRST_BATCH - 1, FIRST_BATCH + size.batches):
        compact = (entry + 1) % COMPACTED_EVERY == 0
        lines = [
            json.dumps({"path": f"hdfs:///in/{n}", "timestamp": 0, "batchId": n}) for n in range(entry - 50, entry)
        ]
        name = f"{entry}.compact" if compact else str(entry)
        write(place / "sources/0" / name, "\n".join(["v1", *(lines if compact else lines[-1:])]).encode())
    for operator in range(size.operators):
        info = {"operatorId": operator, "operatorName": OPERATORS[operator % len(OPERATORS)]}
        store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": size.partitions}
        said_of = json.dumps({"operatorInfo": info, "stateStoreInfo": [store]})
        write(place / f"state/{operator}/_metadata/metadata", f"v1\n{said_of}".encode())
        key, value = (
            json.dumps({"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}}]})
            for name, kind in (("key", "string"), ("count", "long"))
        )
        schema = _utf("v2") + struct.pack(">i", 1) + _utf(key) + struct.pack(">i", 1) + _utf(value)
        write(place / f"state/{operator}/0/_metadata/schema", schema)


def _store(place: Path, size: Size, store: tuple[int, int], ids: dict[tuple[tuple[int, int], int], str]) -> int:
    random = Random(f"{store}")  # noqa: S311
    folder = place / f"state/{store[0]}/{store[1]}"
    (folder / "SSTs").mkdir(parents=True, exist_ok=True)
    names = iter(lambda: f"{random.getrandbits(20):06}-{uuid.UUID(int=random.getrandbits(128))}.sst", "")
    versions = range(FIRST_BATCH, FIRST_BATCH + size.batches + 1)
    tables = [next(names) for _ in range(TABLES - 1)]
    for table in tables:
        _sparse(folder / "SSTs" / table, size.table_bytes)
    lineage: list[int] = []
    files = len(tables)
    for before, version in pairwise([FIRST_BATCH - 1, *versions]):
        identity = ids[store, version]
        lineage = [before] if before in versions and _is_whole(before) else [*lineage, before]
        if version > FIRST_BATCH:
            said = [{"version": each, "checkpointUniqueId": ids[store, each]} for each in lineage if each in versions]
            write(folder / f"{version}_{identity}.changelog", _lz4(_utf("v3") + _utf(json.dumps(said)) + bytes(200)))
            files += 1
        if _is_whole(version):
            tables = [*tables[-TABLES + 1 :], next(names)]
            _sparse(folder / "SSTs" / tables[-1], size.table_bytes)
            write(folder / f"{version}_{identity}.zip", _zip(tables, size.table_bytes, random))
            files += 2
    return files


def _is_whole(version: int) -> bool:
    return (version - FIRST_BATCH) % SNAPSHOT_EVERY == 0


def _zip(tables: list[str], table_bytes: int, random: Random) -> bytes:
    said = {
        "sstFiles": [{"localFileName": each[:10], "dfsSstFileName": each, "sizeBytes": table_bytes} for each in tables],
        "numKeys": KEYS + random.randrange(KEYS),
        "columnFamilyMapping": {},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("MANIFEST-000005", random.randbytes(600))
        archive.writestr("OPTIONS-000007", _OPTIONS)
        archive.writestr("metadata", f"v1\n{json.dumps(said)}")
    return packed.getvalue()


def write(path: Path, data: bytes) -> None:
    """Write a file, with its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _sparse(path: Path, length: int) -> None:
    with path.open("wb") as file:
        file.truncate(length)


def _lz4(data: bytes) -> bytes:
    packed: bytes = pa.Codec("lz4_raw").compress(data, asbytes=True)
    end = _HEADER.pack(b"LZ4Block", 0x15, 0, 0, 0)
    return _HEADER.pack(b"LZ4Block", 0x25, len(packed), len(data), 0) + packed + end


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
