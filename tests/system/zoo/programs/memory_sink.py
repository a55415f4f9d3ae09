"""The memory sink, whose table the program reads."""

import os
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("memory_sink").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
query = lines.writeStream.format("memory").queryName("orders").start()
while query.isActive:
    query.processAllAvailable()
    spark.table("orders").write.mode("overwrite").text(os.environ["OUT"])
    time.sleep(0.2)
