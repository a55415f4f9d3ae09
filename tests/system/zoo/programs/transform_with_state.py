"""transformWithState."""

import os

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

spark = SparkSession.builder.appName("transform_with_state").getOrCreate()


class Count(StatefulProcessor):
    def init(self, handle):
        self.seen = handle.getValueState("seen", "n LONG")

    def handleInputRows(self, key, rows, timers):
        seen = self.seen.get()[0] if self.seen.exists() else 0
        for _ in rows:
            seen += 1
            yield Row(value=f"{key[0]} {seen}")
        self.seen.update((seen,))

    def close(self):
        pass


spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
)
events = spark.readStream.schema("id LONG, user STRING, at TIMESTAMP").json(os.environ["IN"])
counts = events.groupBy("user").transformWithState(Count(), "value STRING", "append", "none")
writer = counts.writeStream.queryName("counts").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
