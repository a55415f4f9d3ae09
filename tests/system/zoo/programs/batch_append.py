"""foreachBatch that appends."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("batch_append").getOrCreate()


def write(rows, batch_id):
    rows.write.mode("append").text(os.environ["OUT"])


lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.queryName("orders").foreachBatch(write).start().awaitTermination()
