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
    return tmp_path / "copy"


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
