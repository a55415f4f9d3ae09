"""Benchmark of a merge: 6,000 small files of an output become files of a hundred; readers beside.

The batches are published through the journal of an output, without Spark: a batch is one small file of JSON lines, or
of Parquet, in each partition. Then ``ha output merge`` runs, while readers list a partition and read all of it, again
and again. A reader counts each row that it sees twice, and each that it misses; if a file vanishes between its list and
its read it begins anew, which is counted, too. Whether a byte was written anew the NameNode tells: who writes asks it
for a block first. Of Parquet, the footers are written.
"""

import hashlib
import io
import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq

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
WRITERS = 8
EACH = 100
READERS = 2
READ_TIMEOUT_S = 60.0
MOST_BYTES = 1 << 24
HA = (sys.executable, "-m", "ha.cli")


@dataclass(frozen=True)
class Kind:
    """A format of files.

    Attributes:
        name: of the format, and of the job.
        rows: in each file.
        written: makes the file of a batch.
        read: returns the rows of a file.
    """

    name: str
    rows: int
    written: Callable[[int, int], bytes]
    read: Callable[[bytes], list[str]]


def _json(batch: int, rows: int) -> bytes:
    return "".join(f'{{"batch": {batch}, "row": {each}, "text": "{"x" * 60}"}}\n' for each in range(rows)).encode()


def _parquet(batch: int, rows: int) -> bytes:
    out = io.BytesIO()
    texts = [hashlib.sha256(f"{batch} {each}".encode()).hexdigest() for each in range(rows)]
    pq.write_table(pa.table({"batch": [batch] * rows, "row": list(range(rows)), "text": texts}), out)
    return out.getvalue()


def _rows_of_parquet(data: bytes) -> list[str]:
    return [f"{each}" for each in pq.read_table(io.BytesIO(data), columns=["text"]).column("text").to_pylist()]


KINDS = (
    Kind("json", 5, _json, lambda data: data.decode().splitlines()),
    Kind("parquet", 200, _parquet, _rows_of_parquet),
)


@dataclass(frozen=True)
class Merged:
    """The measurements of one format."""

    before: list[int]
    after: list[int]
    merges: list[dict[str, object]]
    readers: "list[Reader]"
    blocks: int
    published_s: float
    merged_s: float

    @property
    def written(self) -> int:
        """Bytes that are new."""
        return sum(self.after) - sum(self.before)

    @property
    def wrong(self) -> int:
        """Rows that readers have seen twice or missed."""
        return sum(each.twice + each.missing for each in self.readers)


class Reader(threading.Thread):
    """Lists a partition, reads its files, and compares the rows with those that were published."""

    def __init__(self, target: str, first: int, kind: Kind, rows: int) -> None:
        super().__init__(name=f"reader-{first}", daemon=True)
        self._target, self._next, self._kind, self._rows = target, first, kind, rows
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
            found = [each for each in files.list(folder) if each.size and not layout.hidden(each.name)]
            rows = [row for each in found for row in self._kind.read(files.read(f"{folder}/{each.name}", MOST_BYTES))]
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
        merged = {
            kind.name: _merged(context, kind, batches, found["HA_FILES"], found["HA_SANDBOX_WEBHDFS"]) for kind in KINDS
        }
    return _result(batches, merged)


def _merged(context: Context, kind: Kind, batches: int, root: str, web: str) -> Merged:
    job = f"{NAME}-{kind.name}"
    target = f"{root}-out/{job}"
    with ha.lead(job, {}, timeout=30.0, files=root, zookeeper="") as leadership:
        context.say(f"{batches} batches of {kind.name} are published.")
        begun = perf_counter()
        journal = Journal(leadership, target, NAME, flat=True)
        _publish(journal, kind, batches)
        published_s = perf_counter() - begun
        before, calls = _files(target), namenode(web)
        context.say(f"{READERS} readers read them, and they are merged.")
        with _readers(target, kind, batches * kind.rows) as readers:
            command = ["output", "merge", job, "--files", root, "--older-than", "1 ms", "--json"]
            begun = perf_counter()
            ran = subprocess.run([*HA, *command], stdout=subprocess.PIPE, check=True)
            merged_s = perf_counter() - begun
        calls = namenode(web) - calls
        after = _files(target)
        command = ["output", "verify", job, "--files", root, "--json"]
        subprocess.run([*HA, *command], stdout=subprocess.PIPE, check=True)
        journal.close()
    return Merged(before, after, json.loads(ran.stdout), readers, calls["addBlock"], published_s, merged_s)


def _publish(journal: Journal, kind: Kind, batches: int) -> None:
    """Publish the batches one after the other, as a query does; what Spark would write is written ahead."""
    staged = driver_of(journal.staged)()

    def write(batch: int) -> str:
        attempt = uuid.uuid4().hex
        rows = f"{attempt}/{layout.ROWS}"
        staged.make_directory(attempt)
        staged.make_directory(rows)
        data = kind.written(batch, kind.rows)
        for part in range(PARTITIONS):
            staged.make_directory(f"{rows}/part={part}")
            staged.write(f"{rows}/part={part}/part-0-{attempt}-c000.{kind.name}", data)
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
        found = [each for part in range(PARTITIONS) for each in files.list(f"part={part}")]
        return [each.size for each in found if not layout.hidden(each.name)]
    finally:
        files.close()


@contextmanager
def _readers(target: str, kind: Kind, rows: int) -> Iterator[list[Reader]]:
    readers = [Reader(target, each * PARTITIONS // READERS, kind, rows) for each in range(READERS)]
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


def _result(batches: int, merged: dict[str, Merged]) -> Result:
    def row(said: str, figure: Callable[[Merged], float]) -> tuple[str | float | int, ...]:
        return (said, *(figure(each) for each in merged.values()))

    text, parquet = merged.values()
    return Result(
        name=NAME,
        title=TITLE,
        columns=("", "JSON lines", "Parquet"),
        rows=(
            row("files before", lambda each: len(each.before)),
            row("files after", lambda each: len(each.after)),
            row("bytes before", lambda each: sum(each.before)),
            row("bytes written by the merge", lambda each: each.written),
            row("blocks written by the merge", lambda each: each.blocks),
            row("merges", lambda each: len(each.merges)),
            row("time of the merge [s]", lambda each: round(each.merged_s, 1)),
            row(
                "time of a merge of a hundred [ms]",
                lambda each: round(1000 * each.merged_s / max(1, len(each.merges))),
            ),
            row("looks of readers at a partition", lambda each: sum(one.looks for one in each.readers)),
            row("looks begun anew, because a file was merged", lambda each: sum(one.anew for one in each.readers)),
            row("rows seen twice or missed", lambda each: each.wrong),
        ),
        targets=(
            *(
                Target(
                    f"files of {name} before, for each file after",
                    EACH,
                    len(each.before) / len(each.after),
                    "x",
                    at_most=False,
                )
                for name, each in merged.items()
            ),
            Target("blocks written by the merge of JSON lines", 0, text.blocks, "", at_most=True),
            Target(
                "bytes written by the merge of Parquet, for each byte of the files",
                1.05,
                parquet.written / sum(parquet.before),
                "x",
                at_most=True,
            ),
            Target("rows that readers see twice or miss", 0, text.wrong + parquet.wrong, "", at_most=True),
        ),
        notes=(
            f"{batches} batches, {PARTITIONS} partitions: in {text.published_s:.0f} and {parquet.published_s:.0f} s.",
            f"{READERS} readers in one process, and `ha output merge` in another one.",
        ),
        pictures=(),
        raw={name: {"files": len(each.before), "merges": each.merges} for name, each in merged.items()},
    )
