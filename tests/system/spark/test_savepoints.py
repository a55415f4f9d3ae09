"""Savepoints of real queries under real sidecars: taken while batches run, and started from elsewhere."""

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ha.sidecar.machine.ends import WAS_CANCELED
from tests.limits import joined
from tests.system.spark.helpers import eventually
from tests.system.spark.test_job import feed
from tests.system.spark.test_supervised import DRIVERS, RUN, Driver

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

FILES = 40


def ha(driver: Driver, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-m", "ha.cli", *arguments, "--files", driver.root, "--zookeeper", ""]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)


class Job:
    """A driver's job with its output; ``middle`` is the place between its queries, which later jobs go on with."""

    def __init__(self, driver: Driver, name: str, middle: Path, out: Path) -> None:
        self.driver, self.name, self.middle, self.out = driver, name, middle, out

    @contextmanager
    def running(self, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
        program = [sys.executable, str(DRIVERS / "chained.py"), self.name, self.driver.source.as_uri()]
        with self.driver.running(
            [*RUN, self.name, *options, "--", *program, self.middle.as_uri(), self.out.as_uri()]
        ) as process:
            yield process

    def asked(self, verb: str, *options: str) -> dict[str, Any]:
        done = ha(self.driver, *verb.split(), self.name, *options, "--json", "--timeout", "100")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def sums(self) -> dict[int, tuple[int, int]]:
        batches = batches_of(self.out)
        if not batches:
            return {}
        parts = (self.out / f"batch={batches[-1]}").glob("part-*")
        found = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
        return {row["key"]: (row["sum"], row["n"]) for row in found}


def batches_of(folder: Path) -> list[int]:
    return sorted(int(each.name.partition("=")[2]) for each in folder.glob("batch=*"))


def expected(count: int) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for value in range(count):
        before = found.get(value % 3, (0, 0))
        found[value % 3] = before[0] + value, before[1] + 1
    return found


@pytest.fixture
def driver(job: str, tmp_path: Path) -> Iterator[Driver]:
    made = Driver(job, (tmp_path / "jobs").as_uri(), "", tmp_path)
    yield made
    sys.stdout.write(made.said[-8000:])


def queries(driver: Driver, name: str) -> dict[str, dict[str, Any]]:
    return {each["query"]: each for each in json.loads(ha(driver, "job", "queries", name, "--json").stdout)["queries"]}


def test_jobs_go_on_from_savepoints_of_a_running_and_of_a_stopped_job(driver: Driver, tmp_path: Path) -> None:
    middle = tmp_path / "middle"
    first = Job(driver, driver.job, middle, tmp_path / "out")
    running, stopped = (tmp_path / "running").as_uri(), (tmp_path / "stopped").as_uri()
    go_on = threading.Event()

    def write() -> None:
        for value in range(FILES):
            feed(driver.source, value, value)
            go_on.wait(0.2 if value < FILES - 10 else 0.05)

    feeder = threading.Thread(target=write)
    with first.running() as process:
        feeder.start()
        eventually(lambda: len(first.sums()) == 3, 240)
        taken = first.asked("savepoint take", running)["result"]
        batches = {query["name"]: query["batch"] for query in taken["queries"]}
        states = {query["name"]: query["state"] for query in taken["queries"]}
        assert states["clean"] == ""
        assert {query["name"]: query["operators"] for query in taken["queries"]} == {
            "clean": {},
            "sums": {"0": "stateStoreSave"},
        }
        assert re.fullmatch(r"\w+, format [12]", states["sums"])
        read = [
            int(batch)
            for log in (tmp_path / "running" / "spark" / "sums" / "sources" / "0").iterdir()
            for batch in re.findall(r"batch=(\d+)/", log.read_text())
        ]
        assert max(read) <= batches["clean"], "the reader has read nothing that its writer has not saved"
        before = queries(driver, first.name)
        first.asked("job restart", "--query", "sums")
        after = queries(driver, first.name)
        assert all(after[each]["run_id"] != before[each]["run_id"] for each in ("clean", "sums")), "one region"
        assert {each["state"] for each in after.values()} == {"RUNNING"}
        answer = first.asked("job stop", "--savepoint", stopped)
        assert process.wait(60) == 0
    joined(feeder)
    assert "FINISHED" in ha(driver, "job", "list").stdout
    assert answer["result"]["stopped"] is True
    saved = {query["name"]: query["batch"] for query in answer["result"]["queries"]}
    published = {"clean": batches_of(middle)[-1], "sums": batches_of(first.out)[-1]}
    assert published == saved, "nothing was published that is not saved"

    driver.root = (tmp_path / "elsewhere").as_uri()  # another cluster, which has never heard of the job
    second = Job(driver, f"{driver.job}-second", middle, first.out)
    with second.running("--from", stopped) as process:
        # The first job has left all sums there.
        eventually(lambda: "RUNNING" in ha(driver, "job", "queries", second.name, "--json").stdout, 240)
        eventually(lambda: second.sums() == expected(FILES), 240)
        answer = second.asked("job stop", "--savepoint", "--drain")
        assert process.wait(60) == 0
    assert answer["result"]["savepoint"] == answer["id"]
    assert second.sums() == expected(FILES)
    listed = json.loads(ha(driver, "savepoint", "list", second.name, "--json").stdout)
    assert [each["name"] for each in listed] == [answer["id"]]

    for batch in batches_of(middle):  # what was done since that savepoint is done once more
        if batch > batches["clean"]:
            shutil.rmtree(middle / f"batch={batch}")
    third = Job(driver, f"{driver.job}-third", middle, tmp_path / "out-3")
    with third.running("--from", running) as process:
        eventually(lambda: third.sums() == expected(FILES), 240)
        third.asked("job cancel")
        assert process.wait(60) == WAS_CANCELED
