"""A rehearsal: a standby runs its own query once, over a sample, before it is granted the job.

It warms what is slow the first time: classes that the JVM loads and compiles, Spark's plan, its code generation, the
state store, the clients of HDFS, Python workers, ``foreachBatch`` and what it calls. So it has to be the same plan.

The program leads a throw-away job for it, in a hidden directory beside the jobs; nothing of the real one is touched.
"""

import logging
import os
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ha.leadership import Leadership
from ha.leading import lead
from ha.settings import load
from ha.spark.driver import publish_checkpoints
from leader.errors import InvalidSettings
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import StoreError
from store.files import Files
from store.opening import open_files

BATCHES = 3
"""The first loads classes, the second one finds them, and reads a state that is not empty. Before the last one the
query is stopped and started again: so a successor begins, from a checkpoint."""

TIMEOUT = 120.0
LONGEST = 1800.0
"""Seconds."""

LEFT_OVER = 3_600_000
"""Milliseconds after which a directory of a rehearsal belongs to nobody: twice the longest one."""

STOP_WITHIN = 30.0
"""Seconds that the program waits for its rehearsal to end once it has been granted the job: a query's name is taken
until then, and what it is loading is needed anyway."""

CALL_TIMEOUT = 10.0
LOOK = 0.05

DIRECTORY = ".rehearsal-"
"""No job's name begins with a dot, and Spark passes over such names where it lists files of a directory above."""

Sample = bytes | Callable[[str], object] | None

