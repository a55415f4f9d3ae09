"""Rehearsal: a standby runs its own query over a sample, before it is granted the job.

It warms everything that is slow the first time: classes that the JVM loads and compiles, Spark's plan, its code
generation, the state store, the clients of HDFS, Python workers, ``foreachBatch`` and what that calls. So the query
must have the same plan.

The program leads a throw-away job, in a hidden directory beside the jobs. Nothing in the real job changes.
"""

import logging
import os
import threading
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, stop_when_event_set, wait_fixed
from tenacity.nap import sleep_using_event

from ha.config.sources import load
from ha.config.stores import Stores
from ha.leadership.dry_run_job import ALONE, is_dry_run
from ha.leadership.lead import lead
from ha.leadership.leadership import Leadership
from ha.spark.driver.lead_session import REHEARSES
from ha.spark.queries.query_events import publish_checkpoints
from ha.spark.session.frozen import defaults
from ha.spark.session.spark_session import configured
from leader.errors import InvalidSettings
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import NotSent, NotWritable, StoreError, Unknown
from store.files import Files

BATCHES = 3
"""The first batch loads classes, and the second finds them and reads a state that is not empty. Before the last, the
query is stopped and started again from its checkpoint, as in a successor."""

TIMEOUT_S = 120.0
LONGEST_S = 1800.0  # time limit of a rehearsal: the default and the highest
LEFT_OVER_MS = 3_600_000  # age at which the directory of a rehearsal is a leftover: twice the longest rehearsal

STOP_TIMEOUT_S = 30.0
"""Longest wait for the end of a rehearsal once the job is granted. The name of the query is taken until then, and the
real query needs what is being loaded anyway."""

CALL_TIMEOUT_S = 10.0
POLL_S = 0.05

SWITCH_S = 30.0  # for so long a call is repeated that has failed because no NameNode is active

AGAIN_S = 0.5

T = TypeVar("T")

DIRECTORY = ".rehearsal-"
"""No name of a job begins with a dot, and Spark skips such names when it lists the files of a directory above."""

Sample = bytes | Callable[[str], object] | None

_log = logging.getLogger("ha")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The stand-ins that a query gets for a rehearsal.

    Attributes:
        leadership: of a throw-away job; for checkpoint locations, outputs and whatever else the query needs of it.
        input: URI of a directory that receives the samples.
        output: URI of a directory that nothing reads.
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
    timeout: float = TIMEOUT_S,
    **settings: Any,
) -> bool:
    """Rehearse the query over a sample, in a warm standby before ``ha.lead``; return whether it completed all batches.

    It does NOT warm what the sample does not reach: the client of another source (Kafka, S3), a state of the real size,
    executors on other hosts that do not run yet, and Python workers after a minute without work. It does not test the
    query either: a failure is logged, and the standby stands by, only colder.

    It ends as soon as the job is granted. In a program that was started with a grant, or by a dry run, it does nothing.

    Args:
        spark: session of the program.
        start: starts the query and returns it. It uses the given input, output and leadership instead of the real ones,
            and changes nothing else.
        sample: sample of the input: the content of one file, or a function that puts something into the input
            directory, called with its URI once for each batch. None if ``start`` reads another input.
        batches: number of batches with rows after which the query is warm. Before the last of several, the query is
            stopped and started again.
        timeout: seconds, after which the rehearsal is stopped.
        settings: as for :func:`ha.connect`.

    Raises:
        InvalidSettings: a setting or an argument is wrong.
    """
    if batches < 1 or not 0 < timeout <= LONGEST_S:
        raise InvalidSettings(
            f"A rehearsal cannot have {batches} batches within {timeout:g} s: give it at least one batch, and "
            f"more than 0 and at most {LONGEST_S:g} s."
        )
    if _granted() or is_dry_run():
        return False
    rehearsing = _Rehearsing(spark, start, sample, batches, timeout, {**settings, **ALONE})
    rehearsing.begin()
    deadline = now() + timeout
    while not rehearsing.over.wait(POLL_S) and now() < deadline and not _granted():
        pass
    return rehearsing.end()


def _granted() -> bool:
    """Whether the sidecar has granted the job; False without a sidecar."""
    path = os.environ.get("HA_GRANT")
    return Path(path).exists() if path else bool(os.environ.get("HA_EPOCH"))


