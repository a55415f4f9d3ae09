"""Publisher: gives each batch of a query to a journal once; the base of :class:`ha.spark.Output` and its siblings."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from ha.hook import misses
from ha.hook.guarding import EVERY, knows_batches
from ha.hook.misses import QUERY_ID
from ha.hook.query_rules import unguarded
from ha.leadership.dry_run_job import is_dry_run
from ha.leadership.fenced_rename import FencedRename
from ha.leadership.lead import supervised
from ha.leadership.leadership import Leadership
from ha.outputs.batch import Batch, planned
from ha.outputs.journal import Journal
from ha.outputs.lines import Line
from ha.program.output_report import REPORTS, path_beside
from ha.spark.outputs.row_writer import evaluate
from ha.spark.rewind.completing import settle
from ha.spark.session.private_names import running_queries
from leader.errors import InvalidSettings, NotLeader
from leader.layout.names import SPARK, check_word

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def report(leadership: Leadership) -> None:
    """Have the outputs of this process report to its sidecar, if it has one."""
    if supervised(leadership.job) and (path := os.environ.get("HA_QUERIES")):
        REPORTS.path = path_beside(Path(path))


@dataclass(slots=True)
class _Run:
    """One run of a query: from its start to its end."""

    execution: Any  # the JVM's
    line: Line  # the query
    checkpoint: str  # its path below the root of the renames
    every: bool = False  # whether it gives the output each of its batches
    written: int = -1  # newest batch that this run has written to the output
    parts: int = 0  # how often it has done so


class Origins:
    """Of the batches of one output."""

    def __init__(self, renames: FencedRename, name: str) -> None:
        self._renames, self._name = renames, name
        self._runs: dict[str, _Run] = {}

    def of(self, frame: "DataFrame", number: int) -> Batch:
        """Return which batch a frame is, by the number that Spark gave to it; it costs one read, of the checkpoint."""
        # Raises `InvalidSettings` if the query has no name, one that cannot be that of a directory, or a checkpoint
        # elsewhere.
        query = self._query(frame)
        if not query:
            return Batch(number)
        run = self._runs.get(query)
        if run is None or not run.execution.isActive():
            run = self._runs[query] = self._run(frame, query)
        batch = replace(planned(self._renames, run.checkpoint, run.line, number), every=run.every)
        return replace(batch, part=run.parts) if number == run.written else batch

    def written(self, batch: Batch) -> None:
        """Take note that a run has written a batch, or has found that it was written before."""
        if (run := self._runs.get(batch.line.id)) is not None:
            run.written, run.parts = batch.number, batch.part + 1

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


class Publisher(ABC):
    """One output of one query; give it to ``foreachBatch`` as it is."""

    def __init__(self, leadership: Leadership, name: str) -> None:
        """Open nothing yet: :meth:`_open` does, at the end of the construction."""
        self._name, self._leadership = check_word(name, "an output"), leadership

    def _open(self, journal: Journal) -> None:
        """Take the output over from an earlier driver."""
        self._journal = journal
        self._origins = Origins(journal.renames, self._name)
        settle(self._leadership)  # an earlier leader may have begun to put the query back
        report(self._leadership)
        try:
            self._settle()
        except BaseException:
            self.close()
            raise
        finally:
            REPORTS.show()

    def _settle(self) -> None:
        self._journal.settle()

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """Write a batch, as :meth:`write` does; for ``foreachBatch``."""
        self.write(batch, batch_id)

    @property
    def name(self) -> str:
        """Of the output."""
        return self._name

    def write(self, batch: "DataFrame", batch_id: int) -> bool:
        """Write a batch and publish it.

        Args:
            batch: its rows. They are evaluated even if it was published before: Spark's state needs it.
            batch_id: number that Spark gave to the batch. Markers in a table or topic have the journal's instead.

        Returns:
            Whether the batch was published now, and not before.

        Raises:
            Fenced: another leader has taken over. Whatever was decided, that leader publishes as well.
            ForeignBatch: the output has batches of another query, or of a later state of this one.
            InvalidSettings: a table is not safe any more, or its function or the batch does not fit; it says which.
            LeaderError: others have changed the table in a way that excludes the batch; Spark will do it again.
            NotLeader: the job is being stopped with a savepoint; a job that starts from it does this batch.
            OutputLost: the batch was decided, and cannot be published as things are; the message says why.
            StoreError: it is not known whether the batch was published; Spark will do it again.
        """
        with misses.noting(self._name, batch, batch_id):
            rows = self._shaped(batch)
            if is_dry_run():
                self._evaluated(rows)
                return True
            return self._once(rows, batch_id, lambda origin: self._publish(rows, origin))

    def _once(self, rows: "DataFrame", batch_id: int, publish: Callable[[Batch], bool]) -> bool:
        if self._leadership.settling.is_set():
            raise NotLeader(f"Batch {batch_id} of output {self._name!r} is not begun: the job is being stopped.")
        origin = self._origins.of(rows, batch_id)
        self._check(origin)
        if published := self._journal.admit(origin):
            published = publish(origin)
        else:
            self._journal.repeat(origin, self._evaluated(rows))
        self._origins.written(origin)
        return published

    def _shaped(self, batch: "DataFrame") -> "DataFrame":
        return batch

    def _evaluated(self, rows: "DataFrame") -> int | None:
        """Evaluate rows that are not published; return their number if it is compared with what was."""
        evaluate(rows)
        return None

    def _check(self, origin: Batch) -> None:  # noqa: B027  # most outputs take every batch
        """Refuse a batch that the output cannot have."""

    @abstractmethod
    def _publish(self, rows: "DataFrame", origin: Batch) -> bool: ...

    def close(self) -> None:
        """Let go of the file system."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
