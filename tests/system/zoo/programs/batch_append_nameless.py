"""foreachBatch that appends, a query without a name."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("batch_append_nameless").getOrCreate()


def write(rows, batch_id):
    rows.write.mode("append").text(os.environ["OUT"])


lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.foreachBatch(write).start().awaitTermination()
