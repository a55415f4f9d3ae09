"""Three declared queries in two regions: run it with ``ha run numbers -- python examples/declared_queries.py``.

``numbers`` publishes files that ``sums`` reads, so they restart together. ``beats`` is a region of its own. Break one:
while it runs, delete the directory ``state`` of the query ``sums``, and look at ``ha job queries numbers``.
"""

import os
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import ha
import ha.spark

OUT = os.environ.get("NUMBERS_OUT") or Path("build/numbers").absolute().as_uri()
"""In the file system of the jobs."""

job = ha.spark.Job("numbers")


@job.query(reads=["rate"], writes=["out"])
def numbers(spark: SparkSession, leadership: ha.Leadership) -> DataStreamWriter:
    """Publish the numbers of a test source, each batch once."""
    source = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    output = ha.spark.Output(leadership, OUT, source="parquet")
    return source.writeStream.trigger(processingTime="1 second").foreachBatch(output)


@job.query(reads=["out"])
def sums(spark: SparkSession, _: ha.Leadership) -> DataStreamWriter:
    """Print how many numbers there are, and their sum."""
    published = spark.readStream.schema("timestamp timestamp, value long, batch int").parquet(OUT)
    counted = published.selectExpr("count(*) AS numbers", "sum(value) AS sum")
    return counted.writeStream.outputMode("complete").format("console")


@job.query(reads=["rate"])
def beats(spark: SparkSession, _: ha.Leadership) -> DataStreamWriter:
    """Print a line for each batch; it never notices a failure of the other two."""

    def beat(_: DataFrame, batch: int) -> None:
        print(f"beat {batch}", flush=True)

    return spark.readStream.format("rate").load().writeStream.trigger(processingTime="1 second").foreachBatch(beat)


if __name__ == "__main__":
    job.run()
