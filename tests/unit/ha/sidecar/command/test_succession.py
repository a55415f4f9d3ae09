"""A sidecar is killed and its command is not: the next ``ha run`` on the host takes both up, with real processes.

The times to live are long, so that nothing here depends on how fast a process starts.
"""

import os
import signal
from pathlib import Path

import pytest

from ha.daemon.local_registry import local_processes
from leader.job.status import pick
from leader.layout.lease import Mode
from store.local import LocalFiles
from tests.unit.ha.noting import NOTES, STAYS, Notes, run, state
from tests.unit.ha.programs import Program, Workplace, alive
from tests.unit.ha.waiting import wait_until

pytestmark = pytest.mark.programs

PATIENT = {"HA_SHORT_TTL": "24", "HA_LONG_TTL": "48", "HA_ADOPT_WITHIN": "60"}

ENDS_LATER = NOTES + (
    "import time\nnote('runs')\nwhile not os.path.exists('end'): time.sleep(0.01)\nsys.exit(int(open('end').read()))"
)


def start(workplace: Workplace, name: str, source: str = STAYS, *options: str, **environment: str) -> Program:
    return run(workplace, name, source, *options, **{**PATIENT, **environment})


def kill(program: Program) -> None:
    program.send(signal.SIGKILL)
    program.wait()


def status(workplace: Workplace) -> tuple[str, int]:
    directory, _, _ = state(workplace)
    found = pick(each.name for each in LocalFiles(workplace.jobs).list(f"orders/{directory.name}"))
    return (found.status.name, found.sequence) if found is not None else ("", 0)


def grants(workplace: Workplace) -> list[str]:
    directory, _, _ = state(workplace)
    files = LocalFiles(workplace.jobs)
    names = [each.name for each in files.list(f"orders/{directory.name}/history")]
    return sorted(name.partition("~")[2] for name in names)


def orphaned(workplace: Workplace, notes: Notes, source: str = STAYS, **environment: str) -> tuple[int, Program]:
    """Start a sidecar, and kill it once its command runs; returns the command's process id."""
    first = start(workplace, "a", source, **environment)
    pid = notes.until(1, first)[2]
    first.until_said("the command runs")
    kill(first)
    return pid, first


def test_the_next_sidecar_takes_up_epoch_session_and_command(workplace: Workplace, notes: Notes) -> None:
    pid, _ = orphaned(workplace, notes)
    before, record, _ = state(workplace)
    _, written = status(workplace)
    second = start(workplace, "b")
    second.until_said(f"granted at epoch 1, session {before.session_id} (adopted)")
    wait_until(lambda: status(workplace) == ("RUNNING", written + 2), what="RECONCILING, then RUNNING")
    assert alive(pid)
    directory, found, _ = state(workplace)
    assert directory == before
    assert found.lease is not None
    assert record.lease is not None
    assert (found.lease.contender, found.lease.owner) == ("b", before.session_id)
    assert found.lease.sequence >= record.lease.sequence + 10_000
    is_shown(workplace, second)
    shared = Path("/proc", str(second.pid), "maps").read_text()
    (deadline,) = {line.split()[-1] for line in shared.splitlines() if line.endswith("/deadline")}
    second.send(signal.SIGTERM)
    assert second.wait() == 128 + signal.SIGTERM
    assert not alive(pid)
    assert not Path(deadline).parent.exists(), "nothing is left on the host"
    assert [what for _, what, *_ in notes.all()] == ["runs", "asked"], "one command, which was asked to end"
    assert state(workplace)[1].lease.mode is Mode.RELEASED  # type: ignore[union-attr]


@pytest.mark.parametrize(("code", "end"), [(0, "FINISHED"), (3, "RUNNING")])
def test_a_command_that_ends_meanwhile_has_ended_as_if_its_sidecar_had_seen_it(
    workplace: Workplace, notes: Notes, code: int, end: str
) -> None:
    pid, _ = orphaned(workplace, notes, ENDS_LATER)
    (workplace.work / "end").write_text(str(code))
    wait_until(lambda: not alive(pid))
    second = start(workplace, "b", ENDS_LATER, HA_HAND_OVER="60")
    second.until_said(f"the command has ended with {code}")
    if code == 0:
        assert second.wait() == 0
    else:
        second.until_said("revoked")
    assert state(workplace)[2] == [f"status={end}"]
    assert len(notes.all()) == 1, "it was not run again"


def test_two_that_come_at_once_do_not_share_a_command(workplace: Workplace, notes: Notes) -> None:
    pid, _ = orphaned(workplace, notes)
    both = [start(workplace, name) for name in ("b", "c")]
    wait_until(lambda: all("taking up" in each.said or "contending" in each.said for each in both))
    assert sorted("taking up" in each.said for each in both) == [False, True]
    assert alive(pid)


def test_a_leadership_that_was_seized_meanwhile_is_not_taken_up(workplace: Workplace, notes: Notes) -> None:
    pid, _ = orphaned(workplace, notes)
    directory, record, _ = state(workplace)
    assert record.lease is not None
    files, home = LocalFiles(workplace.jobs), f"orders/{directory.name}/record"
    stranger = record.lease.name.replace(record.lease.owner, "0" * 8 + record.lease.owner[8:])
    files.rename(f"{home}/{record.lease.name}", f"{home}/{stranger}")
    second = start(workplace, "b")
    second.until_said("It cannot be taken up: its lease was seized by a.")
    wait_until(lambda: not alive(pid))
    assert "(adopted)" not in second.said


def is_shown(workplace: Workplace, second: Program) -> None:
    (shown,) = [each for process in local_processes() if process["pid"] == second.pid for each in process["jobs"]]
    assert (shown["is_leader"], shown["epoch"]) == (True, 1)
    assert (shown["command"]["state"], shown["command"]["starts"], shown["command"]["taken_up"]) == ("running", 1, 1)
    wait_until(lambda: any("adopted~b" in each for each in grants(workplace)), what="a line in the history")
    said = workplace.ha("job", "history", "orders")
    assert said.wait() == 0
    assert said.output.read_text().endswith("adopted by b\n")


def test_a_sidecar_may_be_killed_again_and_again(workplace: Workplace, notes: Notes) -> None:
    strategy = {"HA_RESTART_STRATEGY": "fixed-delay", "HA_RESTART_DELAY": "0.01"}
    pid, _ = orphaned(workplace, notes, **strategy)
    second = start(workplace, "b", **strategy)
    second.until_said("(adopted)")
    os.kill(pid, signal.SIGKILL)
    pid = notes.until(2, second)[2]
    second.until_said("the command runs")
    kill(second)
    third = start(workplace, "c", **strategy)
    third.until_said("(adopted)")
    assert alive(pid), "the door of the new guard is open, too"
    assert [epoch for *_, epoch in notes.all()] == [1, 1]


def test_another_command_is_killed_and_the_sidecar_contends_as_usual(workplace: Workplace, notes: Notes) -> None:
    pid, _ = orphaned(workplace, notes)
    second = start(workplace, "b", STAYS + " ")
    second.until_said("contending as b")
    assert "is not the one to run: it is killed" in second.said
    assert "taking up" not in second.said
    assert not alive(pid)
