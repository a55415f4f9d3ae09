"""Metastore: adds committed partitions to a table of the session's catalog."""

from pyspark.sql import SparkSession

from ha.outputs.partition_commit import CommittedPartition
from leader.errors import InvalidSettings

BATCH = "batch"
"""The last column of such a table: Spark reads the files of a partition from its directory, not from those below."""


def add_partition(spark: SparkSession, table: str, partition: CommittedPartition) -> None:
    """Add every batch of a partition to a table; what is there already stays as it is."""
    columns = [each.name for each in spark.catalog.listColumns(table) if each.isPartition]
    expected = [*partition.values, BATCH]
    if [each.lower() for each in columns] != [each.lower() for each in expected]:
        raise InvalidSettings(
            f"Table {table} is partitioned by {', '.join(columns) or 'nothing'}, but the output has "
            f"{', '.join(expected)}: create it with PARTITIONED BY ({', '.join(expected)})."
        )
    values = ", ".join(f"{_quoted(name)}={_text(value)}" for name, value in partition.values.items())
    added = " ".join(
        f"PARTITION ({values}, {BATCH}={batch}) LOCATION {_text(f'{partition.uri}/{BATCH}={batch}')}"
        for batch in partition.batches
    )
    spark.sql(f"ALTER TABLE {table} ADD IF NOT EXISTS {added}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
