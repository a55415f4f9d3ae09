"""HA provider: what keeps the job of a drill available.

The distribution has one, this project's sidecar. A source tree adds the baselines, which people use today, to
:data:`PROVIDERS`: ``python -m benchmarks.drills`` runs the same drills for them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MAX_FILES = 20
"""Files in one batch: what has piled up during a fault is counted in several batches."""


@dataclass(frozen=True)
class Program:
    """A program that the jobs of drills run.

    Attributes:
        file: its name.
        outcomes: folders of its output, each of which counts every word; empty: the output itself does.
        breakable: whether a drill can tell it what is to go wrong, in :attr:`DrillJob.faults`.
        options: further arguments.
    """

    file: str
    outcomes: tuple[str, ...] = ()
    breakable: bool = False
    options: tuple[str, ...] = ()


WORD_COUNT = Program("word_count.py")
WORD_REGIONS = Program("word_regions.py", ("counts", "totals"), breakable=True)
STEADY_WORDS = Program("word_regions.py", ("counts", "totals"), options=("--steady",))
"""One of its queries has state and no ``foreachBatch``: it can go on without the program."""


@dataclass(frozen=True)
class DrillJob:
    """The job of a drill, as its contenders are told.

    Attributes:
        name: unique in its environment.
        driver: path of its program.
        directory: URI of the directory of the job's files.
        interval: seconds between the beginnings of two batches; 0: a batch begins as soon as there is input.
        dwell: seconds that a batch takes at least.
        program: what is run.
        faults: directory in which a breakable program finds what is to go wrong, as members see it.
        source: URI of the directory that the job reads, if it is not below its own.
    """

    name: str
    driver: str
    directory: str
    interval: float
    dwell: float
    program: Program = WORD_COUNT
    faults: str = ""
    source: str = ""

    @property
    def input(self) -> str:
        """URI of the directory that the job reads."""
        return self.source or f"{self.directory}/input"

    @property
    def output(self) -> str:
        """URI of the directory that the job writes."""
        return f"{self.directory}/output"

    @property
    def outcomes(self) -> list[str]:
        """URIs of the directories that count every word."""
        return [f"{self.output}/{each}" for each in self.program.outcomes] or [self.output]

    def arguments(self) -> list[str]:
        """The options of a driver."""
        given: dict[str, str | float] = {"input": self.input, "output": self.output}
        given |= {"interval": self.interval, "max-files": MAX_FILES}
        if self.dwell:
            given["dwell"] = self.dwell
        if self.program.breakable:
            given["faults"] = self.faults
        return [*(part for name, value in given.items() for part in (f"--{name}", str(value))), *self.program.options]


Contend = Callable[[DrillJob, str], list[str]]
"""Returns the command of the contender of that name."""


@dataclass(frozen=True)
class HaProvider:
    """One way to keep a job available.

    Attributes:
        name: on the command line and in reports.
        contend: makes the command of a contender.
        read: makes the command of a reader, from the job's name, the seconds between two lookups and the seconds that
            each may take.
        results: the program that counts what the job has written, and its arguments without the directory.
        keeps_guarantees: whether the history must keep this project's guarantees.
        package: folder of a Python package that its programs need and that the distribution does not have.
    """

    name: str
    contend: Contend
    read: Callable[[str, float, float], list[str]]
    results: tuple[str, ...]
    keeps_guarantees: bool = False
    package: Path | None = None


def _sidecar(module: str, *further: str) -> Contend:
    def contend(job: DrillJob, name: str) -> list[str]:
        options = ["run", job.name, *further, "--contender", name, "--endpoint", f"jobmaster={name}:6123"]
        return ["python", "-m", module, *options, "--", "python", job.driver, *job.arguments()]

    return contend


def _read(job: str, every: float, timeout: float) -> list[str]:
    return ["python", "-m", "ha.drill.clients", "read", job, "--every", str(every), "--timeout", str(timeout)]


NEXT_VERSION = _sidecar("ha.cli.next_version")
"""The command of a contender of this project's next version."""

WITH_ENGINE = _sidecar("ha.cli", "--engine")
"""The command of a contender whose driver's queries outlive it."""

HYBRID = HaProvider(
    "hybrid-ha", _sidecar("ha.cli"), _read, ("python", "-m", "ha.drill.clients", "results"), keeps_guarantees=True
)

PROVIDERS = {HYBRID.name: HYBRID}
"""By name; those who have others add them."""
