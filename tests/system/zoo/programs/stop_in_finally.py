"""spark.stop() at the end, and on SIGTERM."""

import os
import signal
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("stop_in_finally").getOrCreate()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
try:
    writer.start(os.environ["OUT"]).awaitTermination()
finally:
    spark.stop()
