"""A listener of the program's own."""

import os

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

spark = SparkSession.builder.appName("listener").getOrCreate()


class Progress(StreamingQueryListener):
    def onQueryStarted(self, event):
        print("started", event.name, flush=True)

    def onQueryProgress(self, event):
        print(event.progress.batchId, event.progress.numInputRows, flush=True)

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        print("ended", event.exception, flush=True)


spark.streams.addListener(Progress())
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
