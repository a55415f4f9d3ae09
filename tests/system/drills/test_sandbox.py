"""Drills against the sandbox: the same engine without Docker."""

from pathlib import Path

import pytest

from ha.drill.catalogue import DRILLS
from ha.drill.ha_provider import HYBRID
from ha.drill.runner import run_series
from ha.drill.sandbox_environment import SandboxEnvironment
from tests.unit.ha.drill.verdict import wrong

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(480)]


def test_drills_in_the_sandbox(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    environment, steps = SandboxEnvironment(tmp_path / "sandbox"), list[str]()
    drills = [DRILLS[name] for name in ("kill-driver", "zookeeper-lies", "query-dies", "lose-host")]
    try:
        found = [outcome for outcome, _ in run_series(drills, environment, [HYBRID], tmp_path, steps.append)]
    finally:
        environment.down()
    killed, lied, died, lost = found
    assert not wrong(killed), steps
    assert not wrong(lied), steps
    assert not wrong(died), steps
    assert (lost.drill, lost.status) == ("lose-host", "skipped")
    assert lost.reason.startswith("NOT RUN")
    assert killed.measures["leader_changes"] == 1
    assert lied.measures["leader_changes"] == 0
    assert died.measures["leader_changes"] == 0
    assert any("All is well" in step for step in steps)
    # The suite's own archive of classes is made on that thread, meanwhile.
    assert [each for each in caplog.records if each.threadName != "ha-class-data"] == []