_log = logging.getLogger("ha")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a query is rehearsed with.

    Attributes:
        leadership: of a throw-away job; for checkpoint locations, outputs and whatever the query needs of it.
        input: URI of a directory into which samples are put.
        output: URI of a directory that nobody reads.
    """

    leadership: Leadership
    input: str
    output: str


def warm_up(
    spark: SparkSession,
    start: Callable[[Rehearsal], StreamingQuery],
    sample: Sample = None,
    *,
    batches: int = BATCHES,
    timeout: float = TIMEOUT,
    **settings: Any,
) -> bool:
    """Run the program's own query over a sample; call this before ``ha.lead``, in a standby that is to be warm.

    It does NOT warm what the sample does not reach: another source's client (Kafka, S3), a state of the real size,
    executors on other hosts that are not running yet, and Python workers once they have been idle for a minute. It
    leaves alone whether the query is right: a failure is logged, and the standby stands by, only colder.

    It ends as soon as the job is granted, and does nothing in a program that was started with a grant.

    Args:
        spark: the program's session.
        start: starts the query with what it is given instead of the real input, output and leadership, and nothing
            else changed; returns the query.
        sample: of the input. The content of one file, or a function that puts something into the input directory,
            whose URI it is given, and is called once for each batch; None if ``start`` reads something else.
        batches: with rows, after which the query is warm; before the last of several it is stopped and started again.
        timeout: seconds; what has not ended then is stopped.
        settings: as for :func:`ha.connect`.

    Returns:
        Whether the query has completed all of these batches.

    Raises:
        InvalidSettings: a setting or an argument is wrong.
    """
    if batches < 1 or not 0 < timeout <= LONGEST:
        raise InvalidSettings(
            f"A rehearsal of {batches} batches within {timeout:g} s cannot be: there must be at least one batch, and "
            f"more than 0 and at most {LONGEST:g} s."
        )
    if _granted():
        return False
    rehearsing = _Rehearsing(spark, start, sample, batches, timeout, load(settings).files)
    rehearsing.begin()
    deadline = now() + timeout
    while not rehearsing.over.wait(LOOK) and now() < deadline and not _granted():
        pass
    return rehearsing.end()


def _granted() -> bool:
    """Whether the sidecar has granted the job; False if there is none."""
    path = os.environ.get("HA_GRANT")
    return Path(path).exists() if path else bool(os.environ.get("HA_EPOCH"))


class _Rehearsing:
    """One rehearsal, on a thread of its own: Spark and HDFS may keep it waiting for longer than it may last."""

    def __init__(
        self,
        spark: SparkSession,
        start: Callable[[Rehearsal], StreamingQuery],
        sample: Sample,
        batches: int,
        timeout: float,
        root: str,
    ) -> None:
        self._spark = spark
        self._start = start
        self._sample = sample
        self._batches = batches
        self._timeout = timeout
        self._root = root.rstrip("/")
        self.over = threading.Event()
        self._stop = threading.Event()
        self._plays = threading.Event()
        self._done = 0
        self._thread = threading.Thread(target=self._run, name="ha-rehearsal", daemon=True)
        self._began = now()

    def begin(self) -> None:
        """Start."""
        self._thread.start()

    def end(self) -> bool:
        """Stop it if it still runs; returns whether it had come to its end."""
        complete = self.over.is_set() and self._done >= self._batches
        self._stop.set()
        if not self.over.wait(STOP_WITHIN if self._plays.is_set() else 0):  # without a query nobody has to wait
            _log.warning("The rehearsal does not end; the program goes on without it.")
        elif complete:
            _log.info("The query is warm after %.1f s.", now() - self._began)
        elif _granted():
            _log.info("The job is granted in the middle of the rehearsal.")
        elif self._done < self._batches:
            _log.warning(
                "The rehearsal had %d of %d batches within %.1f s (of %.0f): the query is not warm.",
                *(self._done, self._batches, now() - self._began, self._timeout),
            )
        return complete

    def _run(self) -> None:
        try:
            with open_files(self._root) as files:
                self._in_scratch(files)
        except Exception as error:  # noqa: BLE001  # whatever it is: a standby that is colder is a standby
            _log.warning("The rehearsal has failed, and the query is not warm: %s", str(error).partition("\n")[0])
        finally:
            self.over.set()

    def _in_scratch(self, files: BoundedFiles) -> None:
        name = f"{DIRECTORY}{uuid.uuid4().hex[:12]}"
        files.call("rehearsal", lambda files: _prepare(files, name), CALL_TIMEOUT)
        try:
            where = f"{self._root}/{name}"
            # A name that no real job has: of that one the program's own sidecar would be asked.
            job = name.removeprefix(".")
            alone = lead(job, timeout=self._timeout, files=where, zookeeper="", history="", snapshots="off")
            with (
                alone as leadership,
                publish_checkpoints(self._spark, leadership),
            ):
                self._play(files, Rehearsal(leadership, f"{where}/input", f"{where}/output"), f"{name}/input")
        finally:
            with suppress(StoreError):  # a later rehearsal drops it
                files.call("rehearsal", lambda files: files.delete(name, recursive=True), CALL_TIMEOUT)

    def _play(self, files: BoundedFiles, rehearsal: Rehearsal, inside: str) -> None:
        self._plays.set()
        at_first = max(1, self._batches - 1)
        for numbers in (range(at_first), range(at_first, self._batches)):
            self._act(files, rehearsal, inside, numbers)

    def _act(self, files: BoundedFiles, rehearsal: Rehearsal, inside: str, numbers: range) -> None:
        """Start the query and have it complete these batches."""
        if self._stop.is_set() or not numbers:
            return
        query = self._start(rehearsal)
        try:
            for number in numbers:
                if callable(self._sample):
                    self._sample(rehearsal.input)
                elif self._sample is not None:
                    path, data = f"{inside}/sample-{number}", self._sample
                    files.call("rehearsal", lambda files, path=path, data=data: files.write(path, data), CALL_TIMEOUT)  # type: ignore[misc]
                while self._completed(query) <= number - numbers.start:
                    if self._stop.wait(LOOK):
                        return
                self._done = number + 1
        finally:
            query.stop()

    def _completed(self, query: StreamingQuery) -> int:
        """Batches that had rows, and are committed: Spark says so afterwards."""
        if not query.isActive:
            raise RuntimeError(str(query.exception() or "the query has ended"))
        return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)


def _prepare(files: Files, name: str) -> None:
    """Make the directories, and drop those that killed rehearsals have left."""
    files.make_root()
    for path in (name, f"{name}/input"):
        files.make_directory(path)
    there = {entry.name: entry.modified_ms for entry in files.list("") if entry.name.startswith(DIRECTORY)}
    for other, modified_ms in there.items():
        if other != name and modified_ms < there[name] - LEFT_OVER:
            with suppress(StoreError):
                files.delete(other, recursive=True)