class _Rehearsing:
    """One rehearsal, on a thread of its own, because Spark and HDFS may take longer than it may last."""

    def __init__(
        self,
        spark: SparkSession,
        start: Callable[[Rehearsal], StreamingQuery],
        sample: Sample,
        batches: int,
        timeout: float,
        given: dict[str, Any],
    ) -> None:
        self._spark, self._start, self._sample = spark, start, sample
        self._batches, self._timeout = batches, timeout
        self._given, self._settings = given, load(given)
        self.over = threading.Event()
        self._stop = threading.Event()
        self._plays = threading.Event()
        self._done = 0
        self._thread = threading.Thread(target=self._run, name=REHEARSES, daemon=True)
        self._began = now()

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> bool:
        """Stop the rehearsal if it still runs; returns whether it was complete."""
        complete = self.over.is_set() and self._done >= self._batches
        self._stop.set()
        if not self.over.wait(STOP_TIMEOUT_S if self._plays.is_set() else 0):  # there is no wait without a query
            _log.warning("The rehearsal does not end; the program continues without it.")
        elif complete:
            _log.info("The query is warm after %.1f s.", now() - self._began)
        elif _granted():
            _log.info("The job was granted during the rehearsal.")
        elif self._done < self._batches:
            _log.warning(
                "The rehearsal completed %d of %d batches within %.1f s (of %.0f): the query is not warm.",
                *(self._done, self._batches, now() - self._began, self._timeout),
            )
        return complete

    def _run(self) -> None:
        try:
            stores = Stores(self._settings)
            with closing(stores):
                self._in_scratch(stores.files)
        except Exception as error:  # noqa: BLE001  # a colder standby is still a standby
            _log.warning("The rehearsal has failed, and the query is not warm: %s", str(error).partition("\n")[0])
        finally:
            self.over.set()

    def _in_scratch(self, files: BoundedFiles) -> None:
        name = f"{DIRECTORY}{uuid.uuid4().hex[:12]}"
        persistently(files, lambda driver: _prepare(driver, name), self._stop)
        try:
            where = files.at(name)
            # Under the real job's name, the program would share the leadership of its own sidecar.
            job = name.removeprefix(".")
            with (
                lead(job, timeout=self._timeout, **{**self._given, "files": where}) as leadership,
                publish_checkpoints(self._spark, leadership),
            ):
                self._play(files, Rehearsal(leadership, f"{where}/input", f"{where}/output"), f"{name}/input")
        finally:
            with suppress(StoreError):  # a later rehearsal deletes it
                files.call("rehearsal", lambda files: files.delete(name, recursive=True), CALL_TIMEOUT_S)

    def _play(self, files: BoundedFiles, rehearsal: Rehearsal, inside: str) -> None:
        self._plays.set()
        at_first = max(1, self._batches - 1)
        for numbers in (range(at_first), range(at_first, self._batches)):
            self._act(files, rehearsal, inside, numbers)

    def _act(self, files: BoundedFiles, rehearsal: Rehearsal, inside: str, numbers: range) -> None:
        """Start the query, and wait until it has completed these batches."""
        if self._stop.is_set() or not numbers:
            return
        with configured(self._spark, defaults(self._spark)):  # as a new query has them
            query = self._start(rehearsal)
        try:
            for number in numbers:
                if callable(self._sample):
                    self._sample(rehearsal.input)
                elif self._sample is not None:
                    self._put(files, inside, self._sample)
                while self._completed(query) <= number - numbers.start:
                    if self._stop.wait(POLL_S):
                        return
                self._done = number + 1
        finally:
            query.stop()

    def _put(self, files: BoundedFiles, inside: str, data: bytes) -> None:
        """Write the sample; each try has a name of its own, because the one before may have written half of it."""
        persistently(files, lambda driver: driver.write(f"{inside}/sample-{uuid.uuid4()}", data), self._stop)

    def _completed(self, query: StreamingQuery) -> int:
        """Count the batches with rows that are committed; Spark reports a batch after its commit."""
        if not query.isActive:
            raise RuntimeError(str(query.exception() or "the query has ended"))
        return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)


def persistently(files: BoundedFiles, operation: Callable[[Files], T], stop: threading.Event) -> T:
    """Call the file system, again and again while no NameNode is active; the operation may be executed twice."""
    retrying = Retrying(
        retry=retry_if_exception_type((NotWritable, NotSent, Unknown)),
        wait=wait_fixed(AGAIN_S),
        stop=stop_after_delay(SWITCH_S) | stop_when_event_set(stop),
        sleep=sleep_using_event(stop),
        reraise=True,
    )
    answer: T = retrying(files.call, "rehearsal", operation, CALL_TIMEOUT_S)
    return answer


def _prepare(files: Files, name: str) -> None:
    """Create the directories, and delete those that killed rehearsals have left."""
    files.make_root()
    for path in (name, f"{name}/input"):
        files.make_directory(path)
    there = {entry.name: entry.modified_ms for entry in files.list("") if entry.name.startswith(DIRECTORY)}
    for other, modified_ms in there.items():
        if other != name and modified_ms < there[name] - LEFT_OVER_MS:
            with suppress(StoreError):
                files.delete(other, recursive=True)
