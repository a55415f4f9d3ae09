"""A source that archives what was read."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("clean_source").getOrCreate()
lines = (
    spark.readStream.option("cleanSource", "archive")
    .option("sourceArchiveDir", os.environ["BASE"] + "/read")
    .text(os.environ["IN"])
)
writer = lines.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
