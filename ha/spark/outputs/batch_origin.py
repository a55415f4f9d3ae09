"""Origins: finds the query and the batch of a data frame, by asking Spark where the program writes it.

``foreachBatch`` gives a program a frame and a number, and a number alone says nothing: see :mod:`ha.outputs.lines`. The
JVM knows the query that runs the batch; the query's checkpoint knows what the batch was planned to read.
"""

import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ha.hook.guarding import EVERY, knows_batches
from ha.hook.misses import QUERY_ID, same_rows
from ha.hook.query_rules import unguarded
from ha.leadership.fenced_rename import FencedRename
from ha.outputs.batch import Batch, offsets_of, planned
from ha.outputs.lines import Line
from ha.spark.session.private_names import batch_of, offsets_in_memory, running_queries
from leader.errors import InvalidSettings
from leader.layout.names import SPARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(slots=True)
class _Run:
    """One run of a query: from its start to its end."""

    execution: Any  # the JVM's
    line: Line  # the query
    checkpoint: str  # its path below the root of the renames
    every: bool = False  # whether it gives the output each of its batches
    written: int = -1  # newest batch that this run has written to the output
    parts: int = 0  # how often it has done so
    begun: "tuple[int, DataFrame] | None" = None  # what it began to write, and has not written
    told: bool = False  # whether the JVM says of its batches what their ``offsets/N`` say


_RUNS: dict[tuple[str, str], _Run] = {}  # by output and query: a program may open an output for each write
_LOCK = threading.Lock()  # two threads that begin at once are two parts


class Origins:
    """Of the batches of one output."""

    def __init__(self, renames: FencedRename, name: str, place: str) -> None:
        # place: what no other output of this process has.
        self._renames, self._name, self._place = renames, name, place

    def of(self, frame: "DataFrame", number: int) -> Batch:
        """Return which batch a frame is, by the number that Spark gave to it; a run costs one read."""
        # Raises `InvalidSettings` if the query has no name, one that cannot be that of a directory, or a checkpoint
        # elsewhere.
        query = self._query(frame)
        if not query:
            return Batch(number)
        with _LOCK:
            run = self._begun(frame, number, query)
        batch = replace(self._planned(frame, number, run), every=run.every)
        return replace(batch, part=run.parts) if number == run.written else batch

    def _planned(self, frame: "DataFrame", number: int, run: _Run) -> Batch:
        """Return what a run has planned a batch to be: by the JVM, once its word has stood the comparison."""
        said = offsets_in_memory(frame.sparkSession, run.execution, number)
        if run.told and said is not None:
            return planned(run.line, number, said)
        # The first batch of a run is looked up: its file says that the checkpoint is below the leader directory.
        found = planned(run.line, number, offsets_of(self._renames, run.checkpoint, number))
        with suppress(InvalidSettings):
            run.told = said is not None and planned(run.line, number, said) == found
        return found

    def _begun(self, frame: "DataFrame", number: int, query: str) -> _Run:
        """Note that a run of a query begins to write a batch, and return it."""
        run = _RUNS.get((self._place, query))
        if run is None or not run.execution.isActive():
            run = _RUNS[self._place, query] = self._run(frame, query)
        if (spark := batch_of(run.execution)) != number:
            raise InvalidSettings(
                f"Output {self._name!r} has got number {number} for batch {spark} of {run.line}: give it the number "
                "that Spark gives to the function of foreachBatch. By another one no repeated batch is known again."
            )
        begun = run.begun
        if begun and begun[0] == number and not same_rows(begun[1], frame):
            # They would have the number that the first ones get when Spark does the batch again.
            raise InvalidSettings(
                f"Output {self._name!r} does not take these rows of batch {number}: a write of other rows of the batch "
                "has failed, or goes on. Write one after the other, and let errors through: Spark does the batch again."
            )
        run.begun = number, frame
        return run

    def written(self, batch: Batch) -> None:
        """Take note that a run has written a batch, or has found that it was written before."""
        if (run := _RUNS.get((self._place, batch.line.id))) is not None:
            run.written, run.parts, run.begun = batch.number, batch.part + 1, None

    def _query(self, frame: "DataFrame") -> str:
        """Return the id of the query that runs the batch; empty if no query runs."""
        session = frame.sparkSession
        if query := session.sparkContext.getLocalProperty(QUERY_ID):
            return str(query)
        running = running_queries(session)
        if len(running) == 1:
            return next(iter(running))
        if running:
            raise InvalidSettings(
                f"A batch for output {self._name!r} is written on a thread of the program's own, and nothing says of "
                f"which of {len(running)} queries it is: write it where foreachBatch was called, or on a thread of "
                "pyspark.InheritableThread."
            )
        return ""

    def _run(self, frame: "DataFrame", query: str) -> _Run:
        execution = running_queries(frame.sparkSession).get(query)
        if execution is None:
            raise InvalidSettings(f"Query {query} has ended, so output {self._name!r} takes no batch of it.")
        renames, place = self._renames, urlsplit(execution.resolvedCheckpointRoot()).path.rstrip("/")
        checkpoints, name = f"{renames.root.rstrip('/')}/{renames.inside}/{SPARK}", place.rpartition("/")[2]
        if why := unguarded("", place, checkpoints):
            raise InvalidSettings(f"Output {self._name!r} takes no batch of query {execution.name()!r}: {why}")
        knows_batches(name)
        every = frame.sparkSession.sparkContext.getLocalProperty(EVERY) == "true"
        return _Run(execution, Line(query, name), f"{renames.inside}/{SPARK}/{name}", every)
