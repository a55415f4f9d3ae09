"""Benchmark of a merge: 6,000 small files of an output become files of a hundred; readers beside.

The batches are published through the journal of an output, without Spark: a batch is one small file of JSON lines in
each partition. Then ``ha output merge`` runs, while readers list a partition and read all of it, again and
again. A reader counts each row that it sees twice, and each that it misses; if a file vanishes between its list and its
read it begins anew, which is counted, too. Whether a byte was written anew the NameNode tells: who writes asks it for a
block first.
"""

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter

import ha
from benchmarks.context import Context, servers
from benchmarks.result import Result, Target
from benchmarks.thousand_jobs.counters import namenode
from ha.outputs import layout
from ha.outputs.journal import Journal
from store.errors import NotFound
from store.files import Files
from store.open import driver_of

NAME = "merging"
TITLE = "Small files of an output are merged, while readers read"

JOB = "merging"
BATCHES, QUICK_BATCHES = 300, 100
PARTITIONS = 20
ROWS = 5
WRITERS = 8
EACH = 100
READERS = 2
READ_TIMEOUT_S = 60.0
HA = (sys.executable, "-m", "ha.cli")


class Reader(threading.Thread):
    """Lists a partition, reads its files, and compares the rows with those that were published."""

    def __init__(self, target: str, first: int, rows: int) -> None:
        super().__init__(name=f"reader-{first}", daemon=True)
        self._target, self._next, self._rows = target, first, rows
        self.over = threading.Event()
        self.looks = self.anew = self.twice = self.missing = 0
        self.error: Exception | None = None

    def run(self) -> None:
        """Read until it is over."""
        files = driver_of(self._target)()
        try:
            while not self.over.is_set():
                self._look(files, self._next)
                self._next = (self._next + 1) % PARTITIONS
        except Exception as error:  # noqa: BLE001  # told by the benchmark
            self.error = error
        finally:
            files.close()

    def _look(self, files: Files, partition: int) -> None:
        folder = f"part={partition}"
        try:
            found = [each for each in files.list(folder) if each.size]
            rows = [row for each in found for row in files.read(f"{folder}/{each.name}", 1 << 20).splitlines()]
        except NotFound:
            self.anew += 1
            return
        self.looks += 1
        self.twice += len(rows) - len(set(rows))
        self.missing += self._rows - len(set(rows))


def run(context: Context) -> Result:
    """Run the benchmark.

    Raises:
        RuntimeError: a reader or the merge failed.
        SandboxError: the servers did not start.
    """
    batches = QUICK_BATCHES if context.quick else BATCHES
    with servers(context) as sandbox:
        found = sandbox.environment()
        root, web = found["HA_FILES"], found["HA_SANDBOX_WEBHDFS"]
        target = f"{root}-out/{NAME}"
        with ha.lead(JOB, {}, timeout=30.0, files=root, zookeeper="") as leadership:
            context.say(f"{batches} batches are published.")
            begun = perf_counter()
            journal = Journal(leadership, target, NAME, flat=True)
            _publish(journal, batches)
            published_s = perf_counter() - begun
            before, calls = _files(target), namenode(web)
            context.say(f"{READERS} readers read them, and they are merged.")
            with _readers(target, batches * ROWS) as readers:
                command = ["output", "merge", JOB, "--files", root, "--older-than", "1 ms", "--json"]
                begun = perf_counter()
                ran = subprocess.run([*HA, *command], stdout=subprocess.PIPE, check=True)
                merged_s = perf_counter() - begun
            calls = namenode(web) - calls
            after = _files(target)
            command = ["output", "verify", JOB, "--files", root, "--json"]
            subprocess.run([*HA, *command], stdout=subprocess.PIPE, check=True)
            journal.close()
    merges = json.loads(ran.stdout)
    return _result(batches, before, after, merges, readers, calls["addBlock"], published_s, merged_s)


def _publish(journal: Journal, batches: int) -> None:
    """Publish the batches one after the other, as a query does; what Spark would write is written ahead."""
    staged = driver_of(journal.staged)()

    def write(batch: int) -> str:
        attempt = uuid.uuid4().hex
        rows = f"{attempt}/{layout.ROWS}"
        staged.make_directory(attempt)
        staged.make_directory(rows)
        for part in range(PARTITIONS):
            text = "".join(f'{{"batch": {batch}, "row": {each}, "text": "{"x" * 60}"}}\n' for each in range(ROWS))
            staged.make_directory(f"{rows}/part={part}")
            staged.write(f"{rows}/part={part}/part-0-{attempt}-c000.json", text.encode())
        return attempt

    journal.settle()
    with ThreadPoolExecutor(WRITERS) as threads:
        for batch, attempt in enumerate(threads.map(write, range(batches))):
            journal.publish(attempt, batch)
    staged.close()


def _files(target: str) -> list[int]:
    """Return the bytes of each file."""
    files = driver_of(target)()
    try:
        return [each.size for part in range(PARTITIONS) for each in files.list(f"part={part}")]
    finally:
        files.close()


@contextmanager
def _readers(target: str, rows: int) -> Iterator[list[Reader]]:
    readers = [Reader(target, each * PARTITIONS // READERS, rows) for each in range(READERS)]
    for each in readers:
        each.start()
    try:
        yield readers
    finally:
        for each in readers:
            each.over.set()
            each.join(READ_TIMEOUT_S)
    if failed := [each.error for each in readers if each.error or each.is_alive()]:
        raise RuntimeError(f"A reader failed: {failed[0]}")


def _result(
    batches: int,
    before: list[int],
    after: list[int],
    merges: list[dict[str, object]],
    readers: list[Reader],
    blocks: int,
    published_s: float,
    merged_s: float,
) -> Result:
    twice, missing = sum(each.twice for each in readers), sum(each.missing for each in readers)
    looks, anew = sum(each.looks for each in readers), sum(each.anew for each in readers)
    rows: tuple[tuple[str | float | int, ...], ...] = (
        ("files before", len(before)),
        ("files after", len(after)),
        ("bytes before", sum(before)),
        ("bytes after", sum(after)),
        ("blocks written by the merge", blocks),
        ("merges", len(merges)),
        ("time of the merge [s]", round(merged_s, 1)),
        ("time of a merge of a hundred [ms]", round(1000 * merged_s / max(1, len(merges)))),
        ("looks of readers at a partition", looks),
        ("looks begun anew, because a file was merged", anew),
        ("rows seen twice", twice),
        ("rows missed", missing),
    )
    return Result(
        name=NAME,
        title=TITLE,
        columns=("", "measured"),
        rows=rows,
        targets=(
            Target("files before, for each file after", EACH, len(before) / len(after), "x", at_most=False),
            Target("blocks written by the merge", 0, blocks, "", at_most=True),
            Target("rows that readers see twice or miss", 0, twice + missing, "", at_most=True),
        ),
        notes=(
            f"{batches} batches with {PARTITIONS} partitions of {ROWS} rows, published in {published_s:.0f} s.",
            f"{READERS} readers in one process, and `ha output merge` in another one.",
        ),
        pictures=(),
        raw={"before": len(before), "after": len(after), "merges": merges},
    )
