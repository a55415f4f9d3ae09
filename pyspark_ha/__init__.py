"""The format ``ha``, where Spark looks for formats in Python: modules called ``pyspark_...`` with a DefaultSource."""

from ha.spark.sink.data_source import HaSink as DefaultSource

__all__ = ["DefaultSource"]
