"""Simulated Spark: writes a checkpoint into memory step by step, takes snapshots, compacts, forgets, and dies anywhere.

It knows one stateful operator over a file source. Each write is one step; the names and contents are Spark's.
"""

import io
import json
import struct
import uuid
import zipfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random

import pyarrow as pa

from ha.checkpoints.file_check import xxh32

PARTITIONS = 2
STORES = ("left", "right")
HDFS, ROCKSDB, ROCKSDB_IDS = "hdfs", "rocksdb", "rocksdb with ids"
FORMATS = (HDFS, ROCKSDB, ROCKSDB_IDS)
TABLE = b"tt" + struct.pack("<Q", 0x88E241B785F4CFF7)


@lru_cache(maxsize=1000)
def lz4(data: bytes) -> bytes:
    packed: bytes = pa.Codec("lz4_raw").compress(data, asbytes=True)
    header = struct.Struct("<8sBiii")
    (found,) = xxh32([data], 0x9747B28C)
    begin = header.pack(b"LZ4Block", 0x25, len(packed), len(data), found & 0x0FFFFFFF)
    return begin + packed + header.pack(b"LZ4Block", 0x15, 0, 0, 0)


def utf(text: str) -> bytes:
    """Return what Java's ``DataOutputStream.writeUTF`` writes."""
    return struct.pack(">H", len(text)) + text.encode()


