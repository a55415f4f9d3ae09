"""Benchmark of a job that moves to another HDFS: stopped with a savepoint there, and started from it.

A declared query that counts words, with state, runs under ``ha run`` on one HDFS and ZooKeeper. ``ha stop`` takes the
savepoint on another HDFS, and ``ha run --from`` starts the job there, with another ZooKeeper and another place for its
output. Input arrives all the time, in a directory outside of both, as in a topic. The counts of all words must be exact
on the other side.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from threading import Event, Thread

from benchmarks.context import Context, servers
from benchmarks.drawing import dots
from benchmarks.result import Picture, Result, Target
from benchmarks.spark.failover import environment
from benchmarks.spark.sidecars import NotSo
from ha.drill.clients import STOP, batches_done, read_counts, text, words
from ha.drill.sandbox_environment import Process, example
from ha.sandbox import Sandbox
from store.clock import now
from store.open import open_files

NAME = "spark_moving"
TITLE = "A job that moves to another HDFS by a savepoint"

OUTCOME = "totals"
BATCHES = 4
"""That each side completes, at least."""

FEED_S = 0.3
LOOK_S = 0.05
PATIENCE_S = 180.0


@dataclass(frozen=True, slots=True)
class Move:
    """One move.

    Attributes:
        stopped: seconds from the request until all queries had ended, and the savepoint was there.
        resumed: seconds from the start of ``ha run --from`` until the first batch.
        away: seconds from the request until the first batch on the other side.
        words: in the whole input.
        wrong: words that the other side has lost or counted twice.
    """

    stopped: float
    resumed: float
    away: float
    words: int
    wrong: int


class Side:
    """An HDFS with the job's output there."""

    def __init__(self, sandbox: Sandbox, folder: Path, number: int) -> None:
        """Prepare; ``number`` is that of the move."""
        self._variables = {**environment(sandbox), "PYSPARK_PYTHON": sys.executable}
        self.root = sandbox.environment()["HA_FILES"].rstrip("/").rpartition("/")[0]
        self.output = f"out-{number}"
        self._folder, self._number = folder, number
        self.files = open_files(f"{self.root}/")

    def run(self, source: Path, *options: str) -> Process:
        """Start the job."""
        given = ["--input", source.as_uri(), "--output", f"{self.root}/{self.output}", "--only", OUTCOME]
        program = [sys.executable, example("word_regions.py"), *given]
        command = [sys.executable, "-m", "ha.cli", "run", f"moves-{self._number}", *options, "--", *program]
        return Process(f"run-{self._number}-{len(options)}", command, self._variables, self._folder)

    def stop(self, where: str) -> None:
        """Have it stopped with a savepoint there."""
        asked = ["stop", f"moves-{self._number}", "--savepoint", where, "--timeout", f"{PATIENCE_S:g}"]
        command = [sys.executable, "-m", "ha.cli", *asked]
        done = subprocess.run(command, env=self._variables, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise NotSo(f"The job was not stopped: {done.stderr[-1000:]}")

    def batches(self) -> int:
        """Return how many batches were published."""
        return batches_done(self.files, f"{self.output}/{OUTCOME}")

    def wrong(self, expected: Counter[str]) -> int:
        """Return how many words the output has lost or counted twice."""
        counted = read_counts(self.files, f"{self.output}/{OUTCOME}")[0]
        return sum(abs(counted[word] - expected[word]) for word in counted | expected)


class Input:
    """A local directory that files are moved into."""

    def __init__(self, folder: Path) -> None:
        """Begin without a file."""
        self.folder, self.fed = folder, 0
        folder.mkdir(parents=True)

    def _put(self, name: str, data: str) -> None:
        staged = self.folder.parent / "staged"
        staged.write_text(data, encoding="utf-8")
        staged.rename(self.folder / name)

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Put file after file into it."""
        over = Event()

        def feed() -> None:
            while not over.wait(FEED_S):
                self._put(f"{self.fed:05d}.txt", text(self.fed))
                self.fed += 1

        feeder = Thread(target=feed, name="feeder")
        feeder.start()
        try:
            yield
        finally:
            over.set()
            feeder.join()

    def end(self) -> None:
        """Mark its end."""
        self._put(STOP, "")

    def expected(self) -> Counter[str]:
        """Return the count of every word."""
        return Counter(word for number in range(self.fed) for word in words(text(number)))


def run(context: Context) -> Result:
    """Run the benchmark.

    Raises:
        SandboxError: the servers did not start.
        NotSo: the job did not run, stop or start.
    """
    other = Sandbox(context.folder / "other")
    other.down(wipe=True)
    with servers(context) as sandbox:
        try:
            other.up(1, 1, context.say)
            moves = []
            for number in range(context.repeats(quick=1)):
                moves.append(_once(sandbox, other, context.folder, number))
                context.say(f"Move {number + 1} of {context.repeats(quick=1)}: {moves[-1]}")
            return summarise(moves)
        finally:
            other.down(wipe=True)


def _once(sandbox: Sandbox, other: Sandbox, folder: Path, number: int) -> Move:
    here, there = Side(sandbox, folder, number), Side(other, folder, number)
    source = Input(folder / f"input-{number}" / "in")
    with ExitStack() as stack:
        stack.callback(here.files.close)
        stack.callback(there.files.close)
        with source.feeding():
            running = here.run(source.folder)
            stack.callback(running.end)
            _until(lambda: here.batches() >= BATCHES, running, "batches")
            began = now()
            where = f"{there.root}/savepoints/{number}"
            here.stop(where)
            _until(lambda: not running.running, None, "the job's end")
            stopped = now()
            running = there.run(source.folder, "--from", where)
            stack.callback(running.end)
            _until(lambda: there.batches() > 0, running, "a batch on the other side")
            resumed = now()
            _until(lambda: there.batches() >= BATCHES, running, "batches on the other side")
        source.end()
        _until(lambda: not running.running, None, "the end of the input")
        expected = source.expected()
        return Move(stopped - began, resumed - stopped, resumed - began, expected.total(), there.wrong(expected))


def _until(reached: Callable[[], bool], process: Process | None, what: str) -> None:
    end = now() + PATIENCE_S
    while not reached():
        if now() > end or (process is not None and not process.running):
            raise NotSo(f"There was no sign of {what}: {process.log()[-2000:] if process is not None else ''}")
        Event().wait(LOOK_S)


def summarise(moves: Sequence[Move]) -> Result:
    """Return the result."""
    steps = {
        "asked to stop, until it has": [each.stopped for each in moves],
        "started from the savepoint, until its first batch": [each.resumed for each in moves],
        "both": [each.away for each in moves],
    }
    return Result(
        name=NAME,
        title=TITLE,
        columns=("what", "times", "median (s)", "fastest (s)", "slowest (s)"),
        rows=tuple((what, len(all_), median(all_), min(all_), max(all_)) for what, all_ in steps.items()),
        targets=(Target("words lost or counted twice in any move", 0, max(each.wrong for each in moves), "", True),),
        notes=(
            f"{sum(each.words for each in moves):,} words, counted by a query with state. Input arrives all the time.",
            "The savepoint and the output of the second half are on the other HDFS, which has a ZooKeeper of its own.",
            "The job starts cold: a Python, a JVM, a session. Everything is on one host.",
        ),
        pictures=(Picture("steps", TITLE, dots(TITLE, "s", steps)),),
        raw={"moves": [asdict(each) for each in moves]},
    )
