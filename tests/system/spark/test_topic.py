"""The example that reads a topic: drivers are killed, and each record is in the files exactly once."""

import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import ha
from ha.sandbox import Sandbox
from tests.system.spark.example import Example, driver_of
from tests.system.spark.helpers import eventually, rows

pytestmark = [
    pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow,
]  # fmt: skip

PARTITIONS, PORTION, KILLS = 3, 200, 2
WARM = "The query is warm."


@pytest.fixture(scope="module")
def brokers(sandbox: Sandbox) -> Iterator[str]:
    sandbox.up(kafka=True)
    found = sandbox.environment()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {found['HA_SANDBOX_KAFKA_JARS']} pyspark-shell")
        yield found["HA_SANDBOX_KAFKA"]


class Topic:
    def __init__(self, brokers: str) -> None:
        self.name, self.brokers = f"orders-{uuid.uuid4().hex[:8]}", brokers
        admin = AdminClient({"bootstrap.servers": brokers})
        admin.create_topics([NewTopic(self.name, PARTITIONS, 1)])[self.name].result(60)
        self.written: Counter[tuple[object, object, object]] = Counter()

    def write(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.brokers, "acks": "all"})  # it calls the broker until it is gone
        wanted = self.written.total() + count
        for number in range(self.written.total(), wanted):
            producer.produce(self.name, f"record-{number}".encode(), on_delivery=self._delivered)
        producer.flush(60)
        assert self.written.total() == wanted, "the broker has all of them"

    def _delivered(self, error: KafkaError | None, record: Message) -> None:
        assert error is None, error
        self.written[record.partition(), record.offset(), (record.value() or b"").decode()] += 1


def read(example: Example) -> Counter[tuple[object, object, object]]:
    published = rows(example.output).values() if example.batches() else ()
    return Counter((row["partition"], row["offset"], row["value"]) for batch in published for row in batch)


def test_each_record_is_there_once_after_drivers_were_killed(
    brokers: str, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first standby has rehearsed over the topic."""
    monkeypatch.setenv("HA_STANDBY", "warm")
    topic = Topic(brokers)
    example = Example("topic.py", hdfs_uri, zookeeper_hosts, tmp_path, "--warm")
    at = example.program.index("--input")
    example.program[at : at + 2] = ["--brokers", topic.brokers, "--topic", topic.name, "--most", "60"]
    topic.write(PORTION)
    with (
        example.sidecar("first") as first,
        example.sidecar("second") as second,
        ha.connect(files=example.files, zookeeper=example.zookeeper) as client,
    ):
        sidecars = {"first": first, "second": second}
        try:
            for portion in range(KILLS):
                eventually(lambda least=portion * PORTION: read(example).total() > least, 150)  # type: ignore[misc]
                leader = eventually(lambda: example.leader(client))
                assert leader is not None
                name = leader.endpoints["jobmaster"].partition(":")[0]
                if portion == 0:
                    (standby,) = sidecars.keys() - {name}
                    eventually(lambda log=tmp_path / f"{standby}.log": WARM in log.read_text(), 150)  # type: ignore[misc]
                os.kill(driver_of(sidecars[name]), signal.SIGKILL)
                topic.write(PORTION)
            eventually(lambda: read(example).total() >= topic.written.total(), 200)
            stop = [sys.executable, "-m", "ha.cli", "job", "stop", example.job, "--timeout", "60"]
            assert subprocess.run(stop, env=example.environment, timeout=120, check=False).returncode == 0
            assert [each.wait(60) for each in sidecars.values()] == [0, 0]
        finally:
            example.tell()
    assert read(example) == topic.written
    assert set(topic.written.values()) == {1}
    assert {partition for partition, *_ in topic.written} == set(range(PARTITIONS))
