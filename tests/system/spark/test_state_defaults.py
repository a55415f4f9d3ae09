"""State defaults, with a real Spark: new queries get them, and a checkpoint that exists goes on as it was."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import ha.spark
from ha.leadership.leadership import Leadership
from ha.spark.session.frozen import DEFAULTS, for_query
from ha.spark.session.spark_session import configured
from ha.spark.stored.stored_state import PROVIDER
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import names
from tests.system.spark.test_checkpoints import feed

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow]

HDFS_BACKED = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


def lead(job: str, spark: SparkSession, root: str) -> ha.spark.lead:
    return ha.spark.lead(job, spark, timeout=PATIENCE_S, files=root, zookeeper="")


def counts(spark: SparkSession, source: Path, query: str) -> DataStreamWriter:
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(source.as_uri())
    return lines.groupBy("value").count().writeStream.queryName(query).format("noop").outputMode("update")


def kinds(leadership: Leadership, query: str) -> set[str]:
    """Return how the names of a query's versions end, and ``ids`` if they have some."""
    found = {each for each in names(leadership.path(f"spark/{query}/state/0/0")) if not each.endswith(".crc")}
    versions = {each for each in found if "." in each}
    return {each.rpartition(".")[2] for each in versions} | {"ids" for each in versions if "_" in each}


def run(writer: DataStreamWriter) -> None:
    query = writer.start()
    query.processAllAvailable()
    query.stop()


def test_new_queries_get_them_and_old_ones_keep_what_they_have(
    spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path
) -> None:
    feed(tmp_path, 0)
    with lead(f"{job}-new", spark, hdfs_uri) as leadership:
        run(counts(spark, tmp_path, "new"))
        assert {"ids", "changelog"} <= kinds(leadership, "new")
    assert not any(spark.conf.get(each, None) for each in DEFAULTS), "they end with the block"

    # As a program does that says otherwise.
    with configured(spark, {PROVIDER: HDFS_BACKED}), lead(job, spark, hdfs_uri) as leadership:
        run(counts(spark, tmp_path, "old"))
        assert kinds(leadership, "old") == {"delta"}
    feed(tmp_path, 1)
    with lead(job, spark, hdfs_uri) as leadership:
        assert not any(spark.conf.get(each, None) for each in DEFAULTS), "the old query keeps the session as it was"
        run(counts(spark, tmp_path, "old"))
        assert kinds(leadership, "old") == {"delta"}
        assert "1" in names(leadership.path("spark/old/commits")), "it goes on"
        for query in ("old", "added"):  # as a declared job starts each of its queries
            with for_query(spark, leadership, query):
                started = counts(spark, tmp_path, query).start()
            started.processAllAvailable()
            started.stop()
        assert kinds(leadership, "old") == {"delta"}
        assert {"ids", "changelog"} <= kinds(leadership, "added")
