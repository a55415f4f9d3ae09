"""Schemas that the format ``ha`` can write, checked before a query's first batch. Pure."""

from pyspark.sql import types
from pyspark.sql.types import StructType

from ha.spark.sink.options import SinkOptions
from leader.errors import InvalidSettings

PARTITIONS = (
    types.StringType,
    types.ByteType,
    types.ShortType,
    types.IntegerType,
    types.LongType,
    types.BooleanType,
    types.DateType,
)
"""Types whose values Arrow and Spark write alike as text."""

PLAIN = (*PARTITIONS, types.FloatType, types.DoubleType, types.DecimalType, types.BinaryType, types.TimestampType,
         types.TimestampNTZType)  # fmt: skip
"""Types of values that Spark reads from the files as they were."""


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """Check that rows of a schema can be written.

    Raises:
        InvalidSettings: they cannot; the sentence says which column, and what to do.
    """
    fields = {field.name: field.dataType for field in schema.fields}
    for column in options.partition_by:
        if column not in fields:
            raise InvalidSettings(f"partitionBy names {column!r}, but the query's columns are {', '.join(fields)}.")
        if not isinstance(fields[column], PARTITIONS):
            raise InvalidSettings(
                f"Column {column!r} of type {fields[column].simpleString()} cannot be in partitionBy: cast it to a "
                "string, a whole number, a boolean or a date."
            )
    rest = {name: kind for name, kind in fields.items() if name not in options.partition_by}
    if not rest:
        raise InvalidSettings("All columns are in partitionBy: a file needs one more.")
    if options.format == "text" and [type(kind) for kind in rest.values()] != [types.StringType]:
        raise InvalidSettings(
            f"A text file has one column, a string, but the query has {', '.join(rest)} beside partitionBy."
        )
    for name, kind in rest.items():
        if not _plain(kind) or (options.format == "orc" and "timestamp_ntz" in kind.simpleString()):
            raise InvalidSettings(
                f"Column {name!r} of type {kind.simpleString()} cannot be written by the format ha: cast it, or use "
                "ha.spark.Output."
            )


def _plain(kind: types.DataType) -> bool:
    match kind:
        case types.ArrayType():
            return _plain(kind.elementType)
        case types.MapType():
            return _plain(kind.keyType) and _plain(kind.valueType)
        case types.StructType():
            return bool(kind.fields) and all(_plain(field.dataType) for field in kind.fields)
        case _:
            return isinstance(kind, PLAIN)
