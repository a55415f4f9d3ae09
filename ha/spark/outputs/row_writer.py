"""RowWriter: has Spark write the rows of a batch as files, and says which files belong to it.

Spark's ordinary writer names none of its files. A task that was given up and goes on can add one, replace one or delete
one until the rows are moved. Spark's sink of streaming queries gives each try of a task names of its own and notes
those of the tries that count, in ``_spark_metadata``. So the rows are written by that sink, one for each batch.
See decision 79.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import msgspec

from ha.leadership.fenced_rename import FencedRename
from ha.outputs.record import Record
from ha.spark.session.private_names import file_format, write_files
from ha.spark.stored.stored_state import meaning
from leader.errors import InvalidSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


LOG = "_spark_metadata"  # folder of the sink's notes
MOST = 256 << 20  # longest note: some 900,000 files


class RowWriter:
    """Writes the batches of one output in one format."""

    def __init__(
        self,
        renames: FencedRename,
        source: str,
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._renames, self._source = renames, source
        self._partition_by, self._options = tuple(partition_by), dict(options or {})
        self._format: Any = None

    def write(self, batch: "DataFrame", folder: str, below: str = "") -> Record:
        """Write a batch to the folder of an attempt, below the root of the renames, and return its files."""
        # `below` is a folder there for these rows; it begins the paths of their partitions.
        self._check(batch)
        place = f"{folder}/{below}".rstrip("/")
        self._format = self._format or file_format(batch.sparkSession, self._source)
        uri = f"{self._renames.root.rstrip('/')}/{place}"
        write_files(batch, uri, self._format, self._partition_by, self._options)
        said = self._renames.do(lambda files: files.read(f"{place}/{LOG}/0", MOST))
        self._renames.remove(f"{place}/{LOG}")  # readers would believe it
        return written_files(said, f"/{folder}/")

    def _check(self, batch: "DataFrame") -> None:
        missing = [each for each in self._partition_by if each.lower() not in map(str.lower, batch.columns)]
        if missing:
            raise InvalidSettings(f"The batch has no column {missing[0]!r} of partition_by: it has {batch.columns}.")
        if len(self._partition_by) == len(batch.columns):
            raise InvalidSettings("All columns of the batch are in partition_by, so no file would have any.")


def evaluate(batch: "DataFrame") -> None:
    """Evaluate a batch without writing it: Spark needs that for the state of its query."""
    batch.write.format("noop").mode("overwrite").save()


def counted(batch: "DataFrame") -> int:
    """Evaluate a batch without writing it, and return how many rows it has."""
    from pyspark.sql import Observation, functions  # noqa: PLC0415  # only a batch that comes again needs it

    seen = Observation()
    evaluate(batch.observe(seen, functions.count(functions.lit(1)).alias("rows")))
    return int(seen.get["rows"])


def rows_of(spark: "SparkSession", uri: str, source: str) -> int:
    """Return how many rows a reader of a whole directory gets, for which all columns of all files are read.

    A journal says which files were published. Whether their rows reach such a reader is Spark's to say: a file of
    another type beside them, or a log that Spark follows, and it fails or leaves rows out.

    Raises:
        ValueError: Spark cannot read it; the text is its own.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        return counted(spark.read.format(source).load(uri))
    except (PySparkException, Py4JError) as error:
        raise ValueError(meaning(error)) from error


def written_files(log: bytes, folder: str) -> Record:
    """Read an entry of the log of Spark's file sink; the folder is in front of the partitions in each file's path."""
    partitions: dict[str, dict[str, int]] = {}
    for line in log.splitlines()[1:]:
        said = msgspec.json.decode(line)
        path = unquote(urlsplit(said["path"]).path).partition(folder)[2]
        partition, _, name = path.rpartition("/")
        partitions.setdefault(partition, {})[name] = said["size"]
    return Record(dict(sorted(partitions.items())))
