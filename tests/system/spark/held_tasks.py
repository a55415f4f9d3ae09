"""Tasks that are held in the middle of their rows, and executors that are paused meanwhile and come back late.

What is in here runs in tasks, in the driver, and in the process in which Spark commits a batch of ``format("ha")``. All
of them are on this host, and tell each other by files. A driver tells an executor that was lost to stop, and its worker
kills it: so the late task ends in a race. Here it wins that race, for the worker and the driver's JVM are paused as
well, and an executor that stops reports its metrics first: it waits with that, as one of their files is a pipe.
"""

import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark import TaskContext

from ha.drill.kill import descendants
from ha.outputs.journal import Journal
from ha.outputs.moving import Moving
from tests.limits import HANGS_S
from tests.unit.ha.waiting import wait_until

LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {}/log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %m%n%ex
"""
"""Of executors: into a file. What they write to their worker waits while that is paused."""

FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
METRIC = "late.{}.executor.threadpool.activeTasks.csv"  # file with one of the metrics of an executor

HELD = 1  # partition whose first try is held: Spark opens its file with the first row

WRITTEN, SEALED, NOTED, DECIDED, PUBLISHED = WINDOWS = ("written", "sealed", "noted", "decided", "published")
"""When a late task ends: after Spark has written the batch, and after each step of the journal."""


@dataclass(frozen=True, slots=True)
class Plan:
    folder: str  # with the notes
    windows: tuple[str, ...]  # of the first batches, when their late task ends
    opened: bool  # whether it has written rows before it is held
    jvm: int = 0  # of the driver

    def settings(self) -> dict[str, str]:
        """Return Spark's settings for executors that log into this folder, and report their metrics there."""
        settings = Path(self.folder, "log4j2.properties")
        settings.write_text(LOGGING.format(self.folder))
        self.metrics.mkdir()
        csv = {"class": "org.apache.spark.metrics.sink.CsvSink", "directory": str(self.metrics), "unit": "days"}
        return {
            "spark.executor.extraJavaOptions": f"{FLAGS} -Dlog4j2.configurationFile={settings}",
            "spark.metrics.namespace": "late",
            **{f"spark.metrics.conf.executor.sink.csv.{name}": value for name, value in csv.items()},
        }

    @property
    def metrics(self) -> Path:
        return Path(self.folder, "metrics")

    def note(self, what: str, batch: int) -> Path:
        return Path(self.folder, f"{what}-{batch}")


# --- in tasks


def held(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on; the first try of one task stops on its way, and another try begins when its executor is paused."""
    task = TaskContext.get()
    assert task is not None
    batch = int(task.getLocalProperty("streaming.sql.batchId") or 0)
    rows = [each for each in batches if each.num_rows]
    if batch < len(plan.windows):
        if task.partitionId() != HELD:
            plan.note("other", batch).touch()
        elif task.attemptNumber() == 0:
            if plan.opened:  # so many that what stays in buffers on their way is less
                enough = 2 * len(rows) // 3
                yield from rows[:enough]
                rows = rows[enough:]
            executor = _parent(os.getppid())  # of the daemon of Python workers
            said = {"executor": executor, "worker": _parent(executor), "task": task.taskAttemptId()}
            _write(plan.note("held", batch), json.dumps(said))
            wait_until(plan.note("go", batch).exists, HANGS_S)
        else:
            wait_until(plan.note("paused", batch).exists, HANGS_S)
    yield from rows


def failing_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on, and fail in the first try."""
    yield from batches
    task = TaskContext.get()
    assert task is not None
    if task.attemptNumber() == 0:
        raise RuntimeError("the first try of a task fails")


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _write(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}")
    new.write_text(text)
    new.rename(path)


# --- in the driver


def pause_each(plan: Plan, has_rows: Callable[[], object]) -> threading.Thread:
    """Pause the executor of each held task, and its worker, which would kill it."""
    # has_rows: whether the held task has a file.

    def pause() -> None:
        for batch in range(len(plan.windows)):
            wait_until(plan.note("held", batch).exists, HANGS_S)
            # Before that it may be fetching its program from the executor that is to be paused, for two minutes.
            wait_until(plan.note("other", batch).exists, HANGS_S)
            if plan.opened:
                wait_until(has_rows, HANGS_S)
            said = json.loads(plan.note("held", batch).read_text())
            command = Path(f"/proc/{said['executor']}/cmdline").read_text().split("\0")
            os.mkfifo(plan.metrics / METRIC.format(command[command.index("--executor-id") + 1]))
            _signal(signal.SIGSTOP, said["worker"], *_executor(said))
            plan.note("paused", batch).touch()

    thread = threading.Thread(target=pause, name="pausing executors", daemon=True)
    thread.start()
    return thread


def _executor(said: dict[str, int]) -> list[int]:
    return [said["executor"], *descendants(said["executor"])]


def _signal(number: signal.Signals, *pids: int) -> None:
    for pid in pids:
        os.kill(pid, number)


def end_executors(notes: Path) -> None:
    """Kill the executors that were paused, if something has failed before they went on."""
    for note in notes.glob("held-*"):
        pid = json.loads(note.read_text())["executor"]
        with suppress(OSError):
            if str(notes) in Path(f"/proc/{pid}/cmdline").read_text():
                _signal(signal.SIGKILL, *_executor({"executor": pid}))


# --- where a batch is published


@contextmanager
def coming_late(plan: Plan) -> Iterator[None]:
    """Have the late task of each batch end when the journal has come to its window; what becomes of it is noted."""
    now: list[int] = []

    def reached(window: str) -> None:
        if now[-1] < len(plan.windows) and plan.windows[now[-1]] == window:
            _come(plan, now[-1])

    def publish(journal: Journal, attempt: str, batch: Any, *rest: Any) -> bool:
        now.append(batch.number)
        return real["publish"](journal, attempt, batch, *rest)  # type: ignore[no-any-return]

    def around(name: str, before: str = "", after: str = "") -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            reached(before)
            found = real[name](*arguments, **named)
            reached(after)
            return found

        return call

    real: dict[str, Callable[..., Any]] = {
        "publish": Journal.publish, "_sealed": Journal._sealed,
        "take_stock": Moving.take_stock, "move": Moving.move,
    }  # fmt: skip
    with ExitStack() as stack:
        stack.enter_context(patch.object(Journal, "publish", publish))
        stack.enter_context(patch.object(Journal, "_sealed", around("_sealed", WRITTEN, SEALED)))
        stack.enter_context(patch.object(Moving, "take_stock", around("take_stock", after=NOTED)))
        stack.enter_context(patch.object(Moving, "move", around("move", DECIDED, PUBLISHED)))
        yield


def _come(plan: Plan, batch: int) -> None:
    said = json.loads(plan.note("held", batch).read_text())
    log = Path(plan.folder, "log")
    ends = re.compile(
        rf"(Finished|Exception in|Executor killed|Executor interrupted and killed) task [^\n]*\(TID {said['task']}\)"
    )
    assert plan.note("paused", batch).exists()
    assert not ends.search(log.read_text()), "it has ended before"
    _signal(signal.SIGSTOP, plan.jvm)
    try:
        plan.note("go", batch).touch()
        _signal(signal.SIGCONT, *_executor(said))
        ended = wait_until(lambda: ends.findall(log.read_text()), HANGS_S, "the late task ends")
    finally:
        _signal(signal.SIGKILL, said["executor"])
        _signal(signal.SIGCONT, plan.jvm, said["worker"])
    _write(plan.note("late", batch), ended[0])
