"""LocalSession: a Spark of this host that a tool starts to read with, and ends; it says nothing and serves nobody."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


@contextmanager
def local_session(name: str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Start a Spark with these settings; it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="ha-spark-") as folder:
        folders = {"spark.sql.warehouse.dir": folder, "spark.local.dir": folder}
        builder = SparkSession.builder.master("local[*]").appName(name)
        spark = builder.config(map={**QUIET, **(settings or {}), **folders}).getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()


def meaning(error: Exception) -> str:
    """Return the line of an error of Spark that says what it is."""
    lines = str(error).splitlines()
    return next((each for each in lines if "[" in each), lines[0] if lines else type(error).__name__)
