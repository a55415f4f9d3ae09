"""The second act: a Kafka topic is written into files while the driver is killed, and each record is there once."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import ha
from examples.demo.participant import Participant, kill
from examples.demo.story import BATCH_LIMIT, TAKEOVER_LIMIT, DemoError
from examples.demo.terminal import Terminal
from ha.hosts.host_error import HostError
from ha.sandbox.sandbox import Sandbox
from leader.errors import LeaderError
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import NotFound
from store.files import Files
from store.open import open_files

JOB, TOPIC = "topic-dump", "orders"
PARTITIONS = 3
PORTION = 500
"""Records before the driver is killed, and after it."""

ACKNOWLEDGED_S = 60.0
ENDED_S = 60.0
TOLD_S = 10.0
"""Between two lines that say what is waited for."""

MOST_BYTES = 10_000_000
DRIVER = Path(__file__).parent.parent / "topic.py"

Record = tuple[int, int, str]
"""Partition, offset and value."""


class TopicAct:
    """Two sidecars with the example that writes a topic into files."""

    def __init__(self, sandbox: Sandbox, terminal: Terminal, logs: Path) -> None:
        self._sandbox, self._terminal, self._logs = sandbox, terminal, logs
        self._written: Counter[Record] = Counter()

    def run(self) -> dict[str, tuple[bool, str]]:
        """Play it; returns its checks, none if there is no Kafka here."""
        self._terminal.chapter("The second act: a Kafka broker starts, and its topic is written into files.")
        try:
            self._sandbox.up(kafka=True)
            environment = self._sandbox.environment()
        except HostError as error:
            self._terminal.event(f"There is no Kafka here, so the second act is left out: {error}")
            return {}
        self._terminal.event("Two sidecars start, each with examples/topic.py; Spark loads Kafka's connector.")
        brokers, root = environment["HA_SANDBOX_KAFKA"], environment["HA_FILES"].rsplit("/", 1)[0]
        admin = AdminClient({"bootstrap.servers": brokers, "log_level": 2})  # it answers as long as it is there
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(ACKNOWLEDGED_S)
        environment |= {
            "PYSPARK_SUBMIT_ARGS": f"--jars {environment['HA_SANDBOX_KAFKA_JARS']} pyspark-shell",
            "PYSPARK_PYTHON": sys.executable,
            "HA_STANDBY": "warm",
        }
        program = [sys.executable, str(DRIVER), "--brokers", brokers, "--topic", TOPIC, "--most", "100"]
        program += ["--output", f"{root}/demo/topic"]
        sidecars = {name: Participant(name, JOB, program, environment, self._logs) for name in ("topic-a", "topic-b")}
        try:
            with (
                open_files(f"{root}/demo/topic") as files,
                ha.connect(files=environment["HA_FILES"], zookeeper=environment["HA_ZOOKEEPER"]) as client,
            ):
                return self._play(sidecars, files, client, brokers, environment)
        finally:
            for each in sidecars.values():
                each.end()

    def _play(
        self,
        sidecars: dict[str, Participant],
        files: BoundedFiles,
        client: ha.Client,
        brokers: str,
        environment: dict[str, str],
    ) -> dict[str, tuple[bool, str]]:
        self._write(brokers)
        self._wait("the first batch", lambda: bool(published(files)), BATCH_LIMIT)
        leader = self._leader(client, sidecars)
        self._terminal.chapter(f"kill -9 of the driver of {leader}, while its query reads the topic.")
        seen, killed = published(files).total(), now()
        kill(sidecars[leader].family()[2:])
        self._write(brokers)
        self._wait("a batch after it", lambda: published(files).total() > seen, BATCH_LIMIT)
        self._terminal.event(f"The next batch is published {now() - killed:.1f} s after the kill.")
        self._wait("all records", lambda: published(files).total() >= self._written.total(), BATCH_LIMIT)
        self._terminal.chapter(f"All records are there: ha job stop {JOB}.")
        command = [sys.executable, "-m", "ha.cli", "job", "stop", JOB, "--timeout", f"{ENDED_S:g}"]
        stopped = subprocess.run(command, env=environment, capture_output=True, check=False).returncode
        codes = [stopped, *(each.wait(ENDED_S) for each in sidecars.values())]
        found = published(files)
        twice, missing = (found - self._written).total(), (self._written - found).total()
        return {
            "each (partition, offset) once": (
                found == self._written,
                f"{found.total()} of {self._written.total()} records, {twice} twice, {missing} missing",
            ),
            "the topic's job finished": (set(codes) == {0}, f"exit codes {codes}"),
        }

    def _write(self, brokers: str) -> None:
        """Write records, and return when the broker has them all."""
        producer = Producer({"bootstrap.servers": brokers, "acks": "all", "log_level": 2})  # the broker stops before it
        for number in range(PORTION):
            producer.produce(TOPIC, f"order-{self._written.total() + number}".encode(), on_delivery=self._delivered)
        if producer.flush(ACKNOWLEDGED_S):
            raise DemoError("The broker does not acknowledge records.")

    def _delivered(self, error: KafkaError | None, record: Message) -> None:
        if error is None:
            self._written[record.partition() or 0, record.offset() or 0, (record.value() or b"").decode()] += 1

    def _leader(self, client: ha.Client, sidecars: dict[str, Participant]) -> str:
        found: list[str] = []

        def look() -> bool:
            with suppress(LeaderError):
                address = client.leader(JOB).endpoints["jobmaster"]
                found[:] = [name for name, each in sidecars.items() if each.address == address]
            return bool(found)

        self._wait("a leader", look, TAKEOVER_LIMIT)
        return found[0]

    def _wait(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        began = told = now()
        while not holds():
            if now() > began + seconds:
                raise DemoError(f"The second act waited {seconds:.0f} s for {what}: see the logs in {self._logs}.")
            if now() > told + TOLD_S:
                told = now()
                self._terminal.status(f"{self._written.total()} records fed · {what} awaited for {told - began:.0f} s")
            threading.Event().wait(0.2)


def published(files: BoundedFiles) -> Counter[Record]:
    """Return every row that plain readers see, with repetitions."""

    def read(driver: Files) -> Counter[Record]:
        found: Counter[Record] = Counter()
        for batch in driver.list(""):
            for part in driver.list(batch.name):
                for line in driver.read(f"{batch.name}/{part.name}", MOST_BYTES).splitlines():
                    row = json.loads(line)
                    found[row["partition"], row["offset"], row["value"]] += 1
        return found

    try:
        return files.call("read", read, BATCH_LIMIT)
    except NotFound:  # no driver has made the directory
        return Counter()
