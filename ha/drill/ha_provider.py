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
class DrillJob:
    """The job of a drill, as its contenders are told.

    Attributes:
        name: unique in its environment.
        driver: path of this project's word count.
        directory: URI of the directory of the job's files.
        interval: seconds between the beginnings of two batches; 0: a batch begins as soon as there is input.
        dwell: seconds that a batch takes at least.
    """

    name: str
    driver: str
    directory: str
    interval: float
    dwell: float

    @property
    def input(self) -> str:
        """URI of the directory that the job reads."""
        return f"{self.directory}/input"

    @property
    def output(self) -> str:
        """URI of the directory that the job writes."""
        return f"{self.directory}/output"

    def arguments(self) -> list[str]:
        """The options of a driver."""
        given = {"input": self.input, "output": self.output, "interval": self.interval, "max-files": MAX_FILES}
        if self.dwell:
            given["dwell"] = self.dwell
        return [part for name, value in given.items() for part in (f"--{name}", str(value))]


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


def _sidecar(module: str) -> Contend:
    def contend(job: DrillJob, name: str) -> list[str]:
        options = ["run", job.name, "--contender", name, "--endpoint", f"jobmaster={name}:6123"]
        return ["python", "-m", module, *options, "--", "python", job.driver, *job.arguments()]

    return contend


def _read(job: str, every: float, timeout: float) -> list[str]:
    return ["python", "-m", "ha.drill.clients", "read", job, "--every", str(every), "--timeout", str(timeout)]


NEXT_VERSION = _sidecar("ha.cli.next_version")
"""The command of a contender of this project's next version."""

HYBRID = HaProvider(
    "hybrid-ha", _sidecar("ha.cli"), _read, ("python", "-m", "ha.drill.clients", "results"), keeps_guarantees=True
)

PROVIDERS = {HYBRID.name: HYBRID}
"""By name; those who have others add them."""
