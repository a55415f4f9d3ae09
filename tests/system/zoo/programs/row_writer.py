"""foreach with a writer of rows."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("row_writer").getOrCreate()


class Append:
    def open(self, partition_id, epoch_id):
        self.file = open(f"{os.environ['LOCAL']}/{partition_id}.txt", "a")
        return True

    def process(self, row):
        self.file.write(row.value + "\n")

    def close(self, error):
        self.file.close()


lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.queryName("orders").foreach(Append()).start().awaitTermination()
