"""Two queries into one directory."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("two_queries_one_output").getOrCreate()
for name in ("a", "b"):
    lines = spark.readStream.text(os.environ["IN" if name == "a" else "IN_B"])
    lines.writeStream.queryName(name).format(os.environ["FORMAT"]).option("format", "text").start(os.environ["OUT"])
spark.streams.awaitAnyTermination()
