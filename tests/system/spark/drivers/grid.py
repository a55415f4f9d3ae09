"""Each kind of sink in one program, as declared queries: grid.py INPUT OUTPUT JOB BROKERS TOPIC.

Line 0 and so on are in the input. Every query publishes them below OUTPUT in a directory of its own name, and
``topic`` to TOPIC. ``workers`` adds the epoch that its Python worker has looked up. The sources have names where Spark
knows such.
"""

import logging
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import ha
import ha.spark
import ha.spark.worker
from tests.system.spark.conftest import SETTINGS

NAMED = hasattr(__import__("pyspark.sql.streaming", fromlist=["x"]).DataStreamReader, "name")
QUERIES = ("output", "format", "regional", "letters", "workers", "topic")

if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("ha").setLevel(logging.INFO)
    source, target, name, brokers, topic_name = sys.argv[1:]
    job = ha.spark.Job(name, named_sources=NAMED)

    def lines(spark: SparkSession) -> DataFrame:
        return ha.spark.named_source(spark, "lines").option("maxFilesPerTrigger", 1).text(source)

    @job.query(writes=["output"])
    def output(spark: SparkSession, leadership: ha.Leadership) -> Any:
        made = ha.spark.Output(leadership, f"{target}/output", source="text", name="output")
        return lines(spark).writeStream.foreachBatch(made)

    @job.query(name="format", writes=["format"])
    def by_format(spark: SparkSession, leadership: ha.Leadership) -> Any:
        del leadership
        writer = lines(spark).writeStream.format("ha").option("path", f"{target}/format")
        return writer.option("format", "text").option("name", "format")

    @job.query(writes=["regional"])
    def regional(spark: SparkSession, leadership: ha.Leadership) -> Any:
        made = ha.spark.RegionalOutput(
            spark, leadership, f"{target}/regional", ["regional"], source="text", name="regions"
        )
        return lines(spark).writeStream.foreachBatch(made["regional"])

    @job.query(writes=["letters"])
    def letters(spark: SparkSession, leadership: ha.Leadership) -> Any:
        made = ha.spark.Output(leadership, f"{target}/letters", source="text", name="letters")
        doubled = lines(spark).selectExpr("explode(array(value, concat('dead ', value))) AS value")
        return doubled.writeStream.foreachBatch(ha.spark.DeadLetters(made, "value LIKE 'dead%'", ["value"]))

    @job.query(writes=["workers"])
    def workers(spark: SparkSession, leadership: ha.Leadership) -> Any:
        made = ha.spark.Output(leadership, f"{target}/workers", source="text", name="workers")
        epoch = sql.udf(lambda _: str(ha.spark.worker.job_master().epoch)).asNondeterministic()
        asked = lines(spark).select(sql.concat("value", sql.lit(" by "), epoch("value")).alias("value"))
        return asked.writeStream.foreachBatch(made)

    @job.query(writes=["topic"])
    def topic(spark: SparkSession, leadership: ha.Leadership) -> Any:
        made = ha.spark.Topic(leadership, topic_name, options=brokers, name="topic")
        return lines(spark).writeStream.foreachBatch(made)

    job.run(SparkSession.builder.master("local[2]").config(map=dict(SETTINGS)).getOrCreate())
