"""Damaged files: each file of a checkpoint, damaged in each way; what Spark does against what we say.

A checkpoint is one of three kinds. ``file`` is as Spark writes it on ``file://``, with Hadoop's check sums beside each
file. ``bare`` is without these: as another tool has copied it, and what HDFS shows of a file that was written wrong.
``hdfs`` is the same on ``hdfs://``. See :mod:`tests.system.checkpoints.damage_table`.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import Condition, Verified, judged, verify_contents
from ha.spark.checkpoint_tools.copying import folders
from ha.spark.queries.query_failures import failure
from store.files import Files
from store.open import open_files
from tests.patience import PATIENCE_S
from tests.system.checkpoints.damage_page import kind
from tests.system.checkpoints.rescaling import visits

BATCHES = 8
SCHEMA = "key string, value long, at timestamp"
FAILS, WRONG = "fails", "goes on with other rows"
GOOD = Verified(-1, Condition.RESTORABLE, 0, 0)


def plain(rows: DataFrame) -> DataFrame:
    return rows.where("value % 3 > 0")


def sums(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "10 seconds").groupBy("key").agg(fn.sum("value").alias("sum"))


def firsts(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "10 seconds").dropDuplicates(["key", "at"])


def pairs(rows: DataFrame) -> DataFrame:
    left, right = (rows.withWatermark("at", "10 seconds").alias(each) for each in ("l", "r"))
    return left.join(right, fn.expr("l.key = r.key AND l.at = r.at AND l.value < r.value"))


PROGRAMS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "plain": (plain, "append"),
    "sums": (sums, "update"),
    "firsts": (firsts, "append"),
    "pairs": (pairs, "append"),
    "visits": (visits, "update"),
}

Rows = dict[int, list[str]]

DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "emptied": lambda _: b"",
    "halved": lambda data: data[: len(data) // 2],
    "first byte": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "middle byte": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :],
    "gone": lambda _: None,
}


@dataclass
class Row:
    """One damaged file.

    Attributes:
        path: of the file.
        damage: what was done to it.
        begun: whether the newest batch was begun only.
        spark: what Spark does: empty if it goes on with the same rows.
        said: what `ha checkpoint verify` says, by names and small files.
        read: what `ha checkpoint verify --checksums` says.
    """

    path: str
    damage: str
    begun: bool
    spark: str
    said: Verified
    read: Verified


def sample(paths: list[str], *, begun: bool) -> list[str]:
    """Return the newest of each kind of file and the one before it, and once the oldest."""
    kinds: dict[str, list[str]] = {}
    for path in sorted(paths, key=lambda each: [int(number) for number in re.findall(r"[0-9]{1,9}", each)]):
        kinds.setdefault(kind(path), []).append(path)
    return sorted({each for found in kinds.values() for each in ([] if begun else found[:1]) + found[-2:]})


class Damages:
    """One program over one source, in one format of state and at one place."""

    def __init__(self, spark: SparkSession, home: Path, program: str, source: "Source", place: str = "bare") -> None:
        """Make its checkpoint; ``place`` is ``file``, ``bare``, or the URI of a directory on HDFS."""
        self._spark, self._home, self._source, self._place = spark, home, source, place
        self._program, self._mode = PROGRAMS[program]
        self._places = 0
        self._redone = -1
        """The batch that was begun only, of which also a source without an end gives the same rows."""
        self.whole = home / "whole"
        self.run(self.whole.as_uri(), BATCHES)
        _settle(self.whole)
        _unload(spark)
        for path in self.whole.glob(f"offsets/*{self.newest + 1}*"):
            path.unlink()  # a source without an end had begun a batch
        if place != "file":
            for path in self.whole.rglob(".*.crc"):
                path.unlink()
        source.more()

    @property
    def newest(self) -> int:
        return max(int(each.name) for each in (self.whole / "commits").glob("[0-9]*") if each.name.isdecimal())

    def rows(self, wanted: Callable[[str], bool] = bool) -> Iterator[Row]:
        """Damage files of each kind, in each way, once as the newest batch is complete and once as it is begun."""
        for begun in (False, True):
            base = self._copy(self.whole)
            if begun:
                self._redone = self.newest
                for each in (f"{self.newest}", f".{self.newest}.crc", f"{self.newest}.crc"):
                    (base / "commits" / each).unlink(missing_ok=True)
            expected = self._again(self._copy(base))
            assert isinstance(expected, dict), expected
            paths = [str(each.relative_to(base)) for each in base.rglob("*") if each.is_file()]
            for path in sample(paths, begun=begun):
                if (begun and path.startswith("state/")) or not wanted(path):
                    continue
                for damage in DAMAGES:
                    undone = (f"offsets/{self.newest}", "gone") if begun else (f"commits/{self.newest}", "gone")
                    row = self._row(base, path, damage, expected, begun=begun)
                    if (path, damage) == undone and row.spark == WRONG:
                        row.spark = ""  # Spark has not begun, or not done, the batch: it does it again, as after a kill
                    yield row

    def _row(self, base: Path, path: str, damage: str, expected: Rows, *, begun: bool) -> Row:
        place = self._copy(base)
        file = place / path
        data = DAMAGES[damage](file.read_bytes() or b"?")
        if data is None:
            file.unlink()
        else:
            file.write_bytes(data)
        uri = self._shown(place)
        named, read = said(uri, self._newest_commit(place))
        found = self._again(place, uri)
        spark = found if isinstance(found, str) else "" if found == expected else WRONG
        return Row(path, damage, begun, spark, named, read)

    @staticmethod
    def _newest_commit(place: Path) -> int:
        return max((int(each.name) for each in (place / "commits").iterdir() if each.name.isdecimal()), default=-1)

    def _shown(self, place: Path) -> str:
        if "://" not in self._place:
            return place.as_uri()
        with open_files(f"{self._place}/{place.name}") as files:
            files.call("make_root", lambda driver: driver.make_root(), PATIENCE_S)
            found = [path for path in sorted(place.rglob("*")) if not path.is_dir()]
            for folder in folders(str(path.relative_to(place)) for path in found):
                files.call("make", partial(_make, path=folder), PATIENCE_S)

            def put(path: Path) -> None:
                below, data = str(path.relative_to(place)), path.read_bytes()
                files.call("write", lambda driver: driver.write(below, data), PATIENCE_S)

            with ThreadPoolExecutor(16) as crew:
                list(crew.map(put, found))
        return f"{self._place}/{place.name}"

    def _again(self, place: Path, uri: str = "") -> Rows | str:
        """Go on from a copy; return the rows, or the error."""
        try:
            return self.run(uri or self._shown(place), 2)
        except Exception as error:  # noqa: BLE001  # whatever it is, the query does not go on
            return f"{FAILS} ({failure('', str(error)).error[:160]})"
        finally:
            _unload(self._spark)
            shutil.rmtree(place, ignore_errors=True)

    def _copy(self, base: Path) -> Path:
        """Return a copy at a path that was not there before: Spark keeps loaded state by its path."""
        self._places += 1
        place = self._home / f"copy-{self._places}"
        shutil.copytree(base, place)
        for path in place.glob("state/*/_metadata/v2/*"):  # they name the place of schemas
            path.write_bytes(
                re.sub(rb"(file:[^\"]*?)/(?:whole|copy-[0-9]+)/", rf"\1/{place.name}/".encode(), path.read_bytes())
            )
        return place

    def run(self, checkpoint: str, batches: int) -> Rows:
        """Run the program until it has done all input; of a source without an end, so many batches without rows."""
        found: Rows = {}

        def keep(frame: DataFrame, batch: int) -> None:
            known = self._source.ends or batch == self._redone
            found[batch] = sorted(str(each) for each in frame.collect()) if known else []

        writer = self._program(self._source.read(self._spark)).writeStream.foreachBatch(keep).outputMode(self._mode)
        query = writer.option("checkpointLocation", checkpoint).start()
        try:
            if self._source.ends:
                query.processAllAvailable()
                return found
            deadline = time.monotonic() + PATIENCE_S
            while len(found) < batches and time.monotonic() < deadline:
                if not query.isActive:
                    query.awaitTermination()
                time.sleep(0.05)
            return {each: found[each] for each in sorted(found)[:batches]}
        finally:
            query.stop()


def _settle(place: Path) -> None:
    before: list[Path] = []
    while before != (before := sorted(place.rglob("*"))):
        time.sleep(1.0)


def _unload(spark: SparkSession) -> None:
    """Close all loaded state, which would be maintained for ever."""
    jvm: Any = spark._jvm  # it has no other name
    states = jvm.org.apache.spark.sql.execution.streaming.state
    getattr(getattr(states, "StateStore$"), "MODULE$").stop()


def _make(driver: Files, path: str) -> None:
    driver.make_directory(path)


def said(uri: str, newest: int) -> tuple[Verified, Verified]:
    """Return what the product says of a start, by names and small files, and then by contents as well."""
    parent, _, name = uri.rpartition("/")

    def reader() -> CheckpointReader:
        return CheckpointReader(Tree(files, name))

    def start(batches: list[Verified]) -> Verified:
        of_start = [each for each in batches if each.batch >= newest]
        return next((each for each in of_start if each.missing), next(iter(of_start), GOOD))

    with open_files(parent) as files:
        first = judged(reader())
        return start(first), start(verify_contents(reader, first, pause=lambda _: None)[0])


def lines(number: int) -> list[str]:
    at = f"2026-01-01T00:00:{number:02}Z"
    return [json.dumps({"key": f"k{(number * 3 + n) % 5}", "value": number * 5 + n, "at": at}) for n in range(8)]


class Source:
    ends = True

    def __init__(self, home: Path) -> None:
        """Write a file for each batch; Spark takes them by age."""
        self._home = home / "in"
        self._home.mkdir()
        for number in range(BATCHES):
            self._write(number)

    def _write(self, number: int) -> None:
        file = self._home / f"{number:03}.json"
        file.write_text("\n".join(lines(number)), encoding="utf-8")
        os.utime(file, (1_000_000_000 + number,) * 2)

    def more(self) -> None:
        self._write(BATCHES)

    def read(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1").json(self._home.as_uri())


class Rate(Source):
    ends = False

    def read(self, spark: SparkSession) -> DataFrame:
        rows = spark.readStream.format("rate").option("rowsPerSecond", "5").load()
        return rows.selectExpr("concat('k', value % 3) AS key", "value", "timestamp AS at")


class Topic(Source):
    def __init__(self, home: Path, brokers: str) -> None:
        from confluent_kafka import Producer  # noqa: PLC0415

        self._name, self._brokers = f"damage-{home.name}-{os.getpid()}".replace(" ", "-"), brokers
        self._producer = Producer({"bootstrap.servers": brokers, "acks": "all"})
        for number in range(BATCHES):
            self._write(number)

    def _write(self, number: int) -> None:
        for line in lines(number):
            self._producer.produce(self._name, line.encode(), partition=0)
        self._producer.flush(60)

    def read(self, spark: SparkSession) -> DataFrame:
        stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self._brokers)
        stream = stream.option("subscribe", self._name).option("startingOffsets", "earliest")
        rows = stream.option("maxOffsetsPerTrigger", "8").load()
        return rows.select(fn.from_json(fn.col("value").cast("string"), SCHEMA).alias("row")).select("row.*")
