"""Grid: one job on two hosts, whose program has every sink, and what these sinks have published."""

import os
import signal
import sys
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path

import pyspark
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ha.cli.commands import app
from ha.drill.kill import descendants
from leader.layout.names import SPARK, LeaderDirectory
from store.errors import NotFound
from store.files import Files
from tests.patience import DRIVER_S, PATIENCE_S
from tests.system.spark.drivers.grid import QUERIES
from tests.system.spark.drivers.plain_grid import QUERIES as PLAIN_QUERIES
from tests.system.spark.helpers import eventually, files_of
from tests.system.spark.test_supervised import DRIVERS, RUN, SUBMIT, Driver

LONG = 2 * DRIVER_S
"""Seconds: a driver starts two JVMs, and six queries."""

PYTHON, SUBMITTED, PLAIN = "python", "spark-submit", "plain"
"""How the program is started: by Python; by ``spark-submit``; and so by ``ha run --spark``, without leading itself."""

HOME = {"SPARK_HOME": str(Path(pyspark.__file__).parent)}
"""As an environment that is activated finds it: ``spark-submit`` asks the first ``python3`` of the path."""


class Grid:
    def __init__(self, job: str, root: str, zookeeper: str, brokers: str, folder: Path, form: str) -> None:
        self.hosts = [Driver(job, root, zookeeper, self._made(folder / name)) for name in ("a", "b")]
        self.job, self.root, self.zookeeper, self.brokers, self.form = job, root, zookeeper, brokers, form
        self.source, self.target = self.hosts[0].source, self.hosts[0].target
        self.script = DRIVERS / ("plain_grid.py" if form == PLAIN else "grid.py")
        self.queries: Sequence[str] = PLAIN_QUERIES if form == PLAIN else QUERIES
        self.topic = f"grid-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": brokers})  # it calls the broker until it is gone
        admin.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result(PATIENCE_S)
        self.stack = ExitStack()

    @staticmethod
    def _made(folder: Path) -> Path:
        folder.mkdir()
        return folder

    @property
    def program(self) -> list[str]:
        """The command that `ha run` gets."""
        given = [str(self.script), self.source.as_uri(), self.target]
        if self.form != PLAIN:
            given += [self.job, self.brokers, self.topic]
        return [sys.executable if self.form == PYTHON else SUBMIT, *given]

    def run(self, host: int, *options: str, root: str = "") -> Driver:
        """Have a host contend with these options of `ha run`; ends with the test."""
        driver = self.hosts[host]
        driver.root = root or driver.root
        form = ["--spark"] if self.form == PLAIN else []
        listed = ["--endpoint", "jobmaster=here:1", "--contender", f"host-{host}", *form, *options]
        running: AbstractContextManager[object] = driver.running([*RUN, self.job, *listed, "--", *self.program])
        self.stack.enter_context(running)
        return driver

    def ha(self, *command: str, root: str = "", zookeeper: str = "") -> str:
        answer = CliRunner().invoke(app, [*command, "--files", root or self.root, "--zookeeper", zookeeper])
        assert answer.exit_code == 0, answer.output
        return answer.output

    def lines(self) -> dict[str, list[str]]:
        """The lines of each query, without what `workers` adds; of `letters` also the dead ones."""

        def read(files: Files, path: str) -> list[str]:
            try:
                entries = files.list(path)
            except NotFound:
                return []
            found = []
            for each in entries:
                inside = f"{path}/{each.name}"
                if each.is_directory:
                    found += read(files, inside) if not each.name.startswith(".") else []
                elif each.name.startswith("part-"):
                    found += files.read(inside, 10_000).decode().splitlines()
            return found

        with files_of(self.target) as do:
            found = {query: do(lambda files, query=query: read(files, query)) for query in self.queries}  # type: ignore[misc]
        if "topic" in found:
            found["topic"] = self._records()
        return {query: sorted(found[query]) for query in found}

    def _records(self) -> list[str]:
        """What a reader of committed transactions gets."""
        settings = {"bootstrap.servers": self.brokers, "group.id": self.topic, "isolation.level": "read_committed"}
        reader = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
        reader.assign([TopicPartition(self.topic, 0, 0)])
        found: list[str] = []
        try:
            while True:
                record = reader.poll(PATIENCE_S)
                assert record is not None, "Kafka does not answer"
                if (error := record.error()) is None:
                    found.append((record.value() or b"").decode())
                elif error.code() == KafkaError._PARTITION_EOF:  # of what is committed
                    return found
                else:
                    raise AssertionError(str(error))
        finally:
            reader.close()

    def has(self, count: int) -> None:
        """Wait until each sink has these lines, each once."""
        expected = sorted(f"line {number}" for number in range(count))

        def complete() -> bool:
            found = self.lines()
            found["workers"] = [line.partition(" by ")[0] for line in found["workers"]]
            dead = [line for line in found.get("letters", ()) if "dead" in line]
            if "letters" in found:
                found["letters"] = [line for line in found["letters"] if "dead" not in line]
            return all(found[each] == expected for each in found) and len(dead) == count * ("letters" in found)

        try:
            eventually(complete, LONG)
        except AssertionError as error:
            raise AssertionError(f"{self.lines()}") from error

    def committed(self, query: str) -> None:
        def noted(files: Files) -> bool:
            for each in files.list(self.job):
                with suppress(NotFound):
                    if LeaderDirectory.parse(each.name) and files.list(
                        f"{self.job}/{each.name}/{SPARK}/{query}/commits"
                    ):
                        return True
            return False

        with files_of(self.root) as do:
            eventually(lambda: do(noted), LONG)

    def epochs(self) -> set[str]:
        return {line.partition(" by ")[2] for line in self.lines()["workers"]}

    def feed(self, count: int) -> None:
        """Have this many lines in the input; each appears at once."""
        for number in range(count):
            if not (there := self.source / f"line-{number}.txt").exists():
                (staged := self.source.parent / f"staged-{number}").write_text(f"line {number}\n")
                staged.rename(there)

    def program_of(self, driver: Driver) -> int | None:
        """The process of the program."""
        assert driver.process is not None
        for pid in descendants(driver.process.pid):
            with suppress(OSError):  # it has ended
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                if words[1:2] == [str(self.script)]:
                    return pid
        return None

    def waits_warm(self, driver: Driver) -> bool:
        if (program := self.program_of(driver)) is None:
            return False
        words = Path(f"/proc/{program}/environ").read_bytes().decode().split("\0")
        (grant,) = (each.partition("=")[2] for each in words if each.startswith("HA_GRANT="))
        return Path(f"{grant}.awaited").exists()


def kill(driver: Driver) -> None:
    """Kill a host's sidecar with all that it has started."""
    assert driver.process is not None
    for pid in [driver.process.pid, *descendants(driver.process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
