"""availableNow, started again and again by cron."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("available_now").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = (
    lines.writeStream.queryName("orders")
    .format(os.environ["FORMAT"])
    .option("format", "text")
    .trigger(availableNow=True)
)
writer.option("path", os.environ["OUT"]).start().awaitTermination()
