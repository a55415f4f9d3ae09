"""HA provider: what keeps the job of a drill available.

The distribution has one, this project's sidecar. A source tree adds the baselines, which people use today, to
:data:`PROVIDERS`: ``python -m benchmarks.drills`` runs the same drills for them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_FILES = 20  # files in one batch: what has piled up during a fault is counted in several batches


@dataclass(frozen=True)
class Program:
    """A program that the jobs of drills run."""

    file: str
    outcomes: tuple[str, ...] = ()  # folders of its output, and each counts every word; empty: the output itself does
    breakable: bool = False  # whether a drill can tell it what is to go wrong, in DrillJob.faults
    options: tuple[str, ...] = ()


WORD_COUNT = Program("word_count.py")
WORD_REGIONS = Program("word_regions.py", ("counts", "totals"), breakable=True)
STEADY_WORDS = Program("word_regions.py", ("counts", "totals"), options=("--steady",))
"""One of its queries has state and no ``foreachBatch``: it can go on without the program."""


@dataclass(frozen=True)
class DrillJob:
    """The job of a drill, as its contenders are told."""

    name: str  # unique in its environment
    driver: str  # path of its program
    directory: str  # URI of the directory of the job's files
    interval: float  # see ha.drill.fixture.Setup
    dwell: float
    program: Program = WORD_COUNT
    faults: str = ""  # directory in which a breakable program finds what is to go wrong, as members see it
    source: str = ""  # URI of the directory that the job reads, if it is not below its own

    @property
    def input(self) -> str:
        return self.source or f"{self.directory}/input"

    @property
    def output(self) -> str:
        return f"{self.directory}/output"

    @property
    def outcomes(self) -> list[str]:
        """URIs of the directories that count every word."""
        return [f"{self.output}/{each}" for each in self.program.outcomes] or [self.output]

    def arguments(self) -> list[str]:
        given: dict[str, str | float] = {"input": self.input, "output": self.output}
        given |= {"interval": self.interval, "max-files": MAX_FILES}
        if self.dwell:
            given["dwell"] = self.dwell
        if self.program.breakable:
            given["faults"] = self.faults
        return [*(part for name, value in given.items() for part in (f"--{name}", str(value))), *self.program.options]


Contend = Callable[[DrillJob, str], list[str]]  # returns the command of the contender of that name


@dataclass(frozen=True)
class HaProvider:
    """One way to keep a job available."""

    name: str  # on the command line and in reports
    contend: Contend
    read: Callable[[str, float, float], list[str]]  # a reader's command: job, seconds between lookups, and for each
    results: tuple[str, ...]  # the program that counts what the job has written, without the directory
    books: tuple[str, ...] = ()  # the program that fails if an output lacks what Spark has committed, without the job
    keeps_guarantees: bool = False  # whether the history must keep this project's guarantees
    package: Path | None = None  # folder of a package that its programs need and that the distribution lacks


def _sidecar(*further: str, command: Sequence[str] = ("-m", "ha.cli")) -> Contend:
    def contend(job: DrillJob, name: str) -> list[str]:
        options = ["run", job.name, *further, "--contender", name, "--endpoint", f"jobmaster={name}:6123"]
        return ["python", *command, *options, "--", "python", job.driver, *job.arguments()]

    return contend


def _read(job: str, every: float, timeout: float) -> list[str]:
    return ["python", "-m", "ha.drill.clients", "read", job, str(every), str(timeout)]


_NEXT = """
from leader.layout import checkpoint_state, information
information.FORMAT += 1
checkpoint_state.FORMAT += 1
from ha.cli.commands import main
main()
"""
"""All versions share the names in HDFS; a reader that does not know the format of a record in ZooKeeper asks HDFS."""

NEXT_VERSION = _sidecar(command=("-c", _NEXT))  # the command of a contender of this project's next version
WITH_ENGINE = _sidecar("--engine")  # the command of a contender whose driver's queries outlive it

HYBRID = HaProvider(
    "hybrid-ha",
    _sidecar(),
    _read,
    ("python", "-m", "ha.drill.clients", "results"),
    ("python", "-m", "ha.cli", "output", "verify"),
    keeps_guarantees=True,
)

PROVIDERS = {HYBRID.name: HYBRID}  # by name; those who have others add them
