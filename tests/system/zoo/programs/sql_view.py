"""A view and SQL, joined with a table that does not stream."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("sql_view").getOrCreate()
spark.createDataFrame([(f"u{number}",) for number in range(3)], "user STRING").createOrReplaceTempView("users")
events = spark.readStream.schema("id LONG, user STRING, at STRING").json(os.environ["IN"])
events.createOrReplaceTempView("events")
found = spark.sql("SELECT CAST(id AS STRING) AS value FROM events JOIN users USING (user)")
writer = found.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
