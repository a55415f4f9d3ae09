"""Whole reader: reads all of an output with Spark, as its readers do, and counts the rows.

A journal says which files were published. Whether a reader of the whole directory gets their rows is Spark's to say: a
file of another type beside them, or a log that Spark follows, and it fails or leaves rows out.
"""

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as fn

from ha.spark.stored.local_session import meaning


def rows_of(spark: SparkSession, uri: str, source: str) -> int:
    """Return how many rows a reader of a directory gets; all columns of all files are read.

    Raises:
        ValueError: Spark cannot read it; the text is its own.
    """
    seen = Observation()
    try:
        every = spark.read.format(source).load(uri)
        every.observe(seen, fn.count(fn.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    except (PySparkException, Py4JError) as error:
        raise ValueError(meaning(error)) from error
    return int(seen.get["rows"])
