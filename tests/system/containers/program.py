"""A user's program: state in RocksDB, files with snappy and zstd, batches by `format("ha")`; imports nothing of ha."""

import sys

from pyspark.sql import SparkSession

where = sys.argv[1]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.sql.shuffle.partitions", "1")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .getOrCreate()
)
for codec in ("snappy", "zstd"):
    words = spark.createDataFrame([("to",), ("be",), (codec,)], "value string")
    words.write.mode("append").option("compression", codec).parquet(f"{where}/in")
(
    spark.readStream.schema("value string")
    .parquet(f"{where}/in")
    .dropDuplicates(["value"])
    .writeStream.queryName("orders")
    .format("ha")
    .option("path", f"{where}/out")
    .trigger(availableNow=True)
    .start()
    .awaitTermination()
)
print("published:", *sorted(row.value for row in spark.read.parquet(f"{where}/out").collect()))  # noqa: T201
