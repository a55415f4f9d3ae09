"""Output report: what a driver counts of its outputs, in a small file beside its query report.

The driver replaces the file after each batch; the sidecar shows it (:mod:`ha.metrics.reports`). The driver does not
load Prometheus for it. Outputs of the format ``ha`` are published by processes of Spark: each has a file of its own.
"""

import glob
import logging
import threading
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ha.program import files
from ha.program.files import STAGED
from store.clock import now

OUTCOMES = CREATED, RENAMED, IGNORED, FAILED = "created", "renamed", "ignored", "failed"
"""The outcomes of files; ``created`` is always the sum of the others."""

STEPS = WRITE, RECORD, DECIDE, MOVE = "write", "record", "decide", "move"
"""The steps of a batch: Spark writes; its files are listed and kept; one rename decides; all are brought to their
places."""

BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Upper ends of the histogram's buckets, in seconds; one more has no end."""

MOST_OUTPUTS = 256  # outputs of one program in a report; each region of a regional output is one

_log = logging.getLogger("ha")


class Timing(msgspec.Struct):
    """How long a step took: how many times up to each bound, and all together."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0

    def add(self, other: "Timing") -> None:
        """Add what another run has counted."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds


class OutputReport(msgspec.Struct):
    """One output of one run of the program."""

    name: str  # of the output
    lost: int = 0  # files that are missing of the batch that cannot become complete; 0 if there is none
    files: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))  # by outcome
    steps: dict[str, Timing] = msgspec.field(default_factory=lambda: {step: Timing() for step in STEPS})  # by step
    pending: int | None = None  # partitions that are not committed; None without a partition commit
    committed: int = 0  # partitions that were committed, each as often as it was
    late: int = 0  # partitions of batches that were committed before their batch came
    late_files: int = 0  # files of them
    # the batch up to which all regions are complete; None of an output without regions
    complete_up_to: int | None = None
    apart: int = 0  # batches from there to the newest one of any region
    behind: dict[str, int] = {}  # how many regions have failed or are late, by their state
    dead_letters: int = 0  # records that could not be processed, and were published apart
    replayed: int = 0  # batches that were done again, and whose rows were dropped because they were published before
    differing: int = 0  # those of them whose rows were other ones by their number
    lacking: int | None = None  # batches that Spark has committed and the output lacks; None if they were not compared
    gone: int = 0  # files of batches that were looked at, and were gone by then though they had been published
    # entries of its fullest directory, as a share of what HDFS allows; None if they were not counted
    fullness: float | None = None

    def add(self, other: "OutputReport") -> None:
        """Add what another run, or another process of the same run, has counted."""
        for outcome in OUTCOMES:
            self.files[outcome] += other.files[outcome]
        for step in STEPS:
            self.steps[step].add(other.steps[step])
        self.pending = other.pending if self.pending is None else self.pending
        self.lacking = other.lacking if self.lacking is None else self.lacking
        self.fullness = other.fullness if self.fullness is None else self.fullness
        if other.complete_up_to is not None:
            self.complete_up_to, self.apart, self.behind = other.complete_up_to, other.apart, other.behind
        for field in ("lost", "committed", "late", "late_files", "dead_letters", "replayed", "differing", "gone"):
            setattr(self, field, getattr(self, field) + getattr(other, field))


def path_beside(queries: Path, folder: str = "") -> Path:
    """Return where the report of the outputs is; ``folder`` is of one that another process publishes."""
    return queries.with_name(f"{queries.name}.outputs{'-' if folder else ''}{folder}")


def paths_beside(queries: Path) -> list[Path]:
    """Return the reports of all outputs that are there."""
    found = queries.parent.glob(f"{glob.escape(queries.name)}.outputs*")
    return sorted(path for path in found if path.suffix != STAGED)[:MOST_OUTPUTS]


def read(path: Path) -> list[OutputReport]:
    """Return the outputs in a report; none if there is no report, or it is damaged."""
    found = files.read(path, list[OutputReport]) or []
    return [each for each in found[:MOST_OUTPUTS] if _whole(each)]


def _whole(report: OutputReport) -> bool:
    return (
        report.files.keys() == set(OUTCOMES)
        and report.steps.keys() == set(STEPS)
        and all(len(step.counts) == len(BOUNDS) + 1 for step in report.steps.values())
    )


class OutputReports:
    """The outputs of one process, and the file that shows them; safe to use from several threads."""

    def __init__(self) -> None:
        """Know no output yet, and write nothing."""
        self.path: Path | None = None
        self._outputs: dict[str, OutputReport] = {}
        self._lock = threading.Lock()
        self._failing = False

    def resume(self, path: Path) -> None:
        """Write to this file from now on, and add to what another process has counted in it."""
        with self._lock:
            self.path = path
            for each in read(path):
                self._outputs.setdefault(each.name, OutputReport(each.name)).add(each)

    def counted(self, name: str, created: int, renamed: int, ignored: int, failed: int) -> None:
        """Files of an output have come to their places, or they cannot; then its batch does not become complete."""
        with self._lock:
            output = self._of(name)
            for outcome, count in zip(OUTCOMES, (created, renamed, ignored, failed), strict=True):
                output.files[outcome] += count
            output.lost = failed

    def add(self, name: str, **counts: int) -> None:
        """Count what has happened to an output; the names are those of :class:`OutputReport`."""
        with self._lock:
            output = self._of(name)
            for field, count in counts.items():
                setattr(output, field, getattr(output, field) + count)

    def set(self, name: str, **values: float | dict[str, int]) -> None:
        """Say how an output is now, under the same names."""
        with self._lock:
            output = self._of(name)
            for field, value in values.items():
                setattr(output, field, value)

    @contextmanager
    def timed(self, name: str, step: str) -> Iterator[None]:
        """Time one step of a batch of an output; one that raises is not counted."""
        began = now()
        yield
        took = now() - began
        with self._lock:
            timing = self._of(name).steps[step]
            timing.counts[bisect_left(BOUNDS, took)] += 1
            timing.seconds += took

    def show(self) -> None:
        """Replace the file, if there is one."""
        if self.path is None:
            return
        with self._lock:
            try:
                files.write(self.path, list(self._outputs.values()))
                self._failing = False
            except OSError as error:
                if not self._failing:
                    _log.warning("The metrics of the outputs stand still: %s.", error.strerror)
                self._failing = True

    def all(self) -> list[OutputReport]:
        """Return the reports."""
        with self._lock:
            return list(self._outputs.values())

    def _of(self, name: str) -> OutputReport:
        if name not in self._outputs and len(self._outputs) >= MOST_OUTPUTS:
            return OutputReport(name)
        return self._outputs.setdefault(name, OutputReport(name))


REPORTS = OutputReports()  # those of this process
