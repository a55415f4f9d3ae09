"""HaSink: the format ``ha``, as PySpark's Python data sources want it.

Spark finds it without any import, in the module ``pyspark_ha``, if this package is installed where the driver's Python
is. For each batch Spark asks for a writer, which goes to the tasks. Another one, in another process, commits.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import pyspark
from pyspark.sql import SparkSession, types
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from ha.outputs.columns import types_of
from ha.spark.session.private_names import numbers_of
from ha.spark.sink.leader_home import LeaderHome, home_of, home_of_environment, settling
from ha.spark.sink.options import SinkOptions, options_of
from leader.errors import InvalidSettings, NotLeader

if TYPE_CHECKING:
    from ha.leadership.leadership import Leadership

OLDEST = (4, 1)  # the oldest PySpark whose streaming writers get Arrow

PARTITIONS = (
    types.StringType, types.ByteType, types.ShortType, types.IntegerType, types.LongType, types.BooleanType,
    types.DateType,
)  # fmt: skip
"""Types whose values Arrow and Spark write alike as text."""

PLAIN = (*PARTITIONS, types.FloatType, types.DoubleType, types.DecimalType, types.BinaryType, types.TimestampType,
         types.TimestampNTZType)  # fmt: skip
"""Types of values that Spark reads from the files as they were."""


class HaSink(DataSource):
    """``df.writeStream.format("ha").option("path", URI)``: each batch is published once, as by ``ha.spark.Output``."""

    home: ClassVar[LeaderHome | None] = None  # the leader of this program; None to find it in the environment

    @classmethod
    def name(cls) -> str:
        """Return what a program calls the format."""
        return "ha"

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options. Spark does so before each batch, too: so a job that is being stopped begins none."""
        check_version()
        self._home = self.home or home_of_environment()
        self._options = options_of(options, self._home.directory)
        if settling():
            raise NotLeader(f"No batch of output {self._options.name!r} is begun: the job is being stopped.")

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # PySpark's
        """Return a writer of one batch."""
        from ha.spark.sink.writer import HaWriter  # noqa: PLC0415  # PySpark 4.0 lacks its base class

        if overwrite:
            raise InvalidSettings("The format ha adds rows: choose outputMode('append') or 'update', not 'complete'.")
        check_schema(schema, self._options)
        return HaWriter(self._home, self._options, types_of(schema.jsonValue(), self._options.partition_by))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002
        """Refuse: nothing says which batch a write without a stream is."""
        raise InvalidSettings("The format ha is for streaming queries: use df.writeStream, or leadership.publish.")


def register_format(spark: SparkSession, leadership: "Leadership") -> None:
    """Let the queries of a session that start from now on write with ``format("ha")`` below this leadership."""
    # `ha.spark.lead` does so in each leadership, because the session may have known another leader before.
    # A class made here is pickled as a whole, so the processes that Spark starts know the leader.
    spark.dataSource.register(type("LedSink", (HaSink,), {"home": home_of(leadership)}))


def check_version(version: str = pyspark.__version__) -> None:
    """Refuse a PySpark that lacks what the format needs."""
    if numbers_of(version) < OLDEST:
        raise InvalidSettings(
            f"The format ha needs PySpark {'.'.join(map(str, OLDEST))} or newer, and this is {version}: "
            "use ha.spark.Output with foreachBatch."
        )


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """Raise ``InvalidSettings`` if rows of a schema cannot be written; it says which column, and what to do."""
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
