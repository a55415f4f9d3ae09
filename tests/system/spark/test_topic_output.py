"""ha.spark.Topic with a real Spark and Kafka: its driver dies at drawn steps; each row is there once, in order."""

import os
import random
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from ha.kafka.shard import Sent, Shard
from ha.leadership.leadership import Leadership
from ha.outputs.journal import Journal
from ha.sandbox import Sandbox
from ha.spark import Topic, checkpoint_location
from leader.errors import LeaderError
from tests.system.spark.helpers import leading

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow]

PARTITIONS, KEYS = 3, 4
LIVES = int(os.environ.get("TOPIC_LIVES", "6"))
STEPS = ("staged", "decided", "some shards", "sent", "none")
"""After which a driver dies: none of a batch is in the topic, a part of it, or all of it, and nobody has noted that."""


class Died(Exception):
    pass


@pytest.fixture(scope="module")
def brokers(sandbox: Sandbox) -> str:
    sandbox.up(kafka=True)
    return sandbox.environment()["HA_SANDBOX_KAFKA"]


class Program:
    """A query from a folder of numbered lines to a topic; each of its lives has another leader."""

    def __init__(self, spark: SparkSession, brokers: str, place: Path) -> None:
        self.spark, self.brokers, self.place = spark, brokers, place
        self.topic, self.lines = f"out-{uuid.uuid4().hex[:8]}", 0
        admin = AdminClient({"bootstrap.servers": brokers})
        kept = {"retention.ms": "-1"}  # the rows are of 1970
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1, config=kept)])[self.topic].result(60)
        (place / "in").mkdir()

    def feed(self, files: int) -> None:
        for _ in range(files):
            numbers = range(self.lines, self.lines + 10)
            (path := self.place / "in" / f"{self.lines:05d}.txt").write_text("".join(f"{each}\n" for each in numbers))
            os.utime(path, (self.lines, self.lines))  # Spark reads the oldest file first
            self.lines += 10

    def live(self, leadership: Leadership, shards: int) -> None:
        """Read everything that there is, a file a batch."""
        lines = self.spark.readStream.option("maxFilesPerTrigger", 1).text((self.place / "in").as_uri())
        number = f.col("value").cast("long")
        rows = lines.select(
            number.alias("number"),
            f.concat(f.lit("key-"), number % KEYS).alias("key"),
            f.array(f.struct(f.lit("of").alias("key"), f.encode("value", "utf-8").alias("value"))).alias("headers"),
            f.timestamp_millis(1_000_000 + number).alias("timestamp"),
            "value",
        )
        writer = rows.writeStream.queryName("lines").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", checkpoint_location(leadership, "lines"))
        topic = Topic(leadership, self.topic, shards, options=self.brokers, order=["number"])
        try:
            writer.foreachBatch(topic).start().awaitTermination(120)
        finally:
            topic.close()

    def records(self) -> list[list[tuple[str, str, Any, int]]]:
        """Return what a reader of committed transactions gets of each partition: key, value, headers, time."""
        found = []
        for number in range(PARTITIONS):
            group: dict[str, Any] = {
                "bootstrap.servers": self.brokers,
                "group.id": "test",
                "enable.partition.eof": True,
            }
            reader = Consumer({**group, "isolation.level": "read_committed"})
            place = TopicPartition(self.topic, number, 0)
            end = Consumer(group).get_watermark_offsets(place, timeout=60)[1]
            reader.assign([place])
            rows: list[tuple[str, str, Any, int]] = []
            at = 0
            while at < end:  # no transaction is open: a reader gets as far as one that reads everything
                record = reader.poll(60)
                assert record is not None, (number, at, end)
                if (error := record.error()) is None:
                    key, value = ((each or b"").decode() for each in (record.key(), record.value()))
                    rows.append((key, value, record.headers() or [], record.timestamp()[1]))
                elif error.code() == KafkaError._PARTITION_EOF:
                    at = record.offset() or 0
            reader.close()
            found.append(rows)
        return found


def dying(patch: pytest.MonkeyPatch, step: str, batch: int) -> None:
    """Have the driver die once, with its so-manieth batch, after a step."""
    publish, sent, left = Journal.publish, Topic._sent, [batch]

    def published(journal: Journal, *more: Any) -> bool:
        left[0] -= 1
        if left[0] == 0 and step == "staged":
            raise Died
        return publish(journal, *more)

    def shards_sent(topic: Topic, shards: list[Shard]) -> list[Sent]:
        if left[0] or step in ("staged", "none"):
            return sent(topic, shards)
        left[0] = -1
        if step != "decided":
            sent(topic, shards[: 1 if step == "some shards" else None])
        raise Died

    patch.setattr(Journal, "publish", published)
    patch.setattr(Topic, "_sent", shards_sent)


def test_each_row_is_there_once_and_in_order_however_drivers_die(
    spark: SparkSession, brokers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, drawn, deaths = Program(spark, brokers, tmp_path), random.Random(7), 0  # noqa: S311
    for life in range(LIVES):
        program.feed(3)
        step, batch = STEPS[life % len(STEPS)], drawn.choice((1, 2, 3))
        with monkeypatch.context() as patch, leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
            dying(patch, step, batch)
            try:
                program.live(leadership, drawn.choice((1, 2, 3)))
                assert step == "none"
            except Exception as error:
                if "Died" not in repr(error) and "Died" not in str(error):
                    raise
                deaths += 1
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        program.live(leadership, 2)
    assert deaths == LIVES - LIVES // len(STEPS)
    found = program.records()
    assert sorted(int(value) for rows in found for _, value, _, _ in rows) == list(range(program.lines))
    for rows in found:
        for key in {each[0] for each in rows}:
            numbers = [int(value) for own, value, _, _ in rows if own == key]
            assert numbers == sorted(numbers), f"{key} is in its order"
            assert {each % KEYS for each in numbers} == {int(key.removeprefix("key-"))}
    for _, value, headers, time in (each for rows in found for each in rows):
        assert (headers, time) == ([("of", value.encode())], 1_000_000 + int(value))


def test_a_topic_that_is_not_there_is_told_before_the_first_row(
    spark: SparkSession, brokers: str, tmp_path: Path
) -> None:
    program = Program(spark, brokers, tmp_path)
    program.topic = "nowhere"
    program.feed(1)
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership, pytest.raises(LeaderError, match="'nowhere'"):
        program.live(leadership, 1)
