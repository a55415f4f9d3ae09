"""What a sidecar shares with its command on the host is removed, one thing after the other: the job goes on."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import cast

import pytest

from ha.config.snapshot_dir import cluster_of, own_base
from ha.program import grant_file
from ha.sidecar.command.guarded_command import GuardedCommand, Run
from ha.sidecar.command.run_directory import RunDirectory
from leader.layout.names import LeaderDirectory
from tests.patience import PATIENCE_S
from tests.unit.ha.led import session
from tests.unit.ha.noting import STAYS, Notes, run, state
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.sidecar.test_warm_standby import warm
from tests.unit.ha.waiting import wait_until

RUNS = "hybrid-ha-run-*"

THINGS = {
    "grant and marks": f"{RUNS}/grant-*",
    "deadline": f"{RUNS}/deadline",
    "heartbeat": f"{RUNS}/heartbeat-*",
    "report": f"{RUNS}/queries-*",
    "verbs of the program": f"{RUNS}/settle-*",
    "configuration of Spark": f"{RUNS}/spark-*",
    "stored program": f"{RUNS}/program-*",
    "directory": RUNS,
    "temporary directory": ".",
}
PLAIN = ["deadline", "directory", "temporary directory"]
"""Of a command that is no program of ours, and was not stored."""

ALL_THERE = (
    "import os\n"
    "for name in ('HA_HEARTBEAT', 'HA_QUERIES', 'HA_SETTLE'):\n"
    "    if os.environ.get(name): open(os.environ[name] + '.able', 'w').close()\n"
)


def place(workplace: Workplace, name: str) -> Path:
    made = workplace.directory / f"tmp-{name}"
    made.mkdir(exist_ok=True)
    return made


def start(workplace: Workplace, name: str, source: str, *options: str, **environment: str) -> Program:
    return run(workplace, name, source, *options, **{"TMPDIR": f"{place(workplace, name)}", **environment})


def remove(folder: Path, thing: str) -> None:
    found = [folder] if thing == "temporary directory" else sorted(folder.glob(THINGS[thing]))
    for each in found:
        if each.is_dir():
            gone = each.with_name("gone")  # at once: its sidecar may write there meanwhile
            shutil.rmtree(each.rename(gone))
        else:
            each.unlink()
    if thing in PLAIN:
        assert found


@pytest.mark.parametrize("thing", PLAIN)
def test_a_cold_standby_leads_in_its_usual_time(workplace: Workplace, notes: Notes, thing: str) -> None:
    first = start(workplace, "a", STAYS)
    notes.until(1, first)
    second = start(workplace, "b", STAYS)
    second.until_said("contending as b")
    remove(place(workplace, "b"), thing)
    first.send(signal.SIGTERM)
    first.wait()
    notes.until(3, second)
    assert state(workplace)[0].epoch == 2, f"at once: {second.said}"


@pytest.mark.parametrize("thing", ["lock of its slot", "slot", "socket of ha host status"])
def test_a_standby_leads_without_what_it_has_in_shared_memory(workplace: Workplace, notes: Notes, thing: str) -> None:
    patient = {"HA_ADOPT_WITHIN": "60"}
    first = start(workplace, "a", STAYS, **patient)
    notes.until(1, first)
    second = start(workplace, "b", STAYS, **patient)
    second.until_said("contending as b")
    slots = own_base() / f"sidecars-{cluster_of(workplace.jobs.as_uri(), None)}"
    if thing == "socket of ha host status":
        (found,) = wait_until(lambda: list((own_base() / "processes").glob(f"{second.pid}-*.socket")))
    else:
        found = slots / "orders~1" / ("lock" if thing == "lock of its slot" else "")
    shutil.rmtree(found) if found.is_dir() else found.unlink()
    first.send(signal.SIGTERM)
    first.wait()
    notes.until(3, second)
    assert state(workplace)[0].epoch == 2, f"at once: {second.said}"
    second.send(signal.SIGTERM)
    assert second.wait() == 128 + signal.SIGTERM
    assert not list(slots.glob("*/left")), "nothing is left to a successor"


@pytest.mark.parametrize("thing", THINGS)
def test_a_warm_standby_leads_in_its_usual_time(workplace: Workplace, notes: Notes, thing: str) -> None:
    first = start(workplace, "a", STAYS)
    notes.until(1, first)
    second = start(workplace, "b", ALL_THERE + warm(), "--standby", "warm", HA_HEARTBEAT_TIMEOUT="0")
    notes.until(2, second)
    wait_until(lambda: list(place(workplace, "b").glob(f"{RUNS}/grant-1.awaited")), what="it waits")
    remove(place(workplace, "b"), thing)
    if thing in PLAIN:
        wait_until(lambda: list(place(workplace, "b").glob(f"{RUNS}/deadline")), what="it is made again")
    first.send(signal.SIGTERM)
    first.wait()
    wait_until(lambda: [2, True] in [what for _, what, *_ in notes.all()], what=f"b leads: {second.said}")
    assert len({pid for name, _, pid, _ in notes.all() if name == "b"}) == 1, "the same process"


@pytest.mark.parametrize("thing", PLAIN)
def test_a_leader_goes_on_and_starts_its_command_again(workplace: Workplace, notes: Notes, thing: str) -> None:
    again = {"HA_RESTART_STRATEGY": "fixed-delay", "HA_RESTART_ATTEMPTS": "1", "HA_RESTART_DELAY": "0"}
    leader = start(workplace, "a", STAYS, **again)
    pid = notes.until(1, leader)[2]
    remove(place(workplace, "a"), thing)
    os.kill(pid, signal.SIGKILL)
    notes.until(2, leader)
    assert state(workplace)[0].epoch == 1, leader.said
    leader.send(signal.SIGTERM)
    assert leader.wait() == 128 + signal.SIGTERM
    assert not list(place(workplace, "a").glob(RUNS)), "nothing is left"


def test_a_program_that_took_its_grant_has_finished_although_the_mark_is_gone(tmp_path: Path) -> None:
    grant_file.grant(tmp_path / "grant", LeaderDirectory(7, session(7)), "file:///jobs/orders")
    grant_file.take(tmp_path / "grant", 0)
    run = Run(cast("GuardedCommand", None), tmp_path / "grant", 7)
    run.note_taken()
    shutil.rmtree(tmp_path)
    assert run.has_finished


def test_the_warm_command_of_a_stored_program_whose_files_are_gone_is_replaced(
    workplace: Workplace, notes: Notes
) -> None:
    program = workplace.directory / "program.py"
    program.write_text(warm().replace('open("notes"', f'open("{workplace.work}/notes"'))
    cache = workplace.directory / "cache"
    first = start(workplace, "a", STAYS)
    notes.until(1, first)
    submit = ("job", "submit", "orders", "--no-preflight", "--file", f"{program}", "--", sys.executable, "program.py")
    assert workplace.ha(*submit).wait() == 0
    environment = {"TMPDIR": f"{place(workplace, 'b')}", "XDG_CACHE_HOME": f"{cache}", "NAME": "b"}
    second = workplace.ha("run", "orders", "--contender", "b", "--standby", "warm", **environment)
    notes.until(2, second)
    remove(place(workplace, "b"), "stored program")
    shutil.rmtree(cache)
    first.send(signal.SIGTERM)
    first.wait()
    wait_until(lambda: [2, True] in [what for _, what, *_ in notes.all()], what=f"b leads: {second.said}")
    assert [what for name, what, *_ in notes.all() if name == "b"] == ["warm", "warm", [2, True]]
    assert list(place(workplace, "b").glob(f"{RUNS}/program-*/program.py"))


def test_systemd_leaves_it_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (cleaner := shutil.which("systemd-tmpfiles")) is None:
        pytest.skip("there is no systemd-tmpfiles")
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path / 'tmp'}")
    made, left = RunDirectory(), tmp_path / "tmp" / "left"
    left.mkdir()
    for each in (made.path / "deadline", left / "file"):
        each.touch()
    rules = tmp_path / "rules.conf"
    rules.write_text(f"d {tmp_path / 'tmp'} 1777 - - 1us\n")
    for _ in range(2):
        subprocess.run([cleaner, "--clean", f"{rules}"], check=True, timeout=PATIENCE_S)
    assert not left.exists()
    assert (made.path / "deadline").exists()
    made.close()


def test_one_whose_name_another_user_has_taken_meanwhile_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path}")
    made = RunDirectory()
    before = made.path
    before.rmdir()
    before.mkdir()
    before.chmod(0o777)
    with pytest.raises(PermissionError):
        made.make()
    made.make(used=False)
    assert made.path != before
    assert made.path.stat().st_mode & 0o777 == 0o700
    made.close()


def test_a_dead_sidecar_s_directory_and_what_its_command_left_are_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path}")
    dead, living, other = tmp_path / "hybrid-ha-run-abcdefgh", RunDirectory(), tmp_path / "hybrid-ha-run-of-mine"
    dead.mkdir(0o700)
    other.mkdir(0o700)
    escaped = subprocess.Popen(["/bin/sleep", "600"], env={"HA_BELIEF": f"{dead}/deadline"}, start_new_session=True)
    bystander = subprocess.Popen(["/bin/sleep", "600"], env={"HA_BELIEF": f"{living.path}/deadline"})
    try:
        # A process that the kernel is still starting shows no environment.
        wait_until(lambda: all(Path(f"/proc/{each.pid}/environ").read_bytes() for each in (escaped, bystander)))
        made = RunDirectory()
        assert escaped.wait(PATIENCE_S) == -signal.SIGKILL
        assert not dead.exists()
        assert (living.path.exists(), other.exists(), bystander.poll()) == (True, True, None)
        made.close()
        living.close()
    finally:
        for each in (escaped, bystander):
            each.kill()
            each.wait()
