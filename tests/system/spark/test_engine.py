"""``ha run --engine``: a program is killed, its queries go on, and the next program reattaches to them."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ha.cli.commands import app
from ha.drill.kill import descendants
from store.files import Files
from tests.system.spark.helpers import eventually, files_of
from tests.system.spark.test_checkpoints import feed
from tests.system.spark.test_supervised import DRIVERS, RUN, Driver
from tests.unit.ha.programs import alive

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(600)]

LONG = 200.0
"""Seconds: far more than anything takes, even on a busy machine."""

PROGRAM = str(DRIVERS / "engine.py")


@pytest.fixture
def driver(job: str, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path) -> Iterator[Driver]:
    made = Driver(job, hdfs_uri, zookeeper_hosts, tmp_path)
    yield made
    print(made.said[-5000:])  # noqa: T201  # shown if the test fails


def program_of(driver: Driver) -> int | None:
    assert driver.process is not None
    for pid in descendants(driver.process.pid):
        with suppress(OSError):  # it has ended
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if words[1:2] == [PROGRAM]:
                return pid
    return None


def shown(driver: Driver, *command: str) -> Any:
    outcome = CliRunner().invoke(app, [*command, "--json", "--files", driver.root, "--zookeeper", ""])
    return json.loads(outcome.output) if outcome.exit_code == 0 else {}


def state(driver: Driver) -> tuple[str, int]:
    (found,) = [each for each in shown(driver, "job", "list") if each["job"] == driver.job]
    return found["state"], found["epoch"]


def queries(driver: Driver) -> dict[str, dict[str, Any]]:
    found = {each["query"]: each for each in shown(driver, "job", "queries", driver.job).get("queries") or []}
    return found if found and all(each["state"] == "RUNNING" for each in found.values()) else {}


def published(driver: Driver) -> list[str]:
    batches = driver.output()

    def read(files: Files) -> list[str]:
        parts = [f"{batch}/{part.name}" for batch in batches for part in files.list(batch)]
        return [line for part in parts for line in files.read(part, 10_000).decode().splitlines()]

    with files_of(driver.target) as do:
        return do(read)


def test_queries_of_a_killed_program_go_on_and_are_adopted(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_RESTART_DELAY", "0.1")
    fed = 0

    def more() -> None:
        nonlocal fed
        feed(driver.source, fed)
        fed += 1

    def kept() -> set[str]:
        return {name for name, each in queries(driver).items() if each["run_id"] == first[name]["run_id"]}

    more()
    command = [sys.executable, PROGRAM, driver.job, driver.source.as_uri(), driver.target]
    with driver.running([*RUN, driver.job, "--engine", "--", *command]):
        eventually(driver.output, LONG)
        eventually(lambda: queries(driver), LONG)
        first, jvm = queries(driver), driver.pid_of("java")
        assert set(first) == {"words", "spelt", "lines"}
        for number in range(2):
            program = program_of(driver)
            assert program, "it runs"
            os.kill(program, signal.SIGKILL)
            more()
            eventually(lambda number=number: driver.said.count("words runs, and is reattached") > number, LONG)  # type: ignore[misc]
            eventually(lambda: len(driver.output()) == fed, LONG)
            assert program_of(driver) not in (None, program)
            eventually(lambda: kept() == {"words", "spelt"}, LONG)  # `lines` is started again once it has failed
        assert driver.pid_of("java") == jvm, "there was one JVM"
        assert published(driver) == ["some words"] * fed, "each line once, in a batch of its own"
        for name in ("words", "spelt"):
            assert f"Query {name} " not in driver.said, "Spark has reported no end of it"
        eventually(lambda: state(driver) == ("RUNNING", 1))
        ends = [each["class"] for each in shown(driver, "job", "exceptions", driver.job)]
        assert ends.count("signal-9") == 2, "both ends are kept, whatever else there is of `lines`"
        os.kill(jvm or 0, signal.SIGKILL)
        eventually(lambda: "its JVM has ended" in driver.said.replace("the program's", "its"), 60)
        eventually(lambda: not alive(jvm or 0))
