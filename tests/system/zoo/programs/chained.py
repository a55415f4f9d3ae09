"""A query that reads what another one writes."""

import os
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("chained").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = (
    lines.writeStream.queryName("bronze").format(os.environ["FORMAT"]).option("format", "text").option("name", "bronze")
)
bronze = writer.start(os.environ["BASE"] + "/bronze")
while not bronze.lastProgress:
    time.sleep(0.2)
copied = (
    spark.readStream.option("recursiveFileLookup", "true").schema("value STRING").text(os.environ["BASE"] + "/bronze")
)
writer = (
    copied.writeStream.queryName("silver")
    .format(os.environ["FORMAT"])
    .option("format", "text")
    .option("name", "silver")
)
writer.start(os.environ["OUT"])
spark.streams.awaitAnyTermination()
