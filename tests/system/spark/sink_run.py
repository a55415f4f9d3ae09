"""A run of the format ``ha`` beside a plain reader: tasks that run twice or go on for ever, processes that take turns.

Spark is played: it takes one message from each task, commits in one of two processes, aborts when that raises, and does
a batch again whose commit it has forgotten. The writer, the journal and the moves are the real ones.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from ha.outputs.journal import Journal
from ha.outputs.layout import ROWS
from ha.spark.sink import writer
from ha.spark.sink.leader_home import LeaderHome
from ha.spark.sink.options import SinkOptions
from ha.spark.sink.writer import HaWriter, Written
from store.errors import StoreError
from tests.system.spark.faulty_store import ROOT
from tests.system.spark.plain_reader import OUT, QUERY, QUERY_ID, Home, Run, SimulatedBatch

OPTIONS = SinkOptions(f"file://{ROOT}/{OUT}", "text", (), "output", "none", f"spark/{QUERY}")


class SinkRun(Run):
    """One job whose only query writes with the format ``ha``."""

    def __init__(self, seed: int, **arguments: Any) -> None:
        super().__init__(seed, **arguments)
        self.strangers = random.Random(seed)  # noqa: S311  # a simulation
        self.met_strangers = self.replayed = self.aborted = 0
        self.zombies: list[str] = []
        """Paths of files that tasks still mean to create."""
        self.store.changed = self._changed
        self._within = False

    def _open(self, home: Home) -> "SinkOutput":
        return SinkOutput(self, home)

    def _changed(self) -> None:
        self.reader.poll()
        if self.zombies and self.strangers.random() < 0.3:
            self.create(self.zombies.pop(self.strangers.randrange(len(self.zombies))))
            self.reader.poll()

    def create(self, path: str) -> None:
        """Create a file that belongs to no batch, with the folders above it, as a task does."""
        self.met_strangers += 1
        tree = self.store.tree
        tree.make_parents(path.rpartition("/")[0])
        tree.nodes[path] = f"stranger {path}".encode()


class SinkOutput:
    """A driver: Spark and two of its processes."""

    def __init__(self, run: SinkRun, home: Home) -> None:
        self.run, self.home = run, cast("LeaderHome", home)
        self.processes: list[dict[Any, Journal]] = [{}, {}]

    def write(self, frame: object, batch: int) -> None:
        """Do a batch, and now and then once more, because Spark has not noted that it is committed."""
        self._write(cast("SimulatedBatch", frame), batch)
        if self.run.strangers.random() < 0.2:
            self.run.replayed += 1
            self._write(self.run._batch(batch), batch)

    def close(self) -> None:
        for process in self.processes:
            for journal in process.values():
                journal.close()

    def _write(self, frame: SimulatedBatch, batch: int) -> None:
        tasks = HaWriter(self.home, OPTIONS)
        frame.save(tasks._rows)
        messages = self._messages(tasks, frame)
        self._strangers(tasks, frame)
        try:
            self._in_a_process().commit(messages, batch)
        except StoreError:
            self.run.aborted += 1
            if not self.run.store.alive and self.run.strangers.random() < 0.7:
                self.run.store.alive = True  # only the process that committed has died
            lost = [None if self.run.strangers.random() < 0.3 else each for each in messages]
            with suppress(StoreError):
                self._in_a_process().abort(lost, batch)
            raise

    def _messages(self, tasks: HaWriter, frame: SimulatedBatch) -> list[Any]:
        """Each file is of another task; one task has no rows."""
        found = [
            Written(tasks._attempt, QUERY_ID, {partition: {name: len(content)}}, {partition: 1})
            for partition, files in frame.rows.items()
            for name, content in files.items()
        ]
        return [*found, Written(tasks._attempt, QUERY_ID, {}, {})]

    def _strangers(self, tasks: HaWriter, frame: SimulatedBatch) -> None:
        """Tasks that ran twice have left other files, and some have not created theirs yet."""
        choose, rows = self.run.strangers, tasks._rows.removeprefix(f"file://{ROOT}/")
        assert rows.endswith(f"/{ROWS}")
        for number in range(choose.choice((0, 0, 1, 3))):
            partition = choose.choice([*frame.rows, "day=9" if self.run.partitioned else ""])
            path = f"{rows}/{partition}/stranger-{number}".replace("//", "/")
            if choose.random() < 0.5:
                self.run.create(path)
            else:
                self.run.zombies.append(path)

    def _in_a_process(self) -> HaWriter:
        writer._journals = self.processes[self.run.strangers.random() < 0.3]
        return HaWriter(self.home, OPTIONS)


def found(kind: Callable[[int], Run], seeds: int = 400) -> bool:
    """Whether one of the runs finds something wrong, as it must with a fault that was planted."""
    for seed in range(seeds):
        run = kind(seed)
        try:
            run.go()
        except AssertionError:
            return True
        if run.reader.wrong or run.lost is not None:
            return True
    return False
