"""An upgrade in place below a sidecar that stands by: it says so before it is needed, and passes the job on."""

import shutil
import signal
from pathlib import Path

import pytest

import ha
from tests.unit.ha.cli.test_status import shown
from tests.unit.ha.noting import STAYS, UNHURRIED, Notes, run
from tests.unit.ha.programs import Workplace
from tests.unit.ha.sidecar.test_escalation import failures
from tests.unit.ha.waiting import wait_until

pytestmark = [pytest.mark.programs, pytest.mark.slow]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Another installation, which is replaced."""
    for name in ("ha", "leader", "store"):
        source = Path(ha.__file__).parents[1] / name
        shutil.copytree(source, tmp_path / "copy" / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "copy/hybrid_ha-1.0.dist-info").mkdir()
    return tmp_path / "copy"


def test_a_sidecar_below_which_another_version_is_installed_says_so_once(
    workplace: Workplace, notes: Notes, copy: Path
) -> None:
    """R63 of the reports, its other half: all files are there, and are not those that the process runs."""
    leader = run(workplace, "a", STAYS, PYTHONPATH=str(copy))
    notes.until(1, leader)
    (job,) = shown(workplace, leader)[0]["jobs"]
    assert job["not_eligible"] is None
    (copy / "hybrid_ha-1.0.dist-info").rename(copy / "hybrid_ha-1.1.dist-info")
    for _ in range(2):
        (job,) = shown(workplace, leader)[0]["jobs"]
        assert "runs version 1.0 of hybrid-ha, and 1.1 is installed" in job["not_eligible"]
    assert job["is_leader"], "it goes on"
    assert leader.said.count("and 1.1 is installed") == 1


def test_a_standby_whose_files_are_gone_says_so_and_passes_the_job_on(
    workplace: Workplace, notes: Notes, copy: Path
) -> None:
    first = run(workplace, "a", STAYS, **UNHURRIED)
    notes.until(1, first)
    standby = run(workplace, "b", STAYS, PYTHONPATH=str(copy), **UNHURRIED)
    standby.until_said("contending as b")
    (copy / "ha/sidecar/command/guard.py").unlink()
    wait_until(lambda: "is gone" in str(shown(workplace, standby)[0]["jobs"][0]["not_eligible"]))
    first.send(signal.SIGKILL)
    standby.until_said("The command could not be started")
    (failure,) = failures(workplace)
    assert (failure["class"], failure["epoch"]) == ("not-started", 2)
    assert failure["message"].endswith(
        "guard.py is gone: this installation was replaced while its processes ran. Start the sidecar anew."
    )
    third = run(workplace, "c", STAYS, **UNHURRIED)
    assert notes.until(2, third)[0] == "c"
