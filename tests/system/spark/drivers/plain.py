"""A driver without any import of ``ha``: plain.py INPUT OUTPUT. It ends when batch 1 is done."""

import sys

from pyspark.sql import SparkSession

source, target = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").getOrCreate()
assert spark._jvm is not None
jvms = spark._jvm.java.lang.System.getenv("USERS_OWN")
print(f"The setting is {spark.conf.get('spark.user.setting')}, the shell's {jvms}.", flush=True)  # noqa: T201
lines = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
query = lines.writeStream.queryName("lines").format("parquet").option("path", target).start()
while not query.awaitTermination(1):
    if query.lastProgress and query.lastProgress["batchId"] >= 1:
        query.processAllAvailable()
        query.stop()
