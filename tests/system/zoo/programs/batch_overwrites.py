"""foreachBatch into a directory of the batch's number."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("batch_overwrites").getOrCreate()


def write(rows, batch_id):
    rows.write.mode("overwrite").text(f"{os.environ['OUT']}/batch_id={batch_id}")


lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.queryName("orders").foreachBatch(write).start().awaitTermination()
