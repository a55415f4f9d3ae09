"""applyInPandasWithState."""

import os

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming.state import GroupStateTimeout

spark = SparkSession.builder.appName("pandas_state").getOrCreate()


def count(key, frames, state):
    seen = state.get[0] if state.exists else 0
    for frame in frames:
        for _ in range(len(frame)):
            seen += 1
            yield pd.DataFrame({"value": [f"{key[0]} {seen}"]})
    state.update((seen,))


events = spark.readStream.schema("id LONG, user STRING, at TIMESTAMP").json(os.environ["IN"])
counts = events.groupBy("user").applyInPandasWithState(
    count, "value STRING", "n LONG", "append", GroupStateTimeout.NoTimeout
)
writer = counts.writeStream.queryName("counts").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
