"""A host without pidfds (RHEL 8, gVisor, older profiles of containers): sidecar and guard do what they do elsewhere."""

import errno
import signal
import sys

import pytest

from ha.sidecar.command.memory import descendants
from tests.unit.ha import without_pidfds
from tests.unit.ha.noting import ENDS, STAYS, STUBBORN, Notes
from tests.unit.ha.programs import HA, Program, Workplace, alive
from tests.unit.ha.waiting import wait_until

pytestmark = [pytest.mark.programs, pytest.mark.slow]


@pytest.fixture(params=[errno.ENOSYS, errno.EPERM], ids=["ENOSYS", "EPERM"])
def refusal(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


def run(workplace: Workplace, refusal: int, source: str, **environment: str) -> Program:
    filtered = (sys.executable, without_pidfds.__file__, f"{refusal}", *HA)
    command = ("run", "orders", "--contender", "a", "--", sys.executable, "-c", source)
    return workplace.start(*filtered, *command, NAME="a", **environment)


@pytest.mark.parametrize(("code", "said"), [("0", 0), ("3", 1)])
def test_a_command_ends_as_it_ends(workplace: Workplace, notes: Notes, refusal: int, code: str, said: int) -> None:
    once = {"HA_RESTART_STRATEGY": "none", "HA_FAILOVER_MAX_ATTEMPTS": "1"}
    sidecar = run(workplace, refusal, ENDS, CODE=code, **once)
    assert sidecar.wait() == said, sidecar.said
    assert len(notes.all()) == 1
    assert "Traceback" not in sidecar.said


def test_a_killed_sidecar_takes_its_command_along(workplace: Workplace, notes: Notes, refusal: int) -> None:
    sidecar = run(workplace, refusal, STUBBORN)
    pid = notes.until(1, sidecar)[2]
    sidecar.send(signal.SIGKILL)
    wait_until(lambda: not alive(pid), what="the guard has killed it")


FAMILY = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import signal, sys; print('up', flush=True); signal.pause()"],
                 start_new_session=True, stdout=open("child", "w"))
"""


def test_what_it_has_started_elsewhere_goes_with_it(workplace: Workplace, notes: Notes, refusal: int) -> None:
    sidecar = run(workplace, refusal, FAMILY + STAYS)
    pid = notes.until(1, sidecar)[2]
    child = workplace.work / "child"
    wait_until(lambda: child.exists() and child.read_text())
    (grand,) = descendants(pid)
    sidecar.send(signal.SIGTERM)
    sidecar.wait()
    wait_until(lambda: not alive(pid) and not alive(grand), what="all of it is gone")
