"""foreachBatch with cache and two writes."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("batch_cached").getOrCreate()


def write(rows, batch_id):
    rows.persist()
    rows.write.mode("append").text(f"{os.environ['OUT']}/bronze")
    rows.where("value LIKE '%u0%'").write.mode("append").text(f"{os.environ['OUT']}/silver")
    rows.unpersist()


lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.queryName("orders").foreachBatch(write).start().awaitTermination()
