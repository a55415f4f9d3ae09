"""Real drivers whose batches hang, under ``ha run`` on ``file://``: what is interrupted goes on in place."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.spark.helpers import eventually
from tests.system.spark.test_checkpoints import feed
from tests.system.spark.test_supervised import DRIVERS, ROOT, RUN, Driver
from tests.unit.ha.noting import state
from tests.unit.ha.programs import Workplace

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

PATIENCE_S = 400.0


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    made = Driver("orders", (tmp_path / "jobs").as_uri(), "", tmp_path)
    yield made
    sys.stdout.write(made.said[-5000:])


def asked(driver: Driver, what: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-P", "-m", "ha.cli", what, "orders", "--json", "--files", driver.root]
    found = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    said = json.loads(found)
    rows: list[dict[str, Any]] = said["queries"] if what == "queries" else said
    return rows


def test_a_batch_that_hangs_is_interrupted_in_place_and_one_that_cannot_be_restarts_the_program_in_place(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("HA_SHORT_TTL", "120"),  # a lease that no busy machine loses: this is about what happens within one
        ("HA_LONG_TTL", "600"),
        ("HA_CALL_TIMEOUT", "20"),
        ("HA_HEARTBEAT_TIMEOUT", "300"),
        ("HA_CHECKPOINTING_TIMEOUT", "25"),
        ("HA_STOP_GRACE", "15"),
        ("HA_RESTART_STRATEGY_TYPE", "fixed-delay"),
        ("HA_RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS", "5"),
        ("HA_RESTART_STRATEGY_FIXED_DELAY_DELAY", "0.5"),
    ):
        monkeypatch.setenv(name, value)
    program = [sys.executable, str(DRIVERS / "interrupted.py"), "orders", str(driver.folder)]
    for source in ("slow", "stuck"):
        (driver.folder / source).mkdir()
    feed(driver.folder / "slow", 0)
    with driver.running([*RUN, "orders", "--", *program]):
        eventually((driver.folder / "slow done").exists, PATIENCE_S)
        first = driver.pid_of("python")
        assert driver.said.count("the command runs") == 1, "it was interrupted within the program"
        restarts = {each["query"]: each["restarts"] for each in asked(driver, "queries")}
        assert restarts == {"slow": 1, "stuck": 0}, "its region alone"
        feed(driver.folder / "stuck", 0)
        eventually((driver.folder / "stuck done").exists, PATIENCE_S)
        assert driver.pid_of("python") != first, "the program was started again"
        causes = [each["class"] for each in asked(driver, "exceptions")]
        assert causes == ["QueryFailed", "QueryFailed", "exit-75"], "two batches took too long"
        place = Workplace.__new__(Workplace)
        place.jobs = driver.folder / "jobs"
        directory, _, status = state(place)
        assert (directory.epoch, status) == (1, ["status=RUNNING"]), "nobody else led meanwhile"
