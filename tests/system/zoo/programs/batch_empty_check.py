"""foreachBatch with a check for empty batches."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("batch_empty_check").getOrCreate()


def write(rows, batch_id):
    if rows.isEmpty():
        return
    rows.write.mode("overwrite").text(f"{os.environ['OUT']}/batch_id={batch_id}")


lines = spark.readStream.text(os.environ["IN"])
lines.where("value LIKE '%u1%'").writeStream.queryName("orders").foreachBatch(write).start().awaitTermination()
