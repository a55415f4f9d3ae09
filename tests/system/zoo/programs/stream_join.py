"""A stream-stream join."""

import os

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

spark = SparkSession.builder.appName("stream_join").getOrCreate()
SCHEMA = "id LONG, user STRING, at TIMESTAMP"
views = spark.readStream.schema(SCHEMA).json(os.environ["IN"]).withWatermark("at", "1 minute")
clicks = spark.readStream.schema(SCHEMA).json(os.environ["IN_B"]).withWatermark("at", "1 minute")
clicks = clicks.selectExpr("id AS click", "at AS clicked")
joined = views.join(clicks, expr("id = click AND clicked BETWEEN at AND at + INTERVAL 1 MINUTE"))
writer = (
    joined.selectExpr("CAST(id AS STRING)")
    .writeStream.queryName("joined")
    .format(os.environ["FORMAT"])
    .option("format", "text")
)
writer.option("path", os.environ["OUT"]).start().awaitTermination()
