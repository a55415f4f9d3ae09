"""The memory sink, whose table the program reads."""

import os
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("memory_sink").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
query = lines.writeStream.format("memory").queryName("orders").start()
written = 0
while query.isActive:
    query.processAllAvailable()
    if (count := spark.table("orders").count()) > written:
        spark.table("orders").limit(count).write.mode("overwrite").text(os.environ["OUT"])
        written = count
    time.sleep(0.2)
