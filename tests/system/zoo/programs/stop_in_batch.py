"""spark.stop() in a thread when nothing comes."""

import os
import threading
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("stop_in_batch").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
query = writer.start(os.environ["OUT"])


def watch():
    idle = 0
    while idle < 8:
        idle = 0 if query.status["isDataAvailable"] or query.status["isTriggerActive"] else idle + 1
        time.sleep(0.5)
    spark.stop()


threading.Thread(target=watch, daemon=True).start()
try:
    query.awaitTermination()
except Exception as error:
    print("the session was stopped:", type(error).__name__)
