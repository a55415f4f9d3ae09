"""foreachBatch that tries again after an error."""

import os
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("batch_retries").getOrCreate()


def write(rows, batch_id):
    for attempt in range(3):
        try:
            if attempt == 0 and batch_id % 3 == 2:
                raise ConnectionError("the database is away")
            rows.write.mode("overwrite").text(f"{os.environ['OUT']}/batch_id={batch_id}")
        except ConnectionError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("given up")


lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.queryName("orders").foreachBatch(write).start().awaitTermination()
