"""Declared queries that read two sources each, as they were or as they are now: sources.py JOB INPUT."""

import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import ha.spark
from ha.leadership.leadership import Leadership
from tests.system.spark.conftest import SETTINGS

BEFORE = {"old": "a b", "new": "a b", "same": "a b", "renamed": "a b"}
AFTER = {"old": "b a", "new": "c b a", "same": "a b", "renamed": "a=z b"}
"""By query, the sources that it reads in their order, and their names where these are others."""


def declare(job: ha.spark.Job, source: Path, queries: dict[str, str], sink: Callable[[str, DataFrame], object]) -> None:
    def query(name: str, sources: str) -> None:
        @job.query(name=name)
        def _(spark: SparkSession, leadership: Leadership) -> Any:
            del leadership
            frames = []
            for each in sources.split():
                folder, _, called = each.partition("=")
                reader = ha.spark.named_source(spark, called or folder).option("maxFilesPerTrigger", 1)
                frames.append(reader.text((source / folder).as_uri()))
            written = reduce(DataFrame.union, frames).writeStream.trigger(availableNow=True)

            def batch(rows: DataFrame, _: int) -> None:
                sink(name, rows)

            return written.foreachBatch(batch)

    for name, sources in queries.items():
        query(name, sources)


if __name__ == "__main__":
    changed = ha.spark.Job(sys.argv[1], named_sources=True)
    declare(changed, Path(sys.argv[2]), AFTER, lambda *_: sys.exit("a sink was called"))
    changed.run(SparkSession.builder.master("local[1]").config(map=dict(SETTINGS)).getOrCreate())
