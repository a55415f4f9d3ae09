"""Counts by window, with a watermark."""

import os

from pyspark.sql import SparkSession
from pyspark.sql.functions import window

spark = SparkSession.builder.appName("windows").getOrCreate()
events = spark.readStream.schema("id LONG, user STRING, at TIMESTAMP").json(os.environ["IN"])
counts = events.withWatermark("at", "1 minute").groupBy(window("at", "2 minutes"), "user").count()
rows = counts.selectExpr("concat_ws(' ', date_format(window.start, 'yyyy-MM-dd HH:mm'), user, count) AS value")
writer = rows.writeStream.queryName("windows").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
