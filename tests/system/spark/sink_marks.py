"""A run of the format ``ha`` with a partition commit: processes of one driver commit, and one may go on as a zombie.

At any call of a commit its process may be paused. Then Spark has another process do the batch again, and perhaps the
next one. After that the first one goes on where it was, with the same leader, so no fence stops it.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from ha.outputs.journal import Journal
from ha.outputs.partition_commit import PARTITION_TIME, PartitionCommit
from ha.spark.sink import writer
from ha.spark.sink.leader_home import LeaderHome
from ha.spark.sink.options import SinkOptions
from ha.spark.sink.writer import HaWriter, Written
from leader.errors import ForeignBatch, LeaderError
from store.bounded import BoundedFiles
from store.errors import StoreError
from tests.system.spark.faulty_store import ROOT
from tests.system.spark.marker_reader import MarkerRun, begins, newest_done
from tests.system.spark.plain_reader import OUT, QUERY, QUERY_ID, STEP_S, Home, SimulatedBatch


class Paused:
    """The store as one process has it: before each call something else may happen."""

    def __init__(self, store: Any, before: Callable[[], object]) -> None:
        self._store, self._before, self.uri = store, before, store.uri

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def paused(*arguments: Any, **named: Any) -> Any:
            self._before()
            return call(*arguments, **named)

        return paused if name != "close" else call


class ProcessHome:
    def __init__(self, home: Home, before: Callable[[], object]) -> None:
        self.job, self.epoch, self.session_id, self.directory = home.job, home.epoch, home.session_id, home.directory
        self._home, self._before = home, before

    def open_files(self, uri: str) -> BoundedFiles:
        return BoundedFiles(lambda: cast("Any", Paused(self._home.store, self._before)), uri=uri, workers=1)


class MarkedSinkRun(MarkerRun):
    """One job whose only query writes with the format ``ha``, and commits partitions."""

    def __init__(self, seed: int, **arguments: Any) -> None:
        self.zombies = 0
        super().__init__(seed, **arguments)

    def commit(self) -> PartitionCommit:
        policy = ("success-file", self._called)
        return PartitionCommit(trigger=self.trigger, delay=STEP_S, policy=policy, time=begins)

    def _open(self, home: Home) -> "MarkedSink":
        return MarkedSink(self, home)


class MarkedSink:
    """A driver: Spark and two of its processes."""

    def __init__(self, run: MarkedSinkRun, home: Home) -> None:
        self.run = run
        self.options = SinkOptions(
            f"file://{ROOT}/{OUT}", "text", ("day",), "output", "none", f"spark/{QUERY}", run.commit()
        )
        self.processes: list[dict[Any, Journal]] = [{}, {}]
        self.homes = [ProcessHome(home, self._pause) for _ in self.processes]
        self.committing: int | None = None
        self.batch, self.nested = -1, False

    def write(self, frame: object, batch: int) -> None:
        """Do a batch; if its process was paused meanwhile, nobody asks how it has ended, and Spark does it again."""
        while True:
            zombies = self.run.zombies
            try:
                self._commit(cast("SimulatedBatch", frame), batch, self.run.choose.randrange(2))
            except ForeignBatch:  # others came further meanwhile, so Spark does not ask for this batch any more
                if newest_done(self.run.store.tree.nodes) <= batch:
                    raise
                break
            except (StoreError, LeaderError):
                if zombies == self.run.zombies:
                    raise
            self.run.marks.poll()
            if zombies == self.run.zombies:
                break
            frame = self.run._batch(batch)
        self.run.marks.poll()
        ahead = newest_done(self.run.store.tree.nodes) > batch  # by a process that came further: its batch comes yet
        if self.run.trigger == PARTITION_TIME and not ahead:
            self.run.marks.check_marked(batch)

    def close(self) -> None:
        for process in self.processes:
            for journal in process.values():
                journal.close()

    def _commit(self, frame: SimulatedBatch, batch: int, process: int) -> None:
        home = cast("LeaderHome", self.homes[process])
        tasks = HaWriter(home, self.options)
        frame.save(tasks._rows)
        messages: list[Any] = [
            Written(tasks._attempt, QUERY_ID, {partition: {name: len(content)}}, {partition: 1})
            for partition, files in frame.rows.items()
            for name, content in files.items()
        ]
        before = self.committing, self.batch, writer._journals
        self.committing, self.batch, writer._journals = process, batch, self.processes[process]
        try:
            HaWriter(home, self.options).commit(messages, batch)
        finally:
            self.committing, self.batch, writer._journals = before

    def _pause(self) -> None:
        """Have the other process do the batch, and perhaps the next, while the one that commits is paused."""
        run = self.run
        if self.nested or self.committing is None or not run.store.alive or run.choose.random() >= 0.02:
            return
        self.nested, other, batch = True, 1 - self.committing, self.batch
        run.zombies += 1
        with suppress(StoreError, LeaderError):
            for number in range(batch, min(batch + run.choose.choice((1, 2, 2)), run.batches)):
                self._commit(run._batch(number), number, other)
        self.nested = False
