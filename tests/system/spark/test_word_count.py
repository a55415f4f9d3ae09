"""The word count example, run as users run it: one of two sidecars is killed in the middle."""

import itertools
import json
import random
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import ha
from ha.sandbox import Sandbox
from leader.layout.names import LeaderDirectory
from store.files import Files
from tests.patience import DRIVER_S
from tests.system.spark.example import Example
from tests.system.spark.helpers import eventually, files_of, names, rows

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(900)]

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog,", "and", "It's", "FOX;", "that"]


class Run(Example):
    def __init__(self, root: str, zookeeper: str, logs: Path) -> None:
        super().__init__("word_count.py", root, zookeeper, logs, "--max-files", "1")
        self.expected: Counter[str] = Counter()
        self._random = random.Random(7)  # noqa: S311

    def feed(self, count: int) -> None:
        texts = [" ".join(self._random.choices(WORDS, k=100)) for _ in range(count)]
        for text in texts:
            self.expected.update(word for word in re.split(r"[^a-z0-9']+", text.lower()) if word)
        self.add(*texts)

    def counted(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for batch in rows(self.output).values():
            for row in batch:
                found[str(row["word"])] = max(found[str(row["word"])], int(str(row["count"])))
        return found

    def files_read(self) -> list[int]:
        """Return how many files each batch has read, from Spark's source log, which names each file once."""
        directory = max(name for name in names(f"{self.files}/{self.job}") if LeaderDirectory.parse(name))
        with files_of(f"{self.files}/{self.job}/{directory}/spark/word-count") as do:

            def read(files: Files) -> tuple[list[int], list[str]]:
                numbers = sorted(int(each.name) for each in files.list("offsets") if each.name.isdecimal())
                ends = [files.read(f"offsets/{number}", 100_000).decode().splitlines()[-1] for number in numbers]
                log = files.read("sources/0/9.compact", 1_000_000).decode().splitlines()[1:]  # Spark's, of ten entries
                return [json.loads(end)["logOffset"] for end in ends], [json.loads(line)["path"] for line in log]

            ends, paths = do(read)
        assert len(set(paths)) == len(paths) == ends[-1] + 1
        return [end - before for before, end in itertools.pairwise([-1, *ends])]


@pytest.fixture
def words(sandbox: Sandbox, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path) -> Iterator[Run]:
    del sandbox
    run = Run(hdfs_uri, zookeeper_hosts, tmp_path)
    yield run
    run.tell()


def epochs(rows: list[dict[str, object]]) -> set[int]:
    return {row["job_master"]["epoch"] for row in rows}  # type: ignore[index]


def test_a_killed_sidecar_loses_and_repeats_no_word(words: Run) -> None:
    words.feed(4)
    with words.sidecar("first") as first, ha.connect(files=words.files, zookeeper=words.zookeeper) as client:
        eventually(lambda: len(words.batches()) >= 2, DRIVER_S)
        before = words.leader(client)
        assert before is not None
        with words.sidecar("second") as second:
            words.feed(4)
            first.send_signal(signal.SIGKILL)
            words.feed(2)
            after = eventually(
                lambda: found if (found := words.leader(client)) and found.epoch > before.epoch else None
            )
            assert after is not None
            assert after.endpoints == {"jobmaster": "second:1"}
            words.stop()
            assert second.wait(DRIVER_S) == 0
            assert client.checkpoint(words.job).queries == {"word-count": len(words.batches()) - 1}
    assert words.counted() == words.expected
    batches = rows(words.output)
    # A driver can die after it has logged a file, before the batch that reads it: FileStreamSource's log comes before
    # that of offsets. The next driver's first batch reads that file, too.
    taken_over = min(int(name.partition("=")[2]) for name, rows in batches.items() if after.epoch in epochs(rows))
    read = words.files_read()
    assert sum(read) == 10, "every file, and each once"
    assert read[:taken_over] + read[taken_over + 1 :] == [1] * (len(read) - 1)
    assert read[taken_over] in {1, 2}
    assert sorted(batches) == sorted(f"batch={number}" for number in range(len(read))), "none is left out or twice"
    said = {(row["job_master"]["address"], row["job_master"]["epoch"]) for rows in batches.values() for row in rows}  # type: ignore[index]
    assert said == {("first:1", before.epoch), ("second:1", after.epoch)}


def test_it_ends_when_nothing_comes(words: Run) -> None:
    words.feed(1)
    environment, command = {**words.environment, "HA_JOB": words.job}, [*words.program, "--stop-after-idle", "2"]
    # Without a sidecar it contends by itself.
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DRIVER_S, check=False)
    assert ended.returncode == 0, ended.stderr
    assert words.counted() == words.expected
