"""Files to files, one named query."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("files_to_files").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
