"""The query's exception is swallowed."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("swallowed").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
seen = f"{os.environ['LOCAL']}/.seen"  # what the query needs is away at first
away = "false" if os.path.exists(seen) else "true"
checked = lines.selectExpr(
    f"IF({away} AND value LIKE '%\"id\": 7,%', raise_error('the service is away'), value) AS value"
)
open(seen, "w").close()
writer = checked.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
try:
    writer.start(os.environ["OUT"]).awaitTermination()
except Exception as error:
    print("stream ended:", type(error).__name__)
