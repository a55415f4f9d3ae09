"""Driver that people have today: splits text files into words and appends them to a directory.

    python -m benchmarks.baselines.append_words --input URI --output URI --checkpoint URI

Nothing of this project protects it. The checkpoint lies at a fixed place. Spark's own JSON writer appends each batch
in ``foreachBatch``, the commonest way to write; it writes at least once, since a repeated batch is appended again.
The driver ends when a file called ``_STOP`` lies in the input directory and everything there has been processed.

For the drills only, it writes into the history (``HA_HISTORY``) which batches Spark has committed, in the name of its
contender. It does not write when a batch was appended: drills kill at the next line of the history, and such a driver
is weakest between append and commit. The drills must not always hit that moment.
"""

import argparse
import os
import sys
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from ha.config.stores import open_history
from ha.history.events import Completed
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import NotFound, StoreError
from store.open import open_files

QUERY = "append-words"
STOP = "_STOP"  # Spark's file source passes over names that begin like this
CALL_TIMEOUT = 5.0
POLL_S = 0.1  # Pause between two checks of what Spark has committed
STOP_POLLS = 5  # So many polls later the driver checks again whether to stop

# As in this project's own example, so that both jobs start alike: small and quick.
SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
}


class Appender:
    """Appends each batch, and writes into the history what Spark has committed."""

    def __init__(self, output: str, dwell: float) -> None:
        self._output = output
        self._dwell = dwell
        self._began: dict[int, float] = {}
        self._contender = os.environ.get("HA_CONTENDER", "driver")
        self._history = open_history(os.environ.get("HA_HISTORY", ""), self._contender)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        self._began[batch_id] = now()
        time.sleep(self._dwell)
        batch.coalesce(1).write.mode("append").json(self._output)
        sys.stdout.write(f"Batch {batch_id} is appended.\n")
        sys.stdout.flush()

    def record_commits(self, query: StreamingQuery) -> None:
        """Write into the history what has been committed since the last call."""
        progress = query.lastProgress
        if progress is None or not progress["numInputRows"]:
            return  # a query that waits for data names the next batch
        job, epoch = os.environ.get("HA_JOB", ""), int(os.environ.get("HA_EPOCH", "0"))
        known = list(self._began)  # a copy: Spark adds to it from another thread
        for batch_id in sorted(each for each in known if each <= progress["batchId"]):
            began = self._began.pop(batch_id)
            self._history.write(Completed(began, job, now(), self._contender, epoch, QUERY, batch_id))


def words(spark: SparkSession, source: str, files_per_batch: int) -> DataFrame:
    lines = spark.readStream.option("maxFilesPerTrigger", files_per_batch).text(source)
    word = sql.explode(sql.split(sql.lower(lines["value"]), r"[^\p{Alnum}']+")).alias("word")
    return lines.select(word).where("word <> ''")


def told_to_stop(files: BoundedFiles) -> bool:
    """Whether the marker lies in the input directory; false if the store does not answer."""
    try:
        return any(entry.name == STOP for entry in files.call("stop", lambda driver: driver.list(""), CALL_TIMEOUT))
    except NotFound:
        return False
    except StoreError as error:
        sys.stdout.write(f"The store does not say whether to stop: {error}\n")
        return False


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Append the words of text files as they arrive.")
    parser.add_argument("--input", required=True, metavar="URI", help="directory that text files are moved into")
    parser.add_argument("--output", required=True, metavar="URI", help="directory of the words")
    parser.add_argument("--checkpoint", required=True, metavar="URI", help="directory of Spark's checkpoint")
    parser.add_argument("--max-files", type=int, default=10, metavar="N", help="files per batch (%(default)s)")
    parser.add_argument("--interval", type=float, default=0.5, metavar="S", help="seconds per batch (%(default)s)")
    parser.add_argument("--dwell", type=float, default=0.0, metavar="S", help="seconds a batch lasts at least")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.appName(QUERY).master("local[1]").config(map=dict(SETTINGS)).getOrCreate()
    appender = Appender(options.output, options.dwell)
    query = (
        words(spark, options.input, options.max_files)
        .writeStream.queryName(QUERY)
        .option("checkpointLocation", options.checkpoint)
        .trigger(processingTime=f"{options.interval} seconds")
        .foreachBatch(appender)
        .start()
    )
    with open_files(options.input) as files:
        polls = 0
        while not query.awaitTermination(POLL_S):  # type: ignore[arg-type]  # seconds, also parts of them
            polls += 1
            appender.record_commits(query)
            if polls % STOP_POLLS == 0 and told_to_stop(files):
                query.processAllAvailable()
                query.stop()
        appender.record_commits(query)
    spark.stop()


if __name__ == "__main__":
    main()
