"""Jobs on a real YARN whose driver is killed: ``make places``. Not part of ``make test``: it takes some minutes."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.places.yarn import Yarn, yarn
from tests.system.spark.helpers import eventually

PROGRAM = str(Path(__file__).parents[3] / "examples" / "deploy" / "orders.py")
PATIENCE = 240.0

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    with yarn(tmp_path_factory.mktemp("yarn")) as made:
        yield made


class Job:
    def __init__(self, folder: Path) -> None:
        self.name = f"orders-{uuid.uuid4().hex[:8]}"
        self.jobs, self.source, self.target = (folder / name for name in ("jobs", "in", "out"))
        for each in (self.jobs, self.source, self.target):
            each.mkdir()
        self.arguments = [PROGRAM, self.name, self.source.as_uri(), self.target.as_uri()]

    def feed(self, text: str) -> None:
        staged = self.source / f".{text}"
        staged.write_text(f"{text}\n")
        staged.rename(self.source / f"{text}.txt")

    def lines(self) -> list[str]:
        return [line for each in sorted(self.target.glob("batch=*/part-*")) for line in each.read_text().splitlines()]

    def epoch(self) -> int:
        return max(int(each.name[:10]) for each in (self.jobs / self.name).iterdir() if each.name[:10].isdecimal())

    def driver(self, main: str) -> int:
        for each in Path("/proc").iterdir():
            if each.name.isdecimal():
                try:
                    words = (each / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
                if words[0].endswith("java") and main in words and self.name in words:
                    return int(each.name)
        return 0


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def survives(job: Job, main: str) -> None:
    job.feed("one")
    eventually(lambda: job.lines() == ["one"], PATIENCE)
    driver = job.driver(main)
    assert driver
    os.kill(driver, signal.SIGKILL)
    job.feed("two")
    eventually(lambda: job.lines() == ["one", "two"], PATIENCE)
    assert job.epoch() == 2
    assert job.driver(main) != driver


def test_in_cluster_mode_yarn_starts_the_next_driver(cluster: Yarn, job: Job) -> None:
    submit = cluster.submit("cluster", job.jobs.as_uri(), *job.arguments)
    subprocess.run(submit, env=cluster.environment, check=True, timeout=PATIENCE)
    survives(job, "org.apache.spark.deploy.yarn.ApplicationMaster")
    cluster.kill_all()


def test_in_client_mode_a_sidecar_does(cluster: Yarn, job: Job) -> None:
    run = [sys.executable, "-P", "-m", "ha.cli", "run", job.name, "--"]
    submit = cluster.submit("client", job.jobs.as_uri(), *job.arguments)
    environment = {**cluster.environment, "HA_FILES": job.jobs.as_uri()}
    sidecar = subprocess.Popen([*run, *submit], env=environment)
    try:
        survives(job, "org.apache.spark.deploy.SparkSubmit")
    finally:
        sidecar.terminate()
        sidecar.wait(60)


def test_executors_keep_off_an_excluded_host_until_the_next_restart(cluster: Yarn, job: Job) -> None:
    ha = [sys.executable, "-P", "-m", "ha.cli"]
    submit = cluster.submit("client", job.jobs.as_uri(), *job.arguments)
    environment = {**cluster.environment, "HA_FILES": job.jobs.as_uri()}

    def restart(*options: str) -> None:
        command = [*ha, "job", "restart", job.name, "--timeout", "100", *options]
        subprocess.run(command, env=environment, check=True, timeout=PATIENCE)

    sidecar = subprocess.Popen([*ha, "run", job.name, "--", *submit], env=environment)
    try:
        job.feed("one")
        eventually(lambda: job.lines() == ["one"], PATIENCE)
        (host,) = cluster.hosts()
        with pytest.raises(subprocess.CalledProcessError):
            restart("--exclude", f"{host}-nobody")
        restart("--exclude", host)
        job.feed("two")
        eventually(lambda: cluster.logged(f"excluded node list: List({host})"), PATIENCE)
        assert job.lines() == ["one"], "there is no other host for an executor"
        restart()
        eventually(lambda: job.lines() == ["one", "two"], PATIENCE)
    finally:
        sidecar.terminate()
        sidecar.wait(60)
