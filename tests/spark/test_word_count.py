"""The example as people run it: two sidecars, of which one is killed in the middle."""

import os
import random
import re
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ha
from ha.sandbox import Sandbox
from leader.answers import Answer
from leader.errors import LeaderError
from tests.spark.helpers import eventually, files_of, names, rows

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[2] / "examples" / "word_count.py"
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog,", "and", "It's", "FOX;", "that"]


class Run:
    """One job's directories and what was put there."""

    def __init__(self, root: str, zookeeper: str, logs: Path) -> None:
        name = uuid.uuid4().hex[:8]
        self.job, self.files, self.zookeeper, self.logs = f"words-{name}", root, zookeeper, logs
        self.input, self.output = f"{root}-demo/{name}/in", f"{root}-demo/{name}/out"
        self.expected: Counter[str] = Counter()
        self._random = random.Random(7)  # noqa: S311
        with files_of(self.input) as do:
            do(lambda files: files.make_root())

    def feed(self, count: int) -> None:
        """Add files, each complete at once."""
        with files_of(self.input) as do:
            for _ in range(count):
                text = " ".join(self._random.choices(WORDS, k=100))
                self.expected.update(word for word in re.split(r"[^a-z0-9']+", text.lower()) if word)
                do(lambda files, text=text: files.write(f"{uuid.uuid4().hex}.txt", text.encode()))  # type: ignore[misc]

    def stop(self) -> None:
        """Say that there is no more to come."""
        with files_of(self.input) as do:
            do(lambda files: files.write("_STOP", b""))

    def counted(self) -> Counter[str]:
        """The newest count of each word."""
        found: Counter[str] = Counter()
        for batch in rows(self.output).values():
            for row in batch:
                found[str(row["word"])] = max(found[str(row["word"])], int(str(row["count"])))
        return found

    @contextmanager
    def sidecar(self, name: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the example under ``ha run``."""
        command = [
            *(sys.executable, "-m", "ha.cli", "run", self.job),
            *("--endpoint", f"jobmaster={name}:1", "--contender", name, "--"),
            *(sys.executable, str(EXAMPLE), "--input", self.input, "--output", self.output, "--max-files", "1"),
        ]
        known = {"HA_FILES": self.files, "HA_ZOOKEEPER": self.zookeeper, "HA_SESSION_TIMEOUT": "4"}
        with (self.logs / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, env={**os.environ, **known}, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait(10)

    def leader(self, client: ha.Client) -> Answer | None:
        """Who leads, if anybody does."""
        try:
            return client.leader(self.job)
        except LeaderError:
            return None

    def batches(self) -> list[str]:
        """The batches that are published."""
        try:
            return names(self.output)
        except Exception:  # noqa: BLE001  # the driver makes the directory
            return []


@pytest.fixture
def words(sandbox: Sandbox, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path) -> Iterator[Run]:
    del sandbox
    run = Run(hdfs_uri, zookeeper_hosts, tmp_path)
    yield run
    for log in sorted(tmp_path.glob("*.log")):
        sys.stdout.write(f"--- {log.name}\n{log.read_text()[-3000:]}\n")


@pytest.mark.timeout(240)
def test_a_killed_sidecar_loses_and_repeats_no_word(words: Run) -> None:
    words.feed(4)
    with (
        words.sidecar("first") as first,
        ha.connect(files=words.files, zookeeper=words.zookeeper) as client,
    ):
        eventually(lambda: len(words.batches()) >= 2, 90)
        before = words.leader(client)
        assert before is not None
        with words.sidecar("second") as second:
            words.feed(4)
            first.send_signal(signal.SIGKILL)
            words.feed(2)
            after = eventually(
                lambda: found if (found := words.leader(client)) and found.epoch > before.epoch else None, 30
            )
            assert after is not None
            assert after.endpoints == {"jobmaster": "second:1"}
            words.stop()
            assert second.wait(120) == 0
            assert client.checkpoint(words.job).queries == {"word-count": len(words.batches()) - 1}
    assert words.counted() == words.expected
    batches = rows(words.output)
    assert sorted(batches) == sorted(f"batch={number}" for number in range(10))  # one file each: none left out or twice
    said = {(row["job_master"]["address"], row["job_master"]["epoch"]) for rows in batches.values() for row in rows}  # type: ignore[index]
    assert said == {("first:1", before.epoch), ("second:1", after.epoch)}


@pytest.mark.timeout(120)
def test_it_ends_when_nothing_comes(words: Run) -> None:
    words.feed(1)
    environment = {**os.environ, "HA_JOB": words.job, "HA_FILES": words.files, "HA_ZOOKEEPER": words.zookeeper}
    command = [sys.executable, str(EXAMPLE), "--input", words.input, "--output", words.output, "--stop-after-idle", "2"]
    # Without a sidecar it contends by itself.
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
    assert words.counted() == words.expected
