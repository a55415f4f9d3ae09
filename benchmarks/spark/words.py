"""Data of the word count: its input, its output, and the comparison of both."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import NamedTuple, TypeVar

from ha.drill.clients import text
from leader.layout.names import SPARK, newest
from store.clock import now
from store.errors import NotFound, NotSent, NotWritable, Unknown
from store.files import Files
from store.open import open_files

T = TypeVar("T")

EXAMPLES = Path(__file__).parents[2] / "examples"

QUERY = "word-count"
STOP = "_STOP"
CALL_TIMEOUT = 15.0
PATIENCE = 180.0
"""Seconds for which a store may be disturbed, and in which the words of an hour are read."""

BACKLOG = 20
"""Input files that wait: more than a driver counts while the next one is written. One file is one batch."""

FULL = 0.2
"""Seconds between two checks whether to add a file."""

MOST = 10_000_000
"""Largest size of a result file in bytes."""


class Commit(NamedTuple):
    """One committed batch.

    Attributes:
        epoch: of the leader directory that holds it: the present leader's, even if an earlier one committed the batch.
        batch: its id.
        at: time of the commit in seconds since 1970; HDFS's clock is this host's.
    """

    epoch: int
    batch: int
    at: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Comparison of the output with the expected output.

    Attributes:
        words: number of words in all files.
        batches: number of published batches.
        lost: words that were not counted.
        doubled: words that were counted twice, and rows that a batch has twice.
        crooked: rows that count fewer words than an earlier batch did, and missing batches.
    """

    words: int
    batches: int
    lost: int
    doubled: int
    crooked: int


class Words:
    """Input, output and checkpoint of one job."""

    query = QUERY

    def __init__(self, files: str, job: str) -> None:
        """Create the directories.

        Args:
            files: URI of the directory of all jobs.
            job: the job's name.
        """
        root, _, jobs = files.rstrip("/").rpartition("/")
        self.job, self.root = job, files
        self.input, self.output = f"{root}/words/{job}/in", f"{root}/words/{job}/out"
        self._files = open_files(f"{root}/")
        self._jobs, self._home = jobs, f"words/{job}"
        self.fed = 0
        self._call(self._prepare)

    def program(self, interval: float, *, warm: bool) -> list[str]:
        """Return the program that counts the words, and its arguments.

        Args:
            interval: seconds between the begins of two batches.
            warm: whether it rehearses.
        """
        return [
            *(str(EXAMPLES / "word_count.py"), "--input", self.input, "--output", self.output),
            *("--max-files", "1", "--interval", f"{interval:g}", "--checkpoint-ids", *(["--warm"] if warm else [])),
        ]

    def feed(self, count: int) -> None:
        """Put a number of files into the input; each appears complete."""
        for _ in range(count):
            path, data = f"{self._home}/in/{self.fed:05d}.txt", text(self.fed).encode()
            self._call(lambda files, path=path, data=data: files.write(path, data))  # type: ignore[misc]
            self.fed += 1

    def stop(self) -> None:
        """Mark the end of the input."""
        self._call(lambda files: files.write(f"{self._home}/in/{STOP}", b""))

    def commits(self) -> list[Commit]:
        """Return the committed batches, in order."""
        try:
            return sorted(self._call(self._commits), key=lambda commit: commit.batch)
        except NotFound:  # a new leader has renamed it meanwhile, or it does not exist
            return []

    def newest(self) -> int:
        """Return the newest committed batch; -1 if there is none. Spark keeps the last hundred in its log."""
        return max((commit.batch for commit in self.commits()), default=-1)

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Put files into the input on another thread, so that some always wait."""
        over = threading.Event()

        def feed() -> None:
            while not over.is_set():
                if self.fed - self.newest() < BACKLOG:
                    self.feed(1)
                else:
                    over.wait(FULL)

        with ThreadPoolExecutor(1, "feeding") as pool:
            fed = pool.submit(feed)
            try:
                yield
            finally:
                over.set()
                fed.result()

    def published(self) -> set[int]:
        """Return the batches in the output."""
        try:
            entries = self._call(lambda files: files.list(f"{self._home}/out"))
        except NotFound:
            return set()
        return {int(entry.name.removeprefix("batch=")) for entry in entries}

    def judge(self) -> Verdict:
        """Compare the output with a separate count of all words in the input files."""
        return judge(self._call(self._read_input, PATIENCE), self._call(self._read_output, PATIENCE))

    def close(self) -> None:
        """Close the file system."""
        self._files.close()

    def _call(self, operation: Callable[[Files], T], seconds: float = CALL_TIMEOUT) -> T:
        """Call the store, again and again while it is being disturbed: every call here may be made twice."""
        end = now() + PATIENCE
        while True:
            try:
                return self._files.call("words", operation, seconds)
            except (Unknown, NotSent, NotWritable):
                if now() > end:
                    raise
                Event().wait(FULL)

    def _prepare(self, files: Files) -> None:
        for path in ("words", self._home, f"{self._home}/in"):
            files.make_directory(path)

    def _commits(self, files: Files) -> list[Commit]:
        directory = newest([entry.name for entry in files.list(f"{self._jobs}/{self.job}")])
        if directory is None:
            return []
        entries = files.list(f"{self._jobs}/{self.job}/{directory.name}/{SPARK}/{self.query}/commits")
        return [
            Commit(directory.epoch, int(entry.name), entry.modified_ms / 1000)
            for entry in entries
            if entry.name.isdecimal()
        ]

    def _read_input(self, files: Files) -> list[str]:
        entries = [entry.name for entry in files.list(f"{self._home}/in") if entry.name != STOP]
        return [files.read(f"{self._home}/in/{name}", MOST).decode() for name in entries]

    def _read_output(self, files: Files) -> dict[int, list[tuple[str, int]]]:
        found: dict[int, list[tuple[str, int]]] = {}
        for batch in files.list(f"{self._home}/out"):
            lines = [
                line
                for part in files.list(f"{self._home}/out/{batch.name}")
                for line in files.read(f"{self._home}/out/{batch.name}/{part.name}", MOST).decode().splitlines()
            ]
            rows = map(json.loads, lines)
            found[int(batch.name.removeprefix("batch="))] = [(row["word"], row["count"]) for row in rows]
        return found


def judge(texts: Iterable[str], batches: Mapping[int, Sequence[tuple[str, int]]]) -> Verdict:
    """Compare the output with the input.

    Args:
        texts: of all input files.
        batches: by id, each word of the batch with its count until then.
    """
    expected: Counter[str] = Counter()
    for each in texts:
        expected.update(each.split())
    counted: Counter[str] = Counter()
    twice = crooked = 0
    for batch in sorted(batches):
        seen: set[str] = set()
        for word, count in batches[batch]:
            twice += word in seen
            crooked += count <= counted[word] and word not in seen
            counted[word] = max(count, counted[word])
            seen.add(word)
    crooked += len(set(range(max(batches, default=-1) + 1)) - set(batches))
    lost, more = (expected - counted).total(), (counted - expected).total()
    return Verdict(expected.total(), len(batches), lost, twice + more, crooked)
