"""Each lack in a driver of Spark: guard and sidecar end none for it; one that ends of it is started again."""

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from store.clock import now
from tests.patience import DRIVER_S
from tests.system.lacks.taking import SHARED, Place, tree
from tests.system.lacks.test_grid import passed
from tests.system.spark.conftest import LASTING
from tests.unit.ha.programs import HA, Program, Workplace, alive
from tests.unit.ha.waiting import wait_until

pytestmark = [pytest.mark.timed, pytest.mark.spark, pytest.mark.timeout(4 * DRIVER_S)]

PROGRAM = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").getOrCreate()
rows = spark.readStream.format("rate").load()
writer = rows.writeStream.queryName("orders").format("noop").trigger(processingTime="1 second")
writer.start().awaitTermination()
"""


def start(workplace: Workplace) -> Program:
    program = workplace.work / "program.py"
    program.write_text(PROGRAM)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    submit = ["spark-submit", "--driver-memory", "512m", "--conf", "spark.ui.enabled=false", f"{program}"]
    run = ["run", "orders", "--contender", "a", "--spark", "--", *submit]
    own = {"PATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return workplace.start(*Place.command(*HA, *run), **own, **LASTING)


def guard_of(sidecar: Program) -> int:
    """Return the guard's number, once it is there: before it, what makes the place was below the same process."""

    def found() -> list[int]:
        return [each for each in tree(sidecar.pid)[1:] if b"ha.sidecar.command.guard" in said_of(each)]

    return int(wait_until(found, what="its guard")[0])


def said_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def batches(workplace: Workplace) -> int:
    """Return how many batches its query has committed."""
    return len([each for each in workplace.jobs.glob("orders/0*/spark/orders/commits/*") if each.name.isdecimal()])


def commits(workplace: Workplace, program: Program) -> None:
    """Wait for two batches that have begun by now or later."""
    before = batches(workplace)
    try:
        wait_until(lambda: batches(workplace) >= before + 2, DRIVER_S, what="two batches")
    except AssertionError as error:
        raise AssertionError(f"{error}; it said {program.said[-3000:]}") from None


def test_one_that_starts_on_a_disk_that_is_full_by_then_is_not_taken_for_one_astray(
    workplace: Workplace, place: Place
) -> None:
    sidecar = start(workplace)
    guard = guard_of(sidecar)
    noted = Path(f"/proc/{sidecar.pid}/root{SHARED}")
    with place.disk(sidecar.pid):
        wait_until(lambda: list(noted.glob("*/*/*.jvm.driver")), DRIVER_S, "the note of the driver")
        commits(workplace, sidecar)
    assert alive(guard), sidecar.said
    assert "is killed" not in sidecar.said


def test_one_that_runs_goes_on(workplace: Workplace, place: Place) -> None:
    sidecar = start(workplace)
    commits(workplace, sidecar)
    for lack in (place.tasks, place.memory, place.inodes, place.disk, place.ports, place.descriptors):
        guard = guard_of(sidecar)
        driver = tree(guard)[1:]
        with lack(*driver):
            since = now()
            wait_until(partial(passed, since))
        commits(workplace, sidecar)  # Spark ends the query whose JVM gets no thread, and so the program
        assert sidecar.process.poll() is None
    assert "is killed" not in sidecar.said
