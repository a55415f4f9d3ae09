"""availableNow in a loop of the program."""

import os
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("available_now_loop").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
while True:
    writer = lines.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
    writer.option("path", os.environ["OUT"]).trigger(availableNow=True).start().awaitTermination()
    time.sleep(0.5)
