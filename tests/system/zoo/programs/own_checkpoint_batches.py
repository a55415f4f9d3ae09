"""A checkpoint of the program's own, foreachBatch that overwrites."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("own_checkpoint_batches").getOrCreate()


def write(rows, batch_id):
    rows.write.mode("overwrite").text(f"{os.environ['OUT']}/batch_id={batch_id}")


lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").option("checkpointLocation", os.environ["BASE"] + "/mine")
writer.foreachBatch(write).start().awaitTermination()
