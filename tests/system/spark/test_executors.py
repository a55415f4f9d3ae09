"""``ha rescale JOB --executors N`` of a running job on a real standalone cluster; in local mode it is refused."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.spark.cluster import Worker, clean_environment, standalone
from ha.drain.executors import Master
from ha.sandbox.ports import LOOPBACK, free_ports
from ha.spark.executors import rescale_executors
from leader.job.requests import State
from tests.system.spark.helpers import eventually

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DRIVER = Path(__file__).parent / "drivers" / "on_cluster.py"
PATIENCE_S = 120.0
LOOK_S = 0.05


class Job:
    """A job on a cluster of two workers."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.source, self.target = folder, folder / "in", folder / "out"
        self.source.mkdir()
        self.fed: list[str] = []
        (port,) = free_ports(1)
        self.interface, self.master = port, Master(f"http://{LOOPBACK}:{port}")
        self._stores = ["--files", (folder / "ha").as_uri(), "--zookeeper", ""]
        self._environment = clean_environment()

    def ha(self, verb: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ha.cli", verb, "orders", *self._stores, *arguments]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the job, and feed it all the time."""
        over = threading.Event()
        feeder = threading.Thread(target=self._feed, args=(over,))
        with (
            standalone(self.folder, self.interface, (Worker(), Worker())) as address,
            (self.folder / "job.log").open("wb") as log,
        ):
            places = (self.source.as_uri(), self.target.as_uri())
            command = self.ha("run", "--", sys.executable, f"{DRIVER}", address, "orders", *places)
            job = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
            feeder.start()
            try:
                yield
            finally:
                over.set()
                feeder.join()
                job.terminate()
                job.wait(60)

    def _feed(self, over: threading.Event) -> None:
        """Give it the next file once it has published the one before."""
        while not over.wait(LOOK_S):
            if len(self.lines()) == len(self.fed):
                self.feed()

    def feed(self) -> None:
        number = len(self.fed)
        lines = [f"{number + line}" for line in range(4)]
        staged = self.folder / f"{number}.txt"
        staged.write_text("".join(f"{line}\n" for line in lines))
        staged.rename(self.source / staged.name)
        self.fed += lines

    def done(self, verb: str, *arguments: str) -> Any:
        """Run a command, and return what it prints as JSON."""
        ended = subprocess.run(
            self.ha(verb, *arguments, "--json"),
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    def lines(self) -> list[str]:
        """What is in the output."""
        parts = sorted(self.target.glob("batch=*/part-*"))
        return [line for part in parts for line in part.read_text().splitlines()]

    def executors(self) -> list[int]:
        """How many are on each worker: each has one core."""
        return sorted(each.cores for each in self.master.workers(LOOPBACK))

    def completes(self, batches: int) -> None:
        """Wait until it has published so many more."""
        lines = len(self.lines()) + 4 * batches
        eventually(lambda: len(self.lines()) >= lines, PATIENCE_S)


@pytest.mark.timeout(400)
def test_a_running_job_gets_fewer_and_more_and_loses_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path)
    with job.running():
        job.completes(1)
        eventually(lambda: job.executors() == [1, 1], PATIENCE_S)
        fewer = job.done("rescale", "--executors", "1")
        assert (fewer["state"], fewer["said"].partition(".")[0]) == ("done", "Executors: 1, and 2 before")
        assert job.executors() == [0, 1]
        job.completes(2)
        more = job.done("rescale", "--executors", "2", "--request-id", "more")
        assert (more["state"], more["said"].partition(".")[0]) == ("done", "Executors: 2, and 1 before")
        assert job.executors() == [1, 1]
        assert job.done("rescale", "--executors", "2", "--request-id", "more") == more, "asked once"
        same = job.done("rescale", "--executors", "2")
        assert same["said"].startswith("Executors: 2, and 2 before.")
        job.completes(2)
        assert fewer["epoch"] == more["epoch"] == same["epoch"]
        assert len(job.done("history")) == 1
    # What was fed last may not have been published before the job was stopped.
    assert sorted(job.lines(), key=int) in (job.fed, job.fed[:-4])


def test_local_mode_has_none(spark: SparkSession) -> None:
    told: list[tuple[State, str]] = []
    rescale_executors(spark, 2, lambda state, said: told.append((state, said)))
    assert told == [(State.REFUSED, "Its Spark runs in local mode, in one process, which has no executors.")]
