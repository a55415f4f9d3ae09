"""Data of the word count: its input, its output, and the comparison of both."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, TypeVar

from benchmarks.programs import meanwhile
from ha.drill.clients import text
from ha.spark.stored.ledger import Ledger
from leader.job.admin import JobAdmin
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
PATIENCE = 180.0  # Seconds for which a store may be disturbed, and in which the words of an hour are read
BACKLOG = 20  # Input files that wait: more than a driver counts while the next one is written. One file is one batch.
FULL = 0.2  # Seconds between two checks whether to add a file
MOST = 10_000_000  # Largest size of a result file in bytes


class Commit(NamedTuple):
    """One committed batch."""

    # of the leader directory that holds it: the present leader's, even if an earlier one committed the batch
    epoch: int
    batch: int  # its id
    at: float  # time of the commit in seconds since 1970; HDFS's clock is this host's


@dataclass(frozen=True, slots=True)
class Verdict:
    """Comparison of the output with the expected output."""

    words: int  # number of words in all files
    batches: int  # number of published batches
    lost: int  # words that were not counted
    doubled: int  # words that were counted twice, and rows that a batch has twice
    crooked: int  # rows that count fewer words than an earlier batch did, and missing batches
    gaps: int = 0  # in the ledger of the job


class Words:
    """Input, output and checkpoint of one job."""

    query = QUERY

    def __init__(self, files: str, job: str) -> None:
        root, _, jobs = files.rstrip("/").rpartition("/")
        self.job, self.root = job, files
        self.input, self.output = f"{root}/words/{job}/in", f"{root}/words/{job}/out"
        self._files = open_files(f"{root}/")
        self._jobs, self._home = jobs, f"words/{job}"
        self.fed = 0
        self._call(self._prepare)

    def program(self, interval: float, *, warm: bool) -> list[str]:
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
        self._call(lambda files: files.write(f"{self._home}/in/{STOP}", b""))

    def commits(self) -> list[Commit]:
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

        def feed() -> None:
            while self.fed - self.newest() < BACKLOG:
                self.feed(1)

        with meanwhile(feed, FULL):
            yield

    def judge(self) -> Verdict:
        """Compare the output with a separate count of all words in the input files."""
        found = judge(self._call(self._read_input, PATIENCE), self._call(self._read_output, PATIENCE))
        return replace(found, gaps=self._gaps())

    def _gaps(self) -> int:
        """Compare what Spark has committed with what the outputs have; no leader may change meanwhile."""
        with open_files(self.root) as files:
            return len(Ledger(JobAdmin(files, None, CALL_TIMEOUT).directory(self.job)).gaps())

    def close(self) -> None:
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
        return {batch: [(row["word"], row["count"]) for row in rows] for batch, rows in self.published(files).items()}

    def published(self, files: Files) -> dict[int, list[dict[str, Any]]]:
        out = f"{self._home}/out"
        return {
            int(batch.name.removeprefix("batch=")): [
                json.loads(line)
                for part in files.list(f"{out}/{batch.name}")
                for line in files.read(f"{out}/{batch.name}/{part.name}", MOST).decode().splitlines()
            ]
            for batch in files.list(out)
        }


def judge(texts: Iterable[str], batches: Mapping[int, Sequence[tuple[str, int]]]) -> Verdict:
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
