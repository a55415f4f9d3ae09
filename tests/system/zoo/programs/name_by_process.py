"""A query name that is another one at each start."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("name_by_process").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName(f"orders-{os.getpid()}").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
