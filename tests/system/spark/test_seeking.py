"""``ha checkpoint seek`` with real Kafka, Spark and HDFS: counts show what was skipped, and what was read again."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ha.sandbox import Sandbox
from tests.patience import DRIVER_S, PATIENCE_S
from tests.system.spark.helpers import rows

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow, pytest.mark.timeout(1800)]


class Counts:
    """A job that counts the words of a topic; it runs when a method is called."""

    def __init__(self, sandbox: Sandbox, root: str, job: str) -> None:
        sandbox.up(kafka=True)
        found = sandbox.environment()
        self.root, self.job, self.topic = root, job, f"words-{uuid.uuid4().hex[:8]}"
        self.brokers, self.out = found["HA_SANDBOX_KAFKA"], f"{root}-published/{job}"
        jars = f"--jars {found['HA_SANDBOX_KAFKA_JARS']} pyspark-shell"
        self.environment = {
            **os.environ,
            "PYSPARK_SUBMIT_ARGS": jars,
            "PYSPARK_PYTHON": sys.executable,
            "HA_FILES": root,
            "HA_ZOOKEEPER": "",
        }
        self.admin = AdminClient({"bootstrap.servers": self.brokers})
        self.create()

    def create(self) -> None:
        self.admin.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result(PATIENCE_S)

    def recreate(self) -> None:
        self.admin.delete_topics([self.topic])[self.topic].result(PATIENCE_S)
        for _ in range(100):
            try:
                self.create()
            except Exception as error:  # noqa: BLE001  # the broker deletes it meanwhile
                last = error
            else:
                return
        raise last

    def write(self, *words: str) -> None:
        producer = Producer({"bootstrap.servers": self.brokers})
        for word in words:
            producer.produce(self.topic, word)
        assert producer.flush(60) == 0

    def run(self) -> "subprocess.CompletedProcess[str]":
        program = str(Path(__file__).with_name("topic_counts.py"))
        words = [sys.executable, program, self.job, self.root, self.brokers, self.topic, self.out]
        return subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=DRIVER_S, check=False
        )

    def ha(self, group: str, verb: str, *more: str) -> str:
        words = [sys.executable, "-m", "ha.cli", group, verb, self.job, *more]
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=DRIVER_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def seek(self, to: str) -> str:
        return self.ha("checkpoint", "seek", "words", "--to", to, "--kafka", self.brokers, "--yes")

    @property
    def counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for _, each in sorted(rows(self.out).items(), key=lambda pair: int(pair[0].removeprefix("batch="))):
            found |= {str(row["word"]): int(str(row["count"])) for row in each}
        return found


def test_a_query_goes_on_elsewhere_with_its_state(sandbox: Sandbox, hdfs_uri: str, job: str) -> None:
    it = Counts(sandbox, hdfs_uri, job)
    it.write("a", "a", "b")
    assert it.run().returncode == 0
    assert it.counts == {"a": 2, "b": 1}

    assert "from 3 to 0: 3 are read again" in it.seek("earliest")
    assert "there is nothing to do" in it.seek("earliest")
    assert it.run().returncode == 0
    assert it.counts == {"a": 4, "b": 2}, "the state was kept"

    it.write("poison", "poison")
    assert "from 3 to 5: 2 are skipped" in it.seek("latest")
    it.write("b")
    assert it.run().returncode == 0
    assert it.counts == {"a": 4, "b": 3}
    it.ha("checkpoint", "rewind", "words", "--undo", "--yes")
    assert it.counts == {"a": 4, "b": 2}
    assert it.run().returncode == 0
    assert it.counts == {"a": 4, "b": 3, "poison": 2}, "as if it had not been"

    it.recreate()
    it.write("c")
    failed = it.run()
    assert (failed.returncode, "Some data may have been lost" in failed.stdout + failed.stderr) != (0, False)
    assert "from 6 to 0" in it.seek("2020-01-01T00:00:00Z")
    assert it.run().returncode == 0
    assert it.counts == {"a": 4, "b": 3, "poison": 2, "c": 1}
    it.ha("output", "verify")
    it.ha("checkpoint", "verify")
