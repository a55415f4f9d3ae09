"""Join two streams, views and the clicks that follow them, and survive the loss of the driver.

    ha run JOB --endpoint jobmaster=HOST:PORT -- python examples/join.py --input URI --output URI

Input: files of JSON lines, ``{"view": "v1", "at": "2026-01-01T10:00:00Z"}``, in INPUT/views and INPUT/clicks. A click
within ``--within`` seconds after a view of that name belongs to it. OUTPUT/batch=<id> has each view once for each of
its clicks; once without, as soon as the watermark says that none will come. Both sides' state and the query's
checkpoints are under the leader directory. It ends, and with it the job, when a file called ``_STOP`` lies in the input
directory.
"""

import argparse
import os
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery
from running import Idle, parser, run_until_over, session

import ha
import ha.spark
from ha.leadership.leadership import Leadership

QUERY = "views-and-clicks"
EVENT = "view string, at timestamp"


def clicked(views: DataFrame, clicks: DataFrame, within: int, late: int) -> DataFrame:
    """Return each view with each of its clicks, or with none; takes streams or tables."""
    shown = views.select("view", sql.col("at").alias("viewed")).withWatermark("viewed", f"{late} seconds")
    click = clicks.select(sql.col("view").alias("of"), sql.col("at").alias("clicked"))
    return shown.join(
        click.withWatermark("clicked", f"{late} seconds"),
        sql.expr(f"view = of AND clicked >= viewed AND clicked <= viewed + INTERVAL {within} SECONDS"),
        "leftOuter",
    ).select("view", "viewed", "clicked")


def start(
    spark: SparkSession, leadership: Leadership, options: argparse.Namespace, done: Callable[[], None]
) -> StreamingQuery:
    """Start the query, and return it."""
    output = ha.spark.Output(leadership, options.output, QUERY)

    def publish(batch: DataFrame, batch_id: int) -> None:
        output.write(batch, batch_id)
        done()

    def events(name: str) -> DataFrame:
        reader = spark.readStream.schema(EVENT).option("maxFilesPerTrigger", options.max_files)
        return reader.json(f"{options.input}/{name}")

    return (
        clicked(events("views"), events("clicks"), options.within, options.late)
        .writeStream.queryName(QUERY)
        .outputMode("append")
        .trigger(processingTime=f"{options.interval} seconds")
        .foreachBatch(publish)
        .start()
    )


def main() -> None:
    """Run until the end of the input."""
    known = parser("Join views with the clicks that follow them.", "directory with views/ and clicks/")
    known.add_argument("--within", type=int, default=600, metavar="S", help="seconds to click in (%(default)s)")
    known.add_argument("--late", type=int, default=600, metavar="S", help="seconds an event may be late (%(default)s)")
    options = known.parse_args()
    job = os.environ["HA_JOB"]
    spark = session(job)
    with ha.spark.lead(job, spark) as leadership:
        idle = Idle(options.input)
        run_until_over(start(spark, leadership, options, idle.busy), idle)
    spark.stop()


if __name__ == "__main__":
    main()
