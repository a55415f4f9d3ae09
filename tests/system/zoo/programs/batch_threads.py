"""foreachBatch with threads for two sinks."""

import os
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("batch_threads").getOrCreate()


def write(rows, batch_id):
    rows.cache()
    with ThreadPoolExecutor(2) as threads:
        list(
            threads.map(
                lambda sink: rows.write.mode("overwrite").text(f"{os.environ['OUT']}/{sink}/batch_id={batch_id}"),
                ("a", "b"),
            )
        )
    rows.unpersist()


lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.queryName("orders").foreachBatch(write).start().awaitTermination()
