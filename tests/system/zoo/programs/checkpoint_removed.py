"""A checkpoint that the program removes first."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("checkpoint_removed").getOrCreate()
mine = spark._jvm.org.apache.hadoop.fs.Path(os.environ["BASE"] + "/mine")
mine.getFileSystem(spark._jsc.hadoopConfiguration()).delete(mine, True)  # a clean start
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").option("checkpointLocation", os.environ["BASE"] + "/mine")
writer.format(os.environ["FORMAT"]).option("format", "text").start(os.environ["OUT"]).awaitTermination()
