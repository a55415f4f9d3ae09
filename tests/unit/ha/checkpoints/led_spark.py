"""Led Spark: a simulated Spark under one leader after another. It is killed anywhere, and leaves what real ones leave.

Besides what the simulated Spark does, tasks are tried twice, so that versions remain that no commit names; uploads of
snapshots fail after their tables, and later snapshots name these; snapshots share tables; files are renamed into their
names. The clock is the NameNode's: each file has the time at which it was written. Each leader may write a line of
history at any time after its claim, and its sidecar one at the end of its Spark.

:meth:`LedSpark.asked` is Spark's own way to a version, written without the product's closures.
"""

import json
import uuid
import zipfile
from collections.abc import Generator
from dataclasses import dataclass, field
from io import BytesIO
from random import Random

from tests.unit.ha.checkpoints.simulated_spark import HDFS, PARTITIONS, ROCKSDB_IDS, STORES, TABLE, SimulatedSpark

STEP_MS = 10_000
"""Time from one file to the next. It is long, so that the margin for clocks is a few files and not all of them."""


@dataclass
class LedSpark(SimulatedSpark):
    at_ms: int = 1_000_000
    written_ms: dict[str, int] = field(default_factory=dict)
    history_ms: list[int] = field(default_factory=list)
    """The newest line of history of each epoch that is over; the present one's is the last."""
    tables: dict[str, list[str]] = field(default_factory=dict)
    """Tables of the present process, by store; a new process has those of the snapshots that it loads."""

    def claim(self) -> None:
        """A new leader begins; a Spark of its own follows."""
        self.at_ms += STEP_MS
        self.history_ms.append(0)
        self.tables = {}
        newest = self.newest()
        if newest is not None:
            for place, version, identity in self.targets(newest):
                self.tables[place] = self.tables_of(self.base(place, version, identity)[0])

    def write_history(self) -> None:
        self.at_ms += STEP_MS
        self.history_ms[-1] = self.at_ms

    def before_ms(self) -> int:
        """Before this the present leader had not begun, as far as history says."""
        return max(self.history_ms[:-1], default=0)

    def die(self) -> None:
        """Die while a file is written: perhaps it has not got its name yet, or it has, and was written twice."""
        newest = max(self.files, key=lambda path: self.written_ms[path], default=None)
        if newest is None or self.random.random() < 0.5:
            return
        folder, slash, name = newest.rpartition("/")
        temporary = f"{folder}{slash}.{name}.{self._uuid()}.TID7.tmp"
        self.files[temporary] = self.files[newest][:5]
        self.written_ms[temporary] = self.at_ms

    def oracle(self) -> set[str]:
        """Everything that restarts after retained batches ask for, if all of it is there; else of those where it is."""
        found = set()
        for path in self.files:
            if path.startswith("commits/") and path[8:].isdecimal():
                asked = self.asked(int(path[8:]))
                if asked <= self.files.keys():
                    found |= asked
        return found

    def asked(self, batch: int) -> set[str]:
        """Return the files of state that a restart after a batch opens, in the way of Spark's state stores."""
        found = {"metadata", f"offsets/{batch}", f"commits/{batch}"}
        for place, version, identity in self.targets(batch):
            base, changes = self.base(place, version, identity)
            found |= {f"{place}/{each}" for each in changes}
            if base:
                found.add(base)
                found |= {f"{place}/SSTs/{table}" for table in self.tables_of(base)}
        return found

    def targets(self, batch: int) -> list[tuple[str, int, str]]:
        ids = self._ids(batch).get("0")
        return [
            (f"state/0/{partition}/{store}", batch + 1, ids[partition][number] if ids else "")
            for partition in range(PARTITIONS)
            for number, store in enumerate(STORES)
        ]

    def base(self, place: str, version: int, identity: str) -> tuple[str, list[str]]:
        """Return the snapshot that a version is made from, empty for none, and the names of the changes after it."""
        if self.format == ROCKSDB_IDS:
            known = [*self.lineages.get((place, identity), []), (version, identity)]
            names = [f"{number}_{each}" for number, each in known]
            whole = [number for number, name in enumerate(names) if f"{place}/{name}.zip" in self.files]
            if whole:
                return f"{place}/{names[whole[-1]]}.zip", [f"{name}.changelog" for name in names[whole[-1] + 1 :]]
            return "", [f"{name}.changelog" for name in names]
        kind, changes = ("snapshot", "delta") if self.format == HDFS else ("zip", "changelog")
        first = max((n for n in range(1, version + 1) if f"{place}/{n}.{kind}" in self.files), default=0)
        base = f"{place}/{first}.{kind}" if first else ""
        return base, [f"{number}.{changes}" for number in range(first + 1, version + 1)]

    def tables_of(self, path: str) -> list[str]:
        if not path.endswith(".zip"):
            return []
        with zipfile.ZipFile(BytesIO(self.files[path])) as packed:
            said = json.loads(packed.read("metadata").decode().partition("\n")[2])
        return [each["dfsSstFileName"] for each in said["sstFiles"]]

    def _write(self, path: str, data: bytes | str) -> str:
        self.at_ms += STEP_MS
        self.written_ms[path] = self.at_ms
        return super()._write(path, data)

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128)))

    def _store(
        self, place: str, version: int, identity: str, before: dict[str, list[list[str]]], partition: int, number: int
    ) -> Generator[str, None, None]:
        if self.random.random() < 0.1:  # the first try of a task; another one wins
            yield from super()._store(place, version, self._uuid(), before, partition, number)
        yield from super()._store(place, version, identity, before, partition, number)

    def _snapshot(self, place: str, batch: int, partition: int, number: int) -> Generator[str, None, None]:
        if self.format == HDFS:
            yield from super()._snapshot(place, batch, partition, number)
            return
        live = [table for table in self.tables.get(place, []) if self.random.random() < 0.7]
        for _ in range(self.random.randrange(1, 3)):
            table = f"{self.random.randrange(10**6):06}-{self._uuid()}.sst"
            yield self._write(f"{place}/SSTs/{table}", TABLE)
            live.append(table)
        self.tables[place] = live
        if self.random.random() < 0.15:  # the upload fails; its tables are known, and the next one names them
            return
        said = {"sstFiles": [{"dfsSstFileName": each, "sizeBytes": len(TABLE)} for each in live], "numKeys": batch}
        packed = BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("metadata", f"v1\n{json.dumps(said)}")
        identity = f"_{self._ids(batch)['0'][partition][number]}" if self.format == ROCKSDB_IDS else ""
        yield self._write(f"{place}/{batch + 1}{identity}.zip", packed.getvalue())

    def _is_old(self, name: str, oldest: int) -> bool:
        """Whether Spark deletes a file: what it does not know, it leaves."""
        if name.rpartition("/")[2].startswith("."):
            return False
        if "/SSTs/" in name:
            place, _, table = name.partition("/SSTs/")
            return table not in self.tables.get(place, []) and super()._is_old(name, oldest)
        return super()._is_old(name, oldest)


@dataclass
class Life:
    spark: LedSpark
    random: Random

    def __post_init__(self) -> None:
        self.spark.claim()
        self.run = self.spark.run()

    def step(self) -> bool:
        """Let something happen; returns whether the leader is another one now."""
        chance = self.random.random()
        if chance < 0.02:
            self.spark.die()
            if self.random.random() < 0.5:
                self.spark.write_history()  # the sidecar lives, and says why it ended
            self.spark.claim()
            self.run = self.spark.run()
            return True
        if chance < 0.05:
            self.spark.write_history()
        else:
            next(self.run)
        return False


def life(kind: str, seed: int) -> Life:
    return Life(LedSpark(kind, Random(seed)), Random(seed + 1))  # noqa: S311
