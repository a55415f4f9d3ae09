"""Each lack in each process, for 15 s: nobody ends of it, it is said, and the job runs soon after."""

import os
import signal
import sys
from pathlib import Path

import pytest

from store.clock import now
from tests.system.lacks.taking import LISTENS, SHARED, Lack, Place, tree
from tests.unit.ha.noting import NOTES, Notes, shown
from tests.unit.ha.programs import HA, Program, Workplace, alive
from tests.unit.ha.waiting import wait_until

pytestmark = pytest.mark.timed

LASTS_S = 15.0
ALL = ["tasks", "descriptors", "memory", "disk", "inodes", "ports"]

COMMAND = (
    NOTES
    + """
import subprocess
def leave(*_):
    subprocess.Popen(["sleep", "3600"], start_new_session=True)
    sys.exit(0)
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(4))
signal.signal(signal.SIGUSR2, leave)
note("runs")
stay()
"""
)

SAID = {
    "tasks": "could not be started: Resource temporarily unavailable",
    "descriptors": "could not be started: Too many open files",
    "disk": "could not be started: No space left on device",
    "inodes": "could not be started: No space left on device",
}
"""What a sidecar says that cannot start its command; it needs no port for that, and no more memory than it has."""


def start(workplace: Workplace, *arguments: str) -> Program:
    return workplace.start(*Place.command(*HA, *arguments))


def sidecar(workplace: Workplace) -> Program:
    return start(workplace, "run", "orders", "--contender", "a", "--", sys.executable, "-c", COMMAND)


def passed(since: float) -> bool:
    """Whether the lack has lasted."""
    return now() >= since + LASTS_S


def last(program: Program, since: float) -> None:
    """Wait until the lack has lasted; the program lives through it."""
    wait_until(lambda: passed(since))
    assert program.process.poll() is None, program.said


def failures(workplace: Workplace) -> str:
    return f"{shown(workplace, 'job', 'exceptions')}"


@pytest.mark.parametrize("whole", [False, True], ids=["its own", "of all below"])
@pytest.mark.parametrize("lack", ALL)
def test_a_sidecar_starts_its_command_again(
    workplace: Workplace, notes: Notes, place: Place, lack: str, *, whole: bool
) -> None:
    leader = sidecar(workplace)
    command = notes.until(1, leader)[2]
    taken: Lack = getattr(place, lack)(*(tree(leader.pid) if whole else [leader.pid]))
    said = "" if whole and lack == "tasks" else SAID.get(lack, "")  # those that have ended are free again
    with taken:
        since = now()
        os.kill(command, signal.SIGUSR1)
        leader.until_said(said or "is started again")
        last(leader, since)
    notes.until(2, leader)
    assert leader.process.poll() is None
    wait_until(lambda: said in failures(workplace), what=f"a failure that says {said}")


def test_a_guard_that_has_no_process_for_the_command_begins_it_later(
    workplace: Workplace, notes: Notes, place: Place
) -> None:
    leader = sidecar(workplace)
    command = notes.until(1, leader)[2]
    with place.tasks(leader.pid, but=1) as refused:  # the guard itself
        since = now()
        os.kill(command, signal.SIGUSR1)
        leader.until_said("the command cannot be started yet: Resource temporarily unavailable.")
        last(leader, since)
        assert refused()
        assert len(notes.all()) == 1
    notes.until(2, leader)


@pytest.mark.parametrize("lack", ALL)
def test_a_guard_ends_what_its_command_has_left_and_says_so(
    workplace: Workplace, notes: Notes, place: Place, lack: str
) -> None:
    leader = sidecar(workplace)
    command = notes.until(1, leader)[2]
    guard = tree(leader.pid)[1]
    with getattr(place, lack)(guard):
        since = now()
        os.kill(command, signal.SIGUSR2)
        (left,) = wait_until(lambda: [each for each in tree(guard)[1:] if words(each)[:1] == ["sleep"]])
        last(leader, since)
    leader.until_said("it left programs behind")
    wait_until(lambda: not alive(left), what="the end of what was left")
    assert "Traceback" not in leader.said


@pytest.mark.parametrize("lack", ALL)
def test_the_command_of_a_guard_that_is_killed_meanwhile_is_started_again(
    workplace: Workplace, notes: Notes, place: Place, lack: str
) -> None:
    leader = sidecar(workplace)
    notes.until(1, leader)
    with getattr(place, lack)(leader.pid):
        since = now()
        os.kill(tree(leader.pid)[1], signal.SIGKILL)
        last(leader, since)
    notes.until(2, leader)
    assert "Traceback" not in leader.said


@pytest.mark.parametrize("lack", ALL)
def test_a_daemon_takes_a_job_over(workplace: Workplace, place: Place, lack: str) -> None:
    first = workplace.ha("host", "daemon", "orders", "--contender", "b", HA_SNAPSHOTS="off", HA_LISTEN="127.0.0.1:0")
    first.until_said("granted")
    second = start(workplace, "host", "daemon", "orders", "--contender", "a")
    serves(place, second)
    with getattr(place, lack)(second.pid):
        since = now()
        first.send(signal.SIGTERM)
        meets(second, lack)
        last(second, since)
    second.until_said("granted")
    serves(place, second)


@pytest.mark.parametrize("lack", ALL)
def test_an_agent_answers(workplace: Workplace, place: Place, lack: str) -> None:
    agent = start(workplace, "host", "agent", "orders")
    serves(place, agent)
    snapshots = Path(f"/proc/{agent.pid}/root{SHARED}/snapshots")
    with getattr(place, lack)(agent.pid):
        since = now()
        meets(agent, lack)
        last(agent, since)
    before = beat(snapshots)
    wait_until(lambda: beat(snapshots) > before, what=f"it writes snapshots; it said {agent.said}")
    serves(place, agent)


def serves(place: Place, program: Program) -> None:
    """Wait until a process answers, and writes the snapshots of its host."""
    program.until_said("The HTTP API answers at")
    program.until_said("This process answers lookups of this host")
    assert "ok" in place.ask(program.pid, f"http://{LISTENS}/livez").lower()


def meets(program: Program, lack: str) -> None:
    """Wait until a process whose snapshots need what is lacked has said so."""
    why = {"descriptors": "Too many open files", "disk": "No space left", "inodes": "No space left"}.get(lack)
    if why is not None:
        program.until_said(f"does not work: {why}")


def beat(snapshots: Path) -> int:
    return max((each.stat().st_mtime_ns for each in snapshots.glob("*/agent")), default=0)


def words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []
