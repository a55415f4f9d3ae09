"""A driver without any import of ``ha`` that ends with 0, though it has failed: ends.py INPUT caught|exits|begins.

Its query has failed, or, of one that only ``begins``, it has none yet, and the shell hides its code.
"""

import os
import sys
from contextlib import suppress

from pyspark.sql import DataFrame, SparkSession

source, how = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").getOrCreate()
if how == "begins":
    sys.exit(3)


def wrong(_: DataFrame, __: int) -> None:
    if how == "exits":
        os._exit(0)
    raise ArithmeticError("the user's own")


with suppress(Exception):
    spark.readStream.text(source).writeStream.queryName("lines").foreachBatch(wrong).start().awaitTermination()
spark.stop()
