"""Topic: a Kafka topic to which a streaming query publishes each batch exactly once, in order of its keys.

A batch is staged and decided as that of :class:`ha.spark.Output`: so its rows and its shards are fixed. Then tasks send
the shards, each by one transaction that also has a marker: :mod:`ha.kafka.shard`. See decisions 86 and 89.
"""

import logging
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ha.kafka.clients import TopicPlaces, client_settings
from ha.kafka.shard import Sent, Shard, send
from ha.leadership.dry_run_job import is_dry_run
from ha.leadership.leadership import Leadership
from ha.outputs.batch import Batch
from ha.outputs.journal import Journal
from ha.outputs.record import Record
from ha.program.output_report import REPORTS, WRITE
from ha.spark.outputs.publisher import Publisher
from ha.spark.outputs.row_writer import RowWriter
from leader.errors import InvalidSettings, OutputLost
from store.errors import Unknown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = {
    "key": "CAST(`key` AS BINARY) AS key",
    "value": "CAST(`value` AS BINARY) AS value",
    "headers": "headers",
    "timestamp": "unix_millis(CAST(`timestamp` AS TIMESTAMP)) AS timestamp",
}
"""Of a batch, as Spark's own sink has them, and how they are staged."""

MOST_SHARDS = 1000

TRIES = 5  # of a batch whose producers were fenced or got no answer; before each the leader directory is looked at

_log = logging.getLogger("ha")


class Topic(Publisher):
    """A topic to which one query publishes its batches; give it to ``foreachBatch`` as it is.

    A batch has the columns of Spark's own Kafka sink: ``value``, and if you like ``key``, ``headers`` and
    ``timestamp``. As with :class:`ha.spark.Output`, a batch that is done again is recognised, and anything else under
    its number is refused. Readers need ``isolation.level=read_committed``.
    """

    kind = "kafka"

    def __init__(
        self,
        leadership: Leadership,
        topic: str,
        shards: int = 1,
        key: str = "key",
        options: Mapping[str, str] | str | Path = "",
        *,
        order: Sequence[str] = (),
        dead_letters: str = "",
        name: str = "output",
    ) -> None:
        """Look for the topic, and complete the batches that an earlier driver decided.

        Args:
            leadership: of the job.
            topic: which must exist.
            shards: transactions of a batch, which tasks send side by side. It may change with each start.
            key: column whose equal values come into the topic in their order, through one shard.
            options: of Kafka's client, as librdkafka names them; or brokers; or the path of a file of such settings on
                the hosts of driver and executors, so that passwords are in no program.
            order: columns by which the rows of a shard are sorted before they are staged; else Spark says.
            dead_letters: topic for rows that are too large. Without one such a row stops the query.
            name: of the output, in the leader directory and in messages.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: the output cannot have that name.
            InvalidSettings: the brokers are not named, or a value is out of range.
            LeaderError: there is no such topic, or Kafka does not answer.
            OutputLost: a batch that was decided cannot be published any more.
            StoreError: the store or Kafka did not answer.
        """
        from pyspark.sql import SparkSession  # noqa: PLC0415  # a module is imported without a session

        if not 1 <= shards <= MOST_SHARDS:
            raise InvalidSettings(f"A topic has 1 to {MOST_SHARDS} shards, and not {shards}.")
        self.place, self._shards, self._key, self._options = topic, shards, key, options
        self._order, self._dead_letters = tuple(order), dead_letters
        super().__init__(leadership, name)
        self._spark = SparkSession.getActiveSession()
        journal = Journal(leadership, "", name, elsewhere=self)
        self._rows = RowWriter(journal.renames, "parquet", (), {"maxRecordsPerFile": "0"})
        self._open(journal)

    def _settle(self) -> None:
        if not is_dry_run():
            places = TopicPlaces(client_settings(self._options))
            for each in filter(None, (self.place, self._dead_letters)):
                places.held(each)
            self._journal.settle()

    def _publish(self, rows: "DataFrame", origin: Batch) -> bool:
        attempt = uuid.uuid4().hex
        with REPORTS.timed(self._name, WRITE):
            wrote = self._rows.write(rows, self._journal.rows(attempt))
        return self._journal.publish(attempt, origin, msgspec.structs.replace(wrote, content={"shards": self._shards}))

    def _shaped(self, batch: "DataFrame") -> "DataFrame":
        self._spark = batch.sparkSession
        needed = {"value", *self._order, *({self._key} - {"key"})}
        if (missing := needed - {*batch.columns}) or (strange := {*batch.columns} - {*COLUMNS, *needed}):
            what = f"no column {min(missing)!r}" if missing else f"a column {min(strange)!r}"
            raise InvalidSettings(
                f"A batch for topic {self.place!r} has {what}: it needs value, the columns of `key` and `order`, "
                "and may have key, headers and timestamp."
            )
        if self._key in batch.columns and self._shards > 1:
            rows = batch.repartition(self._shards, self._key)
        else:
            rows = batch.coalesce(1) if self._shards == 1 else batch.repartition(self._shards)
        if self._order:
            rows = rows.sortWithinPartitions(*self._order)
        return rows.selectExpr(*(COLUMNS[each] for each in COLUMNS if each in batch.columns))

    def give(self, batch: int, record: Record, rows: str) -> bool:
        """Send a decided batch, whose files are its shards, by name. For modules of this package."""
        renames = self._journal.renames
        shards = [
            Shard(
                self._options, self.place, self._dead_letters, f"ha/{self._leadership.job}/{self._name}", number, batch,
                renames.root, f"{rows}/{path}",
            )
            for number, path in enumerate(record.paths())
        ]  # fmt: skip
        given, letters = False, 0
        for left in reversed(range(TRIES)):
            sent = self._sent(shards)
            given = given or any(each.given for each in sent)
            letters += sum(each.letters for each in sent)
            failed = [each for each in sent if each.error]
            if not failed:
                break
            renames.check()  # another leader may have fenced the producers
            if final := [each for each in failed if not each.again]:
                raise OutputLost(f"Output {self._name!r}: {final[0].error}", record.files, 0)
            if not left:
                raise Unknown(f"Output {self._name!r}: {failed[0].error} It is tried again.")
            _log.warning("Output %s: %s It is tried again.", self._name, failed[0].error)
        if letters:
            REPORTS.add(self._name, dead_letters=letters)
            _log.warning(
                "Batch %d of output %s has %d dead letters: see %s.", batch, self._name, letters, self._dead_letters
            )
        return given

    def _sent(self, shards: Sequence[Shard]) -> list[Sent]:
        """Send the shards by Spark's tasks, or from this process if it has no session."""
        if self._spark is not None and shards:
            return list(self._spark.sparkContext.parallelize(shards, len(shards)).map(send).collect())
        with ThreadPoolExecutor(len(shards) or 1) as crew:
            return list(crew.map(send, shards))
