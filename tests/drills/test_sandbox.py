"""One drill against the sandbox: the same engine, where there is no Docker."""

from pathlib import Path

import pytest

from ha.drill.catalogue import DRILLS
from ha.drill.guards import HYBRID
from ha.drill.sandbox_ground import SandboxGround
from ha.drill.series import run_series
from tests.drills.verdict import wrong

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]


def test_a_drill_in_the_sandbox(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ground, steps = SandboxGround(tmp_path / "sandbox"), list[str]()
    drills = [DRILLS["kill-driver"], DRILLS["lose-host"]]
    try:
        found = [outcome for outcome, _ in run_series(drills, ground, [HYBRID], tmp_path, steps.append)]
    finally:
        ground.down()
    assert not wrong(found[0]), steps
    assert (found[1].drill, found[1].status) == ("lose-host", "skipped")
    assert found[1].reason.startswith("NOT RUN")
    assert found[0].measures["leader_changes"] == 1
    assert any("All is well" in step for step in steps)
    assert caplog.records == []
