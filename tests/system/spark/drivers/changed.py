"""A program with a query for each kind of change, as it was or as it is now: changed.py JOB INPUT OUTPUT."""

import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.readwriter import DataStreamWriter

import ha.spark
from tests.system.spark.conftest import SETTINGS

SCHEMA = "user string, item string, value long, at timestamp"
PARTITIONS = "spark.sql.shuffle.partitions"

Query = Callable[[DataFrame, DataFrame], DataFrame]
"""Given its input, and another one of the same form."""


def counts(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").agg(fn.count("*").alias("n"))


def seen_once(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "1 hour").dropDuplicates(["item", "at"])


def users(rows: DataFrame) -> DataFrame:
    return rows.groupBy(fn.col("user").alias("who")).agg(fn.sum("value").alias("n"))


def items(rows: DataFrame) -> DataFrame:
    return rows.groupBy("item", "user").agg(fn.count("*").alias("n")).select(fn.col("item").alias("who"), "n")


def pairs(left: DataFrame, right: DataFrame, *columns: str) -> DataFrame:
    return left.select("user", *columns).join(
        right.select(fn.col("user").alias("other"), "item"), fn.expr("user = other")
    )


KINDS: dict[str, tuple[Query, Query]] = {
    "same": (lambda a, _: counts(a), lambda a, _: counts(a)),
    "filtered": (lambda a, _: counts(a), lambda a, _: counts(a.where("value > 1").withColumn("x", fn.lit(1)))),
    "partitions": (lambda a, _: counts(a), lambda a, _: counts(a)),
    "watermark": (
        lambda a, _: seen_once(a),
        lambda a, _: a.withWatermark("at", "2 hours").dropDuplicates(["item", "at"]),
    ),
    "grouping": (lambda a, _: counts(a), lambda a, _: a.groupBy("item").agg(fn.count("*").alias("n"))),
    "measure": (lambda a, _: counts(a), lambda a, _: a.groupBy("user").agg(fn.sum("value").alias("n"))),
    "key-type": (lambda a, _: counts(a), lambda a, _: a.groupBy("value").agg(fn.count("*").alias("n"))),
    "aggregates": (lambda a, _: counts(a), lambda a, _: a.groupBy("user").agg(fn.count("*"), fn.max("value"))),
    "added": (lambda a, _: counts(a), lambda a, _: counts(seen_once(a))),
    "removed": (lambda a, _: counts(a), lambda a, _: a.select("user")),
    "became-stateful": (lambda a, _: a.select("user"), lambda a, _: counts(a)),
    "one-more-source": (lambda a, _: counts(a), lambda a, b: counts(a.union(b))),
    "other-source": (
        lambda a, _: counts(a),
        lambda a, _: counts(a.sparkSession.readStream.format("rate").load().selectExpr("string(value) AS user")),
    ),
    "swapped": (lambda a, b: a.union(b), lambda a, b: b.union(a)),
    "renumbered": (lambda a, _: users(a).union(items(a)), lambda a, _: items(a).union(users(a))),
    "joined": (lambda a, b: pairs(a, b, "value"), lambda a, b: pairs(a, b, "value", "at")),
    "renamed": (lambda a, _: counts(a), lambda a, _: counts(a)),
}
"""By name, each query before and after the change."""


def read(spark: SparkSession, place: str) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1").json(place)


def writer(spark: SparkSession, name: str, source: str, *, changed: bool) -> DataStreamWriter:
    rows = KINDS[name][changed](read(spark, f"{source}/a"), read(spark, f"{source}/b"))
    mode = (
        "append" if name in {"watermark", "swapped", "became-stateful", "joined"} and not rows.isLocal() else "update"
    )
    if changed and name == "became-stateful":
        mode = "update"
    return rows.writeStream.outputMode(mode)


def main() -> None:
    job, source, target = sys.argv[1:]
    spark = SparkSession.builder.master("local[1]").config(map=dict(SETTINGS)).getOrCreate()
    with ha.spark.lead(job, spark) as leadership:
        spark.conf.set(PARTITIONS, "2")
        output = ha.spark.Output(leadership, f"{target}/output")
        for name in KINDS:
            spark.conf.set(PARTITIONS, "3" if name == "partitions" else "2")
            query = writer(spark, name, source, changed=True).queryName("new-name" if name == "renamed" else name)
            if name != "filtered":  # its trigger has changed as well
                query = query.trigger(availableNow=True)
            query.foreachBatch(output).start()
        spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