@dataclass
class SimulatedSpark:
    """One query, alive from its start to its death; the next one is given its files."""

    format: str
    random: Random
    files: dict[str, bytes] = field(default_factory=dict)
    retained: int = 4
    compaction: int = 3
    deltas: int = 3
    line: int = 0
    """It is in what is written; a query that was put back does other batches under the same names."""
    lineages: dict[tuple[str, str], list[tuple[int, str]]] = field(default_factory=dict)

    def sizes(self) -> Mapping[str, int]:
        return {path: len(data) for path, data in self.files.items()}

    def write_to(self, place: Path) -> Path:
        for path, data in self.files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(data)
        return place

    def newest(self) -> int | None:
        return max(
            (int(each[8:]) for each in self.files if each.startswith("commits/") and each[8:].isdecimal()), default=None
        )

    def run(self) -> Generator[str, None, None]:
        """Write for ever; yields after each file, where the process may die."""
        if "metadata" not in self.files:
            yield self._write("metadata", b'{"id":"b0-b0-b0-b0-b0"}')
        newest = self.newest()
        batch = 0 if newest is None else newest + 1
        while True:
            yield from self._batch(batch)
            yield from self._maintain(batch)
            batch += 1

    def _write(self, path: str, data: bytes | str) -> str:
        self.files[path] = data.encode() if isinstance(data, str) else data
        return path

    def _batch(self, batch: int) -> Generator[str, None, None]:
        yield from self._source(batch)
        conf = {"spark.sql.shuffle.partitions": str(PARTITIONS)}
        head = json.dumps({"batchWatermarkMs": 1000 * batch, "batchTimestampMs": self.line, "conf": conf})
        yield self._write(f"offsets/{batch}", f'v1\n{head}\n{{"logOffset":{batch}}}')
        if "state/0/_metadata/metadata" not in self.files:
            stores = [{"storeName": each, "numColsPrefixKey": 0, "numPartitions": PARTITIONS} for each in STORES]
            said = {"operatorInfo": {"operatorId": 0, "operatorName": "join"}, "stateStoreInfo": stores}
            yield self._write("state/0/_metadata/metadata", f"v1\n{json.dumps(said)}")
        ids: list[list[str]] = []
        before = self._ids(batch - 1)
        for partition in range(PARTITIONS):
            ids.append([])
            for number, store in enumerate(STORES):
                identity = str(uuid.UUID(int=self.random.getrandbits(128)))
                ids[partition].append(identity)
                yield from self._store(f"state/0/{partition}/{store}", batch + 1, identity, before, partition, number)
        commit = {"nextBatchWatermarkMs": 0, **({"stateUniqueIds": {"0": ids}} if self.format == ROCKSDB_IDS else {})}
        yield self._write(f"commits/{batch}", f"v2\n{json.dumps(commit)}")

    def _source(self, batch: int) -> Generator[str, None, None]:
        line = json.dumps({"path": f"file:///in/{batch}", "timestamp": self.line, "batchId": batch})
        if (batch + 1) % self.compaction:
            yield self._write(f"sources/0/{batch}", f"v1\n{line}")
        else:
            said = [{"path": f"file:///in/{n}", "timestamp": self.line, "batchId": n} for n in range(batch + 1)]
            yield self._write(f"sources/0/{batch}.compact", "\n".join(["v1", *map(json.dumps, said)]))

    def _ids(self, batch: int) -> dict[str, list[list[str]]]:
        found = self.files.get(f"commits/{batch}")
        return json.loads(found.split(b"\n")[1]).get("stateUniqueIds", {}) if found else {}

    def _store(
        self, place: str, version: int, identity: str, before: dict[str, list[list[str]]], partition: int, number: int
    ) -> Generator[str, None, None]:
        if self.format == HDFS:
            yield self._write(f"{place}/{version}.delta", lz4(f"delta {self.line} of {version}".encode()))
        elif self.format == ROCKSDB:
            yield self._write(f"{place}/{version}.changelog", lz4(f"changes {self.line}".encode()))
        else:
            lineage = self._lineage(place, version - 1, before["0"][partition][number]) if before else []
            self.lineages[place, identity] = lineage
            head = utf("v3") + utf(json.dumps([{"version": v, "checkpointUniqueId": i} for v, i in lineage]))
            yield self._write(f"{place}/{version}_{identity}.changelog", lz4(head + b"changes"))

    def _lineage(self, place: str, version: int, identity: str) -> list[tuple[int, str]]:
        """Return the versions from the newest snapshot to this one, which its own changelog does not name."""
        found = [*self.lineages[place, identity], (version, identity)]
        whole = [number for number, each in enumerate(found) if f"{place}/{each[0]}_{each[1]}.zip" in self.files]
        return found[max(whole, default=0) :]

    def _maintain(self, batch: int) -> Generator[str, None, None]:
        if batch % self.deltas == self.deltas - 1:
            for partition in range(PARTITIONS):
                for number, store in enumerate(STORES):
                    yield from self._snapshot(f"state/0/{partition}/{store}", batch, partition, number)
        for name in [each for each in self.files if self._is_old(each, batch - self.retained + 1)]:
            self.files.pop(name, None)  # somebody else may have deleted it meanwhile
            yield name

    def _snapshot(self, place: str, batch: int, partition: int, number: int) -> Generator[str, None, None]:
        version = batch + 1
        if self.format == HDFS:
            yield self._write(f"{place}/{version}.snapshot", lz4(f"all {self.line} of {version}".encode()))
            return
        tables = [f"{n:06}-{uuid.UUID(int=self.random.getrandbits(128))}.sst" for n in range(2)]
        for table in tables:
            yield self._write(f"{place}/SSTs/{table}", TABLE)
        said = {"sstFiles": [{"dfsSstFileName": each, "sizeBytes": len(TABLE)} for each in tables], "numKeys": version}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(zipfile.ZipInfo("metadata"), f"v1\n{json.dumps(said)}")
        identity = f"_{self._ids(batch)['0'][partition][number]}" if self.format == ROCKSDB_IDS else ""
        yield self._write(f"{place}/{version}{identity}.zip", packed.getvalue())

    def _is_old(self, name: str, oldest: int) -> bool:
        """Whether Spark deletes a file when ``oldest`` is the oldest batch that it retains."""
        folder, _, last = name.rpartition("/")
        if folder in ("offsets", "commits"):
            return int(last) < oldest
        if folder.startswith("sources/"):
            compacted = max((int(e.split("/")[2][:-8]) for e in self.files if e.endswith(".compact")), default=-1)
            return int(last.partition(".")[0]) < compacted
        if not folder.startswith("state/0/") or "_metadata" in name:
            return False
        if folder.endswith("/SSTs"):
            return not any(last.encode() in self._metadata_of(each) for each in self._zips(folder[:-5]))
        number = int(last.partition(".")[0].partition("_")[0])
        whole = [self._number(each) for each in self.files if each.startswith(f"{folder}/") and _is_whole(each)]
        needed = max((each for each in whole if each <= oldest + 1), default=0)
        return number < needed

    def _zips(self, place: str) -> list[str]:
        return [each for each in self.files if each.startswith(f"{place}/") and each.endswith(".zip")]

    def _metadata_of(self, path: str) -> bytes:
        with zipfile.ZipFile(io.BytesIO(self.files[path])) as archive:
            return archive.read("metadata")

    @staticmethod
    def _number(path: str) -> int:
        return int(path.rpartition("/")[2].partition(".")[0].partition("_")[0])


def _is_whole(path: str) -> bool:
    return path.endswith((".zip", ".snapshot"))
