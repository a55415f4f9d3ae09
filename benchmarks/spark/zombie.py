"""Benchmark of zombies: drivers that are frozen inside a batch, replaced, and woken up, with ``ha`` and without.

One driver runs a stateful query for each combination of state store and output format, all over the same lines, some
of which occur twice. When each query is inside batch 1, SIGSTOP freezes the driver and its sidecar. A warm standby
takes over and finishes all the work. Then the driver alone wakes up, without its sidecar, so it does not learn that it
leads no longer. It writes and publishes its batch, and only the fence can keep that out.

    python -m benchmarks spark_zombie
"""

import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pyarrow import parquet

from benchmarks.context import Context, servers
from benchmarks.result import Result, at_least, at_most
from examples.demo.participant import Participant
from ha.sandbox.polling import until
from store.errors import NotFound
from store.files import Files
from store.open import driver_of

TITLE = "A driver that wakes up inside a batch after it was replaced"

STORES = ("hdfs", "rocksdb")
FORMATS = ("parquet", "json", "text")
JOB = "zombie"
FILES, LINES = 4, 10  # Input files: each is a batch, and repeats two lines of the file before it
REPEATED = 2
PATIENCE_S = 240.0
LIMIT = 1 << 24


@dataclass(frozen=True, slots=True)
class Case:
    """One query."""

    store: str  # of its state
    format: str  # of its output
    fenced: bool = True  # whether it uses ``ha``
    # the zombie's next step for the batch when it was frozen: ``publishing`` or ``writing`` it
    asleep: str = "publishing"

    @property
    def name(self) -> str:
        return f"{'ha' if self.fenced else 'without'}-{self.store}-{self.format}-{self.asleep}"


@dataclass(frozen=True, slots=True)
class Found:
    """Outcome of one query."""

    case: Case  # the query
    expected: int  # number of rows in its output, if each occurs once
    seen: int  # number of rows in its output
    late: str  # fate of the zombie's own rows of its batch
    error: str  # error message with which the zombie's query ended


ALL = tuple(Case(store, each) for store in STORES for each in FORMATS)
EARLY = tuple(Case(store, "parquet", asleep="writing") for store in STORES)
UNFENCED = tuple(Case("rocksdb", each, fenced=False, asleep="writing") for each in FORMATS)


def run(context: Context) -> Result:
    """Run the benchmark; a quick run has two queries with ``ha`` and one without."""
    cases = (ALL[0], ALL[-1], UNFENCED[0]) if context.quick else (*ALL, *EARLY, *UNFENCED)
    with servers(context) as sandbox:
        found = trial(cases, sandbox.environment(), context.folder, context.say)
    doubled = [each.seen / each.expected for each in found if not each.case.fenced]
    wrong = sum(abs(each.seen - each.expected) for each in found if each.case.fenced)
    passed = sum(not each.late.endswith("refused") for each in found if each.case.fenced)
    return Result(
        ("with ha", "state store", "format", "asleep before", "rows expected", "rows seen", "the zombie's batch"),
        tuple(
            ("yes" if case.fenced else "no", case.store, case.format, case.asleep, each.expected, each.seen, each.late)
            for each in found
            for case in (each.case,)
        ),
        (
            at_most("with ha: rows lost or doubled, in all queries", 0.0, float(wrong), "rows"),
            at_most("with ha: zombies whose batch was not refused", 0.0, float(passed), "queries"),
            at_least("without ha: rows seen for each one expected", 1.01, min(doubled), "x"),
        ),
        (
            "The driver was frozen in `foreachBatch`; its successor did all the work; it woke up without its sidecar.",
            *sorted({f"A zombie's query ended with: {each.error}" for each in found if each.case.fenced})[:1],
        ),
        (),
        {"found": [asdict(each) for each in found]},
    )


def trial(cases: Sequence[Case], stores: dict[str, str], folder: Path, say: Callable[[str], None]) -> list[Found]:
    root, gate = f"{stores['HA_FILES']}-zombie-{os.getpid()}", folder / "gate"
    gate.mkdir(parents=True)
    direct = driver_of(root)()
    feed(direct)
    plan = folder / "plan.json"
    places = [{"target": f"{root}/out/{each.name}", "checkpoint": f"{root}/checkpoints/{each.name}"} for each in cases]
    queries = [{"name": each.name, **asdict(each), **place} for each, place in zip(cases, places, strict=True)]
    plan.write_text(json.dumps({"job": JOB, "input": f"{root}/in", "gate": str(gate), "cases": queries}))
    environment = {**stores, "HA_FILES": f"{root}/jobs", "HA_SESSION_TIMEOUT": "4", "HA_SNAPSHOTS": "off"}

    def participant(name: str, **more: str) -> Participant:
        driver = [sys.executable, "-m", "benchmarks.spark.zombie_driver", str(plan), name]
        return Participant(name, JOB, driver, {**environment, **more}, folder)

    def all_said(what: str) -> None:
        def obstacle() -> str | None:
            missing = [each.name for each in cases if not (gate / f"{what}-{each.name}").exists()]
            return f"{missing} have not" if missing else None

        until(obstacle, PATIENCE_S, f"Not all queries have said {what!r}")

    first = participant("first")
    running = [first]
    try:
        say("A driver runs until each query is inside a batch.")
        all_said("first-inside")
        second = participant("second", HA_STANDBY="warm")
        running.append(second)
        session = gate / "second-session"
        until(lambda: None if session.exists() else "it has none", PATIENCE_S, "No session of the standby")
        first.freeze()
        say("The driver is frozen; its successor does all the work.")
        if second.wait(PATIENCE_S) != 0:
            raise RuntimeError(f"The successor failed: see {second.log}.")
        (gate / "open").touch()
        first.wake_driver()
        say("The driver wakes up; its sidecar does not.")
        all_said("first-ended")
    finally:
        for each in running:
            each.end()
    expected = FILES * (LINES - REPEATED) + REPEATED

    def late(case: Case) -> list[str]:
        return [said(gate / f"first-{what}-{case.name}") for what in ("wrote", "ended")]

    return [Found(each, expected, rows(direct, f"out/{each.name}", each.format), *late(each)) for each in cases]


def feed(direct: Files) -> None:
    """Write the input files: each line is new only once."""
    direct.make_root()
    direct.make_directory("in")
    new = LINES - REPEATED
    for file in range(FILES):
        lines = [f"line {file * new + number}" for number in range(LINES)]
        direct.write(f"in/{file}.txt", "\n".join([*lines, ""]).encode())


def rows(direct: Files, path: str, source: str) -> int:
    """Count the rows that readers of a table see: hidden files do not count."""
    found = 0
    with suppress(NotFound):
        for entry in direct.list(path):
            if entry.name.startswith(("_", ".")):
                continue
            below = f"{path}/{entry.name}"
            if entry.is_directory:
                found += rows(direct, below, source)
                continue
            data = direct.read(below, LIMIT)
            found += parquet.read_metadata(io.BytesIO(data)).num_rows if source == "parquet" else data.count(b"\n")
    return found


def said(file: Path) -> str:
    """Return what a driver has written to a file; a query that is stopped before it writes leaves none."""
    return file.read_text() if file.exists() else "nothing"
