"""foreachBatch that upserts into a database."""

import json
import os
import sqlite3

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("batch_sqlite").getOrCreate()


def write(rows, batch_id):
    found = [(json.loads(row.value)["id"], row.value) for row in rows.collect()]
    with sqlite3.connect(os.environ["LOCAL"] + "/.db") as database:
        database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, line TEXT)")
        database.executemany("INSERT OR REPLACE INTO orders VALUES (?, ?)", found)


lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.queryName("orders").foreachBatch(write).start().awaitTermination()
