"""DStreams, Spark's older streaming."""

import os

from pyspark import SparkContext
from pyspark.streaming import StreamingContext

streaming = StreamingContext(SparkContext(appName="dstreams"), 1)
streaming.textFileStream(os.environ["IN"]).saveAsTextFiles(f"{os.environ['OUT']}/lines")
streaming.start()
streaming.awaitTermination()
