"""Count words twice, by three declared queries in two regions, and let drills break each of the queries.

    ha run JOB -- python examples/word_regions.py --input URI --output URI

``words`` publishes the words of the files to OUTPUT/words, where ``counts`` reads and counts them: one region.
``totals`` counts them from the files: another one. Their counts are in OUTPUT/counts and OUTPUT/totals. The job ends
when a file called ``_STOP`` lies in the input directory and everything there has been counted.

With ``--faults DIR``, a batch of a query that finds a file DIR/QUERY does what it says: ``fail`` once, ``poison`` until
the file is gone, or ``hang`` once, in a task of Spark. DIR/QUERY.met then has the number of that batch.

With ``--steady``, ``words`` has state in RocksDB and writes with the format ``ha``. Then no part of it is in this
program, so it goes on when the program dies under ``ha run --engine``.
"""

import argparse
import logging
import os
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.readwriter import DataStreamWriter
from running import Idle, parser, session

import ha.spark
from ha.leadership.leadership import Leadership
from store.open import open_files

OUTCOMES = ("counts", "totals")
"""The counters; each of them counts every word of the input."""

SETTINGS = {
    "spark.master": "local[3]",  # a batch that hangs keeps one busy
    # Hadoop's own patience, whatever its configuration files say: a query that fails is started again, and no driver
    # ends. These are the defaults of its documentation.
    "spark.hadoop.dfs.client.failover.max.attempts": "15",
    "spark.hadoop.dfs.client.failover.sleep.base.millis": "500",
    "spark.hadoop.dfs.client.failover.sleep.max.millis": "15000",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "5",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "400",
    "spark.hadoop.dfs.client.write.exclude.nodes.cache.expiry.interval.millis": "600000",
    "spark.hadoop.dfs.client.max.block.acquire.failures": "3",
    "spark.hadoop.ipc.client.connect.timeout": "20000",
    "spark.hadoop.ipc.client.connect.max.retries": "10",
    "spark.hadoop.ipc.client.connect.max.retries.on.timeouts": "45",
    "spark.hadoop.ipc.client.connect.retry.interval": "1000",
    "spark.hadoop.ipc.client.rpc-timeout.ms": "120000",
}

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

POLL_S = 0.5
HANG_S = 3600.0


class Trouble:
    """The faults that a drill wants in the queries."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def meet(self, query: str, batch: DataFrame, batch_id: int) -> None:
        """Do what a file of the query's name says; nothing if there is none."""
        try:
            path = self._folder / query if self._folder else None
            wanted = path.read_text(encoding="ascii") if path else ""
        except FileNotFoundError:
            return
        if path and wanted != "poison":
            path.with_name(f"{query}.met").write_text(f"{batch_id}", encoding="ascii")
            path.unlink()
        if wanted == "hang":
            print(f"A batch of {query} hangs.", flush=True)
            hang = sql.udf(lambda _: time.sleep(HANG_S), "string")
            batch.sparkSession.range(1).select(hang("id")).collect()
        if wanted:
            raise RuntimeError(f"A drill wants the query {query} to {wanted}.")


def declared(options: argparse.Namespace) -> ha.spark.Job:
    """Declare the job."""
    job, trouble = ha.spark.Job(os.environ["HA_JOB"]), Trouble(options.faults)
    published = f"{options.output}/words"

    def read(spark: SparkSession) -> DataFrame:
        lines = spark.readStream.option("maxFilesPerTrigger", options.max_files).text(options.input)
        word = sql.explode(sql.split(sql.lower(lines["value"]), r"[^\p{Alnum}']+")).alias("word")
        return lines.select(word).where("word <> ''")

    def publishing(rows: DataFrame, leadership: Leadership, query: str) -> DataStreamWriter:
        output = ha.spark.Output(leadership, f"{options.output}/{query}", query)

        def publish(batch: DataFrame, batch_id: int) -> None:
            trouble.meet(query, batch, batch_id)
            output.write(batch.coalesce(1), batch_id)

        return rows.writeStream.trigger(processingTime=f"{options.interval} seconds").foreachBatch(publish)

    def words(spark: SparkSession, leadership: Leadership) -> DataStreamWriter:
        return steady(spark) if options.steady else publishing(read(spark), leadership, "words")

    def steady(spark: SparkSession) -> DataStreamWriter:
        with open_files(published) as root:
            root.call("prepare", lambda files: files.make_root(), 10.0)  # counts reads it before there is a batch
        files = spark.readStream.option("maxFilesPerTrigger", options.max_files).text(options.input, wholetext=True)
        split = sql.posexplode(sql.split(sql.lower(files["value"]), r"[^\p{Alnum}']+")).alias("place", "word")
        each = files.select("_metadata.file_name", split).dropDuplicates(["file_name", "place"])  # there are none
        writer = each.where("word <> ''").select("word").coalesce(1).writeStream.format("ha")
        known = {"path": published, "format": "text", "name": "words"}
        return writer.options(**known).trigger(processingTime=f"{options.interval} seconds")

    def counts(spark: SparkSession, leadership: Leadership) -> DataStreamWriter:
        reader = spark.readStream.schema("word string, batch long")
        rows = reader.csv(published) if options.steady else reader.json(published)
        return publishing(rows.groupBy("word").count(), leadership, "counts").outputMode("complete")

    def totals(spark: SparkSession, leadership: Leadership) -> DataStreamWriter:
        return publishing(read(spark).groupBy("word").count(), leadership, "totals").outputMode("complete")

    for query, reads, writes in ((words, "input", "words"), (counts, "words", "counts"), (totals, "input", "totals")):
        if options.only in ("", query.__name__):
            job.query(reads=[reads], writes=[writes])(query)
    return job


def end_in_order(spark: SparkSession, idle: Idle) -> None:
    """Wait for the end of the input; then let the queries process what there is, writers first, and stop them."""
    while True:
        time.sleep(POLL_S)
        if not idle.over():
            continue
        for query in sorted(spark.streams.active, key=lambda query: query.name != "words"):
            try:
                query.processAllAvailable()
                query.stop()
            except Exception as error:  # noqa: BLE001  # it has failed: it is started again, and ends the next time
                print(f"{query.name} does not end yet: {error}", flush=True)


def main() -> None:
    """Run until the end of the input."""
    known = parser("Count words in two regions.", "directory that text files are moved into")
    known.add_argument("--faults", type=Path, metavar="DIR", help="where drills say what is to go wrong")
    known.add_argument("--release", default="1", metavar="N", help="is printed at the start")
    known.add_argument("--steady", action="store_true", help="let words have state, and no code in this program")
    known.add_argument("--only", default="", metavar="QUERY", help="run no other query")
    options = known.parse_args()
    print(f"This is release {options.release}.", flush=True)
    logging.basicConfig()
    logging.getLogger("ha").setLevel(logging.INFO)
    stores = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB} if options.steady else {}
    spark = session(os.environ["HA_JOB"], **SETTINGS, **stores)
    end = threading.Thread(target=end_in_order, args=(spark, Idle(options.input)), daemon=True)
    end.start()
    declared(options).run(spark)
    spark.stop()


if __name__ == "__main__":
    main()
