"""Records of a topic: what a marathon writes to Kafka, and the comparison of its files with it, as sets of offsets."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.programs import ha
from benchmarks.spark.words import EXAMPLES, FULL, PATIENCE, Verdict, Words
from store.clock import now
from store.errors import NotFound
from store.files import Files

PARTITIONS, PORTION = 3, 300  # Of the topic, and records that are written at once: as many as a batch takes
KAFKA_TIMEOUT = 60

Record = tuple[int, int, str]  # Partition, offset and value


class Records(Words):
    """A topic as the input of one job, and the records that the broker has confirmed."""

    query = "records"

    def __init__(self, files: str, job: str, brokers: str, environment: Mapping[str, str]) -> None:
        super().__init__(files, job)
        self._brokers, self._environment = brokers, environment
        self._written: Counter[Record] = Counter()
        admin = AdminClient({"bootstrap.servers": brokers})
        admin.create_topics([NewTopic(job, PARTITIONS, 1)])[job].result(KAFKA_TIMEOUT)
        self._producer = Producer({"bootstrap.servers": brokers, "acks": "all", "enable.idempotence": True})

    def program(self, interval: float, *, warm: bool) -> list[str]:
        return [
            *(str(EXAMPLES / "topic.py"), "--brokers", self._brokers, "--topic", self.job),
            *("--output", self.output, "--most", str(PORTION), "--interval", f"{interval:g}"),
            *(["--warm"] if warm else []),
        ]

    def feed(self, count: int) -> None:
        """Write a number of portions, and return when the broker has them."""
        for _ in range(count):
            for number in range(self.fed * PORTION, (self.fed + 1) * PORTION):
                self._producer.produce(self.job, f"record-{number}".encode(), on_delivery=self._delivered)
            self._producer.flush(KAFKA_TIMEOUT)
            self.fed += 1

    def stop(self) -> None:
        """Wait until as many rows are published as records were written, at most for some minutes; stop the job."""
        end = now() + PATIENCE
        while judge(self._written, self._call(self._rows, PATIENCE)).lost and now() < end:
            time.sleep(FULL)
        ha(["job", "stop", self.job, "--timeout", "60"], self._environment, check=True)

    def judge(self) -> Verdict:
        return replace(judge(self._written, self._call(self._rows, PATIENCE)), gaps=self._gaps())

    def _delivered(self, error: KafkaError | None, record: Message) -> None:
        if error is None:  # a record that the broker has without saying so is a row too much: the verdict shows it
            self._written[record.partition() or 0, record.offset() or 0, (record.value() or b"").decode()] += 1

    def _rows(self, files: Files) -> dict[int, list[Record]]:
        """Read the rows of each published batch."""
        try:
            found = self.published(files)
        except NotFound:
            return {}
        return {
            batch: [(row["partition"], row["offset"], row["value"]) for row in rows] for batch, rows in found.items()
        }


def judge(written: Counter[Record], batches: Mapping[int, list[Record]]) -> Verdict:
    read = Counter(row for rows in batches.values() for row in rows)
    missing = set(range(max(batches, default=-1) + 1)) - set(batches)
    lost, more = (written - read).total(), (read - written).total()
    return Verdict(written.total(), len(batches), lost, more, len(missing))
