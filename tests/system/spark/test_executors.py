"""``ha rescale JOB --executors N`` on a real standalone cluster; in local mode it is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ha.drain.executors import Master
from ha.sandbox.polling import until
from ha.sandbox.ports import LOOPBACK, free_ports
from ha.spark.executors import rescale_executors
from leader.job.requests import State
from tests.system.spark.cluster import clean_environment, standalone

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DRIVER = """
import os, sys, threading
from pyspark.sql import SparkSession
import ha.spark
settings = {"spark.executor.cores": "1", "spark.executor.memory": "512m", "spark.driver.memory": "512m",
            "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
spark = SparkSession.builder.master(sys.argv[1]).config(map=settings).getOrCreate()
with ha.spark.lead(os.environ["HA_JOB"], spark):
    print("begun", flush=True)
    threading.Event().wait()
"""
STARTS_S = 120.0


def used(master: Master) -> int:
    """The executors on the only worker: each has one core."""
    return sum(each.cores for each in master.workers(LOOPBACK))


@pytest.mark.timeout(300)
def test_a_running_job_gets_fewer_and_more(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    master, stores = Master(f"http://{LOOPBACK}:{port}"), ["--files", (tmp_path / "ha").as_uri(), "--zookeeper", ""]
    environment = clean_environment()

    def ha(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "ha.cli", arguments[0], "orders", *stores, *arguments[1:]]

    def asked(count: int) -> "subprocess.CompletedProcess[str]":
        command = ha("rescale", "--executors", f"{count}", "--json")
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STARTS_S, check=False)

    with standalone(tmp_path, port) as address, (tmp_path / "job.log").open("wb") as log:
        run = ha("run", "--", sys.executable, "-c", DRIVER, address)
        job = subprocess.Popen(run, env=environment, stdout=log, stderr=log)
        try:
            until(
                lambda: None if "begun" in (tmp_path / "job.log").read_text() else "not yet",
                STARTS_S,
                "no leader",
            )
            until(lambda: None if used(master) == 2 else "one is missing", STARTS_S, "the job has not its executors")
            fewer = asked(1)
            assert fewer.returncode == 0, fewer.stderr
            assert used(master) == 1
            more = asked(2)
            assert more.returncode == 0, more.stderr
            said = json.loads(more.stdout)
            assert (said["verb"], said["state"]) == ("rescale-executors", "done")
            assert said["said"].startswith("It has 2 executors; it had 1.")
            assert used(master) == 2
        finally:
            job.terminate()
            job.wait(60)


def test_local_mode_has_none(spark: SparkSession) -> None:
    told: list[tuple[State, str]] = []
    rescale_executors(spark, 2, lambda state, said: told.append((state, said)))
    assert told == [(State.REFUSED, "Its Spark runs in local mode, in one process, which has no executors.")]
