"""HaSink: the format ``ha``, as PySpark's Python data sources want it.

Spark finds it without any import, in the module ``pyspark_ha``, if this package is installed where the driver's Python
is. For each batch Spark asks for a writer, which goes to the tasks. Another one, in another process, commits.
"""

from collections.abc import Mapping
from typing import ClassVar

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from ha.leadership.leadership import Leadership
from ha.spark.sink.leader_home import LeaderHome, home_of, home_of_environment, settling
from ha.spark.sink.options import options_of
from ha.spark.sink.schema import check_schema
from leader.errors import InvalidSettings, NotLeader

OLDEST = (4, 1)
"""The oldest PySpark whose streaming writers get Arrow."""


class HaSink(DataSource):
    """``df.writeStream.format("ha").option("path", URI)``: each batch is published once, as by ``ha.spark.Output``."""

    home: ClassVar[LeaderHome | None] = None
    """The leader of this program; None to find it in the environment."""

    @classmethod
    def name(cls) -> str:
        """Return what a program calls the format."""
        return "ha"

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options. Spark does so before each batch, too.

        Raises:
            InvalidName: the output cannot have that name.
            InvalidSettings: an option is wrong, nobody leads, or this PySpark is too old.
            NotLeader: the job is being stopped with a savepoint; whoever starts from it does this batch.
        """
        check_version()
        self._home = self.home or home_of_environment()
        self._options = options_of(options, self._home.directory)
        if settling():
            raise NotLeader(f"No batch of output {self._options.name!r} is begun: the job is being stopped.")

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # PySpark's
        """Return a writer of one batch.

        Raises:
            InvalidSettings: rows of that schema cannot be written, or the query wants its old output to go.
        """
        from ha.spark.sink.writer import HaWriter  # noqa: PLC0415  # PySpark 4.0 lacks its base class

        if overwrite:
            raise InvalidSettings("The format ha adds rows: choose outputMode('append') or 'update', not 'complete'.")
        check_schema(schema, self._options)
        return HaWriter(self._home, self._options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002
        """Refuse: nothing says which batch a write without a stream is.

        Raises:
            InvalidSettings: always.
        """
        raise InvalidSettings("The format ha is for streaming queries: use df.writeStream, or leadership.publish.")


def register_format(spark: SparkSession, leadership: Leadership) -> None:
    """Let the queries of a session that start from now on write with ``format("ha")`` below this leadership.

    A program under ``ha run`` needs no call: there Spark finds the format, and the format its leader. A program that
    leads by itself calls this in the block of ``ha.spark.lead``, each time that it is entered.

    Args:
        spark: the session.
        leadership: of the job.

    Raises:
        InvalidSettings: PySpark is older than 4.1.
    """
    check_version()
    # A class made here is pickled as a whole, so the processes that Spark starts know the leader.
    spark.dataSource.register(type("LedSink", (HaSink,), {"home": home_of(leadership)}))


def check_version(version: str = pyspark.__version__) -> None:
    """Refuse a PySpark that lacks what the format needs.

    Raises:
        InvalidSettings: it does.
    """
    first, second = (int("".join(filter(str.isdigit, part)) or 0) for part in f"{version}.0".split(".")[:2])
    if (first, second) < OLDEST:
        raise InvalidSettings(
            f"The format ha needs PySpark {'.'.join(map(str, OLDEST))} or newer, and this is {version}: "
            "use ha.spark.Output with foreachBatch."
        )
