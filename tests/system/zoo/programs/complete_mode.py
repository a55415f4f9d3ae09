"""Complete mode that overwrites its result."""

import os

from pyspark.sql import SparkSession
from pyspark.sql.functions import count

spark = SparkSession.builder.appName("complete_mode").getOrCreate()


def write(rows, batch_id):
    rows.selectExpr("concat(user, ' ', n)").write.mode("overwrite").text(os.environ["OUT"])


events = spark.readStream.schema("id LONG, user STRING, at TIMESTAMP").json(os.environ["IN"])
counts = events.groupBy("user").agg(count("*").alias("n"))
counts.writeStream.queryName("totals").outputMode("complete").foreachBatch(write).start().awaitTermination()
