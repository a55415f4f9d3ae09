"""A real driver with a batch that cannot be interrupted, under ``ha run`` on ``file://``: it goes on in place."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leader.layout.names import newest
from store.local import LocalFiles
from tests.limits import HANGS_S
from tests.system.spark.helpers import eventually
from tests.system.spark.test_checkpoints import feed
from tests.system.spark.test_supervised import DRIVERS, ROOT, RUN, Driver

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

PATIENCE_S = 400.0


def exceptions(driver: Driver) -> list[dict[str, Any]]:
    command = [sys.executable, "-P", "-m", "ha.cli", "job", "exceptions", "orders", "--json", "--files", driver.root]
    found: list[dict[str, Any]] = json.loads(
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=HANGS_S).stdout
    )
    return found


def test_a_program_whose_query_does_not_stop_ends_with_75_and_is_started_again_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("HA_SHORT_TTL", "120"),  # a lease that no busy machine loses: this is about what happens within one
        ("HA_LONG_TTL", "600"),
        ("HA_SESSION_TIMEOUT", "60"),
        ("HA_CALL_TIMEOUT", "8"),
        ("HA_BATCH_DEADLINE", "8"),
        ("HA_STOP_GRACE", "4"),
        ("HA_RESTART_STRATEGY", "fixed-delay"),
        ("HA_RESTART_ATTEMPTS", "9"),
        ("HA_RESTART_DELAY", "0.5"),
    ):
        monkeypatch.setenv(name, value)
    driver = Driver("orders", (tmp_path / "jobs").as_uri(), "", tmp_path)
    feed(driver.source, 0)
    with driver.running([*RUN, "orders", "--", sys.executable, str(DRIVERS / "stuck.py"), "orders", str(tmp_path)]):
        eventually(lambda: driver.said.count("the command runs") == 2, PATIENCE_S)
        assert "did not stop within 4 s, after lines: its batch after the start takes more than 8 s" in driver.said
        assert "the command has ended with 75." in driver.said
        assert [each["class"] for each in exceptions(driver)] == ["QueryFailed", "exit-75"]
        directory = newest([each.name for each in LocalFiles(tmp_path / "jobs").list("orders")])
        assert directory is not None
        assert directory.epoch == 1, "nobody else led meanwhile"
