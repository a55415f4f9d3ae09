"""Replication of a real query in HDFS: its replicator is killed, and it goes on elsewhere with the same rows."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from ha.leadership.leadership import Leadership
from ha.spark import checkpoint_location
from tests.limits import killed
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import eventually, leading
from tests.system.spark.test_closures import ALWAYS, FORMATS, Rows

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

HALF = 4


def ha(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "ha.cli", *arguments, "--zookeeper", ""]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


class Sums:
    def __init__(self, spark: SparkSession, source: Path) -> None:
        self._spark, self._source = spark, source
        source.mkdir()
        self._fed = 0

    def feed(self, count: int) -> None:
        for number in range(self._fed, self._fed + count):
            lines = [json.dumps({"key": f"k{(number + each) % 3}", "value": number * 10 + each}) for each in range(4)]
            (self._source / f".{number}").write_text("\n".join(lines))
            (self._source / f".{number}").rename(self._source / f"{number:03}.json")
        self._fed += count

    def start(self, leadership: Leadership, found: Rows) -> StreamingQuery:
        def keep(rows: DataFrame, batch: int) -> None:
            found[batch] = sorted(str(each) for each in rows.collect())

        stream = self._spark.readStream.schema("key string, value long").option("maxFilesPerTrigger", "1")
        sums = stream.json(self._source.as_uri()).groupBy("key").agg(fn.sum("value").alias("sum"))
        writer = sums.writeStream.foreachBatch(keep).outputMode("update")
        return writer.option("checkpointLocation", checkpoint_location(leadership, "sums")).start()


@pytest.fixture
def ids(spark: SparkSession) -> Iterator[None]:
    wanted = {**ALWAYS, **FORMATS["rocksdb with ids"]}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield
    for name in wanted:
        spark.conf.unset(name)
    spark.conf.set("spark.sql.shuffle.partitions", "1")


def replicated(job: str, here: str, there: str) -> int:
    said = ha("replica", "status", job, "--to", there, "--files", here, "--json")
    queries: list[dict[str, Any]] = json.loads(said.stdout)["queries"] if said.returncode == 0 else []
    return int(queries[0]["batch"] or 0) if queries else 0


@pytest.mark.usefixtures("ids", "usual")
def test_a_query_goes_on_from_its_replica(spark: SparkSession, hdfs_uri: str, job: str, tmp_path: Path) -> None:
    here, there = f"{hdfs_uri}/{job}-first", (tmp_path / "second").as_uri()
    sums = Sums(spark, tmp_path / "in")
    rows: Rows = {}
    again: Rows = {}
    with leading(job, here) as leadership:
        sums.feed(HALF)
        command = [sys.executable, "-m", "ha.cli", "replica", "run", job, "--to", there, "--files", here]
        with killed(subprocess.Popen([*command, "--interval", "0.3"], stdout=sys.stderr)):
            query = sums.start(leadership, rows)
            reached = eventually(lambda: replicated(job, here, there))
        sums.feed(HALF)
        query.processAllAvailable()
        query.stop()
    assert sorted(rows) == list(range(2 * HALF))
    promoted = ha("replica", "promote", job, "--files", there, "--old-files", here, "--yes", "--json")
    assert promoted.returncode == 0, promoted.stderr
    said = json.loads(promoted.stdout)
    batch = said["queries"][0]["batch"]
    assert reached <= batch < 2 * HALF - 1
    with leading(job, there) as leadership:
        query = sums.start(leadership, again)
        query.processAllAvailable()
        query.stop()
    assert again == {each: found for each, found in rows.items() if each > batch}
