"""Who guards the job of a drill: this project's sidecar, or what people use today."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ha.drill.stage import Stage

MOST_FILES = 20
"""In one batch: what has piled up during a fault is counted in some batches, not in one."""


@dataclass(frozen=True)
class Guard:
    """One way to guard a job.

    Attributes:
        name: on the command line and in reports.
        title: in tables.
        run: the command of one contender, by its name.
        read: the command of a reader, by job, seconds between two lookups, and seconds for each.
        results: the module that counts what the job has written.
        promises: whether the history must keep this project's guarantees.
    """

    name: str
    title: str
    run: Callable[["Stage", str], list[str]]
    read: Callable[[str, float, float], list[str]]
    results: str
    promises: bool = False


def _arguments(stage: "Stage") -> list[str]:
    given = {"input": stage.input, "output": stage.output, "interval": stage.drill.interval, "max-files": MOST_FILES}
    if stage.drill.dwell:
        given["dwell"] = stage.drill.dwell
    return [part for name, value in given.items() for part in (f"--{name}", str(value))]


def _sidecar(module: str) -> Callable[["Stage", str], list[str]]:
    def run(stage: "Stage", name: str) -> list[str]:
        contend = ["run", stage.job, "--contender", name, "--endpoint", f"jobmaster={name}:6123"]
        return ["python", "-m", module, *contend, "--", "python", stage.ground.driver(), *_arguments(stage)]

    return run


def _reader(job: str, every: float, timeout: float) -> list[str]:
    return ["python", "-m", "ha.drill.programs.read", job, "--every", str(every), "--timeout", str(timeout)]


def _peer(module: str) -> Callable[["Stage", str], list[str]]:
    def run(stage: "Stage", name: str) -> list[str]:
        driver = ["python", "-m", "ha.drill.peers.append_words", *_arguments(stage)]
        checkpoint = f"{stage.ground.scratch}/{stage.job}/checkpoint"
        return ["python", "-m", module, stage.job, "--contender", name, "--", *driver, "--checkpoint", checkpoint]

    return run


def _peer_reader(which: str) -> Callable[[str, float, float], list[str]]:
    def read(job: str, every: float, timeout: float) -> list[str]:
        given = ["--every", str(every), "--timeout", str(timeout)]
        return ["python", "-m", "ha.drill.peers.reading", which, job, *given]

    return read


HYBRID = Guard("hybrid-ha", "Hybrid HA", _sidecar("ha.cli"), _reader, "ha.drill.programs.results", promises=True)
NEXT_VERSION = _sidecar("ha.drill.programs.next_version")
"""The command of a contender of this project's next version."""

GUARDS = {
    each.name: each
    for each in (
        HYBRID,
        Guard(
            "kazoo",
            "kazoo Election",
            _peer("ha.drill.peers.kazoo_election"),
            _peer_reader("kazoo"),
            "ha.drill.peers.results",
        ),
        Guard(
            "curator",
            "Curator LeaderLatch",
            _peer("ha.drill.peers.curator_latch"),
            _peer_reader("curator"),
            "ha.drill.peers.results",
        ),
    )
}
