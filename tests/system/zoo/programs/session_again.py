"""A new session after each failure."""

import os

from pyspark.sql import SparkSession

for attempt in range(5):
    spark = SparkSession.builder.appName("orders").getOrCreate()
    lines = spark.readStream.text(os.environ["IN"])
    checked = lines.selectExpr(f"IF({attempt} = 0 AND value LIKE '%\"id\": 4,%', raise_error('flaky'), value) AS value")
    writer = checked.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
    try:
        writer.start(os.environ["OUT"]).awaitTermination()
    except Exception as error:
        print(f"attempt {attempt} failed, and the session begins again: {type(error).__name__}", flush=True)
        spark.stop()
