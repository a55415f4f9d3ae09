"""The job of :mod:`benchmarks.spark.regions`: its sidecar, its input, and what its queries write down."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

from benchmarks.spark.failover import environment
from benchmarks.spark.many_queries import Plan
from benchmarks.spark.sidecars import NotSo
from ha.drill.sandbox_environment import Process
from ha.sandbox import Sandbox
from store.clock import now
from store.open import open_files

JOB = "regions"

ATTEMPTS = 5
STRATEGY = {
    "HA_FAILED_REGION": "stay",
    "HA_RESTART_STRATEGY_TYPE": "fixed-delay",
    "HA_RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS": f"{ATTEMPTS}",
    "HA_RESTART_STRATEGY_FIXED_DELAY_DELAY": "5",
}
PATIENCE_S = 300.0
"""For steps that take a minute on an idle machine: forty queries start one after the other."""

LOOK_S = 1.0
CALL_S = 60.0
FEED_S = 1.0
"""Seconds between two input files, with one number each."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a query: its time, its number, and the numbers that it has added up."""

    at: float
    batch: int
    sum: int
    rows: int


class Regions:
    """The running job, its input, and what its queries write down."""

    def __init__(self, sandbox: Sandbox, folder: Path, regions: int, queries: int, interval: float) -> None:
        """Start the job, without any input."""
        files = sandbox.environment()["HA_FILES"]
        root = files.rstrip("/").rpartition("/")[0]
        self.folder = folder
        for name in ("batches", "poison"):
            (folder / name).mkdir()
        place = f"{root}/{JOB}"
        self.plan = Plan(
            regions, queries, interval, f"{place}/in", f"{place}/out", f"{folder}/batches", f"{folder}/poison"
        )
        self.plan.write(folder / "plan.json")
        self.fed = 0
        self._files = open_files(f"{root}/")
        for path in (JOB, f"{JOB}/in"):
            self._do(path, lambda files, path: files.make_directory(path))
        self._environment = {**environment(sandbox), **STRATEGY, "PYSPARK_PYTHON": sys.executable}
        program = [sys.executable, "-m", "benchmarks.spark.many_queries", f"{folder}/plan.json"]
        command = [sys.executable, "-m", "ha.cli", "run", JOB, "--contender", "only", "--", *program]
        self.sidecar = Process("only", command, self._environment, folder)

    def _do(self, path: str, operation: Callable[[Any, str], object]) -> None:
        self._files.call(path, lambda files: operation(files, path), CALL_S)

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Put a number into the input again and again."""
        over = Event()

        def feed() -> None:
            while not over.wait(FEED_S):
                self._do(
                    f"{JOB}/in/{self.fed:05d}.txt", lambda files, path: files.write(path, f"{self.fed}\n".encode())
                )
                self.fed += 1

        feeder = Thread(target=feed, name="feeder")
        feeder.start()
        try:
            yield
        finally:
            over.set()
            feeder.join()

    def asked(self, *arguments: str) -> Any:
        """Return what a command prints as JSON; one that comes too late on a busy machine is asked again."""
        command = [sys.executable, "-m", "ha.cli", *arguments, "--json"]
        end = now() + PATIENCE_S
        while True:
            done = subprocess.run(
                command, env=self._environment, cwd=self.folder, capture_output=True, text=True, check=False
            )
            if not done.returncode:
                return json.loads(done.stdout)
            if now() > end:
                raise NotSo(f"{' '.join(arguments)} has ended with {done.returncode}: {done.stderr[-1000:]}")

    def queries(self) -> dict[str, dict[str, Any]]:
        """Return the queries as ``ha queries`` shows them, by name."""
        return {each["query"]: each for each in self.asked("queries", JOB)["queries"]}

    def batches(self, query: str) -> list[Batch]:
        """Return the batches of a query in the order in which they ended."""
        path = Path(self.plan.batches, query)
        lines = path.read_text(encoding="ascii").splitlines(keepends=True) if path.exists() else []
        return [Batch(**json.loads(line)) for line in lines if line.endswith("\n")]

    def wait(self, what: str, reached: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = now() + PATIENCE_S
        while not reached():
            if now() > end or not self.sidecar.running:
                raise NotSo(f"There was no sign of {what}: {self.sidecar.log()[-2000:]}")
            Event().wait(LOOK_S)

    def end(self) -> None:
        """Leave nothing running."""
        self.sidecar.end()
        self._files.close()


def gaps(batches: list[Batch]) -> list[float]:
    """Return the seconds between batches."""
    return [second.at - first.at for first, second in pairwise(batches)]


def out_of_order(batches: list[Batch]) -> int:
    """Return how many batches do not follow the one before."""
    return sum(second.batch != first.batch + 1 for first, second in pairwise(batches))


def sum_of(batches: list[Batch]) -> int:
    """Return what the batches add up to; one that was repeated counts once, as it was done last."""
    return sum({each.batch: each.sum for each in batches}.values())
