"""A driver without any import of ``ha`` that writes with its format until it is ended: endless.py INPUT OUTPUT."""

import sys

from pyspark.sql import SparkSession

source, target = sys.argv[1:]
lines = SparkSession.builder.master("local[1]").getOrCreate().readStream.option("maxFilesPerTrigger", 1).text(source)
sink = lines.writeStream.queryName("lines").format("ha").option("path", target).option("format", "text")
sink.start().awaitTermination()
