"""Closures, on real checkpoints: Spark goes on from exactly these files in an empty directory."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.trees import Tree
from ha.spark.checkpoint_tools.copying import Staging
from store.open import open_files

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

BATCHES = 8
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE = "spark.sql.streaming.stateStore"
ALWAYS = {
    "spark.sql.streaming.minBatchesToRetain": "4",
    "spark.sql.streaming.fileSource.log.compactInterval": "8",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "1ms",
    "spark.sql.session.timeZone": "UTC",
    f"{STATE}.minDeltasForSnapshot": "2",
    f"{STATE}.maintenanceInterval": "300ms",
    "spark.sql.shuffle.partitions": "2",
}
FORMATS = {
    "hdfs": {},
    "rocksdb": {f"{STATE}.providerClass": ROCKSDB, f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true"},
}
FORMATS["rocksdb with ids"] = {**FORMATS["rocksdb"], f"{STATE}.checkpointFormatVersion": "2"}

Rows = dict[int, list[str]]


def sums(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "10 seconds").groupBy("key").agg(fn.sum("value").alias("sum"))


def pairs(rows: DataFrame) -> DataFrame:
    left, right = (rows.withWatermark("at", "10 seconds").alias(each) for each in ("l", "r"))
    return left.join(right, fn.expr("l.key = r.key AND l.at = r.at AND l.value < r.value"))


@pytest.fixture
def settings(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Settings of the session for one format of state; they are unset again."""
    wanted = {**ALWAYS, **FORMATS[request.param]}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield request.param
    for name in wanted:
        spark.conf.unset(name)
    spark.conf.set("spark.sql.shuffle.partitions", "1")


def batches(spark: SparkSession, program: Callable[[DataFrame], DataFrame], place: Path, checkpoint: Path) -> Rows:
    """Run a program over all its input; return the rows of each batch."""
    found: Rows = {}

    def keep(rows: DataFrame, batch: int) -> None:
        found[batch] = sorted(str(each) for each in rows.collect())

    stream = spark.readStream.schema("key string, value long, at timestamp").option("maxFilesPerTrigger", "1")
    writer = program(stream.json((place / "in").as_uri())).writeStream.foreachBatch(keep)
    mode = "update" if program is sums else "append"
    query = writer.outputMode(mode).option("checkpointLocation", checkpoint.as_uri()).start()
    query.processAllAvailable()
    query.stop()
    return found


def restorable(checkpoint: Path) -> list[Closure]:
    with open_files(checkpoint.parent.as_uri()) as files:
        reader = CheckpointReader(Tree(files, checkpoint.name))
        names = reader.files()
        return [each for each in reader.closures(names, names.batches) if each.restorable]


def copy(checkpoint: Path, closure: Closure, target: Path) -> None:
    with open_files(checkpoint.parent.as_uri()) as files, open_files(target.parent.as_uri()) as there:
        reader = CheckpointReader(Tree(files, checkpoint.name))
        staging = Staging(there, f"staging-{target.name}")
        staging.fill(reader.tree, closure.files)
        for path, origin in closure.rebuilt.items():
            staging.write(path, reader.rebuilt(path, origin))
        staging.commit(target.name)


@pytest.mark.parametrize(
    ("settings", "program"),
    [("rocksdb with ids", sums), ("hdfs", pairs)],
    indirect=["settings"],
    ids=["sums, rocksdb with ids", "pairs, hdfs"],
)
def test_spark_goes_on_from_the_closure_alone(
    spark: SparkSession, settings: str, program: Callable[[DataFrame], DataFrame], tmp_path: Path
) -> None:
    del settings
    (tmp_path / "in").mkdir()
    for number in range(BATCHES):
        rows = [
            {"key": f"k{(number + each) % 4}", "value": number * 10 + each, "at": f"2026-01-01T00:00:{number:02}Z"}
            for each in range(6)
        ]
        (tmp_path / "in" / f"{number:03}.json").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    expected = batches(spark, program, tmp_path, tmp_path / "whole")
    whole = tmp_path / "whole"
    first, *_, newest = restorable(whole)
    assert newest.batch == max(expected)
    for path in (f"offsets/{first.batch - 1}", f"sources/0/{first.batch}"):  # as if Spark had forgotten them already
        (whole / path).unlink(missing_ok=True)
    first, *_, last, _ = restorable(whole)
    assert first.rebuilt.keys() == {f"offsets/{first.batch - 1}", f"sources/0/{first.batch}.compact"}
    for closure in (first, last):
        copy(whole, closure, tmp_path / f"copy-{closure.batch}")
        again = batches(spark, program, tmp_path, tmp_path / f"copy-{closure.batch}")
        assert {batch: rows for batch, rows in again.items() if rows} == {
            batch: rows for batch, rows in expected.items() if batch > closure.batch and rows
        }
