"""A module by --py-files."""

import os

from pyspark.sql import SparkSession
from zoo_rules import same

spark = SparkSession.builder.appName("py_files").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = (
    lines.selectExpr("value")
    .mapInPandas(same, "value STRING")
    .writeStream.queryName("orders")
    .format(os.environ["FORMAT"])
    .option("format", "text")
)
writer.option("path", os.environ["OUT"]).start().awaitTermination()
