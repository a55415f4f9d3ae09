"""``ha run`` with real processes, a directory of this host, and short timings."""

import json
import os
import signal
from pathlib import Path

import pytest

from ha.sidecar.machine.ends import HAD_FAILED, JOB_FAILED, WAS_CANCELED
from leader.layout.lease import Mode
from store.clock import now
from store.local import LocalFiles
from tests.unit.ha.noting import ENDS, NOTES, STAYS, STUBBORN, Notes, run, shown, state
from tests.unit.ha.programs import SHORT_LEASES, Workplace, alive
from tests.unit.ha.waiting import wait_until

TAKEOVER = float(SHORT_LEASES["HA_SHORT_TTL"]) + 1
NOISE = 5.0
"""Seconds that a busy machine may add."""


def test_a_command_that_succeeds_ends_the_job_and_is_not_run_again(workplace: Workplace, notes: Notes) -> None:
    assert run(workplace, "a", ENDS).wait() == 0
    directory, found, status = state(workplace)
    assert (directory.epoch, found.released, status) == (1, True, ["status=FINISHED"])

    again = run(workplace, "b", ENDS)
    assert again.wait() == 0
    assert "the job has finished" in again.said
    assert [name for name, *_ in notes.all()] == ["a"]

    assert run(workplace, "c", ENDS, "--again").wait() == 0
    assert [name for name, *_ in notes.all()] == ["a", "c"]
    assert state(workplace)[2] == ["status=FINISHED"]


SETS = (
    NOTES
    + """
import ha
note("runs")
with ha.lead("orders") as leadership:
    for old, new in zip(*[[ha.Status[name] for name in os.environ["WAY"].split()][each:] for each in (0, 1)]):
        leadership.status.change(old, new)
sys.exit(int(os.environ.get("CODE", "0")))
"""
)


@pytest.mark.parametrize(
    ("way", "code", "end", "said"),
    [
        ("RUNNING CANCELLING", 0, "CANCELED", WAS_CANCELED),
        ("RUNNING FAILING", 0, "FAILED", JOB_FAILED),
        ("RUNNING CANCELLING CANCELED", 0, "CANCELED", WAS_CANCELED),
        ("RUNNING RESTARTING", 0, "FINISHED", 0),
        ("RUNNING FAILING FAILED", 1, "FAILED", HAD_FAILED),
    ],
)
def test_a_program_says_itself_how_its_job_ends(
    workplace: Workplace, notes: Notes, way: str, code: int, end: str, said: int
) -> None:
    assert run(workplace, "a", SETS, WAY=way, CODE=str(code)).wait() == said
    assert state(workplace)[2] == [f"status={end}"]
    assert [what for _, what, *_ in notes.all()] == ["runs"]


def test_what_is_half_cleaned_up_is_cleaned_up_before_the_job_begins_again(workplace: Workplace, notes: Notes) -> None:
    assert run(workplace, "a", ENDS).wait() == 0
    files, home = LocalFiles(workplace.jobs), f"orders/{state(workplace)[0].name}"
    (name,) = [entry.name for entry in files.list(home) if entry.name.startswith("status=")]
    files.rename(f"{home}/{name}", f"{home}/status=FINISHED~cleaning-0123abcd~9")
    files.make_directory(f"{home}/spark/daily")
    assert run(workplace, "b", ENDS, "--again").wait() == 0
    home = f"orders/{state(workplace)[0].name}"
    assert [entry.name for entry in files.list(f"{home}/trash/0123abcd/spark")] == ["daily"]
    assert state(workplace)[2] == ["status=FINISHED"]
    assert [name for name, *_ in notes.all()] == ["a", "b"]


def test_the_command_knows_what_it_leads(workplace: Workplace) -> None:
    source = NOTES + "note({name: value for name, value in os.environ.items() if name.startswith('HA_')})"
    assert run(workplace, "a", source, "--endpoint", "rest=a:1").wait() == 0
    (_, told, _, _), *_ = Notes(workplace).all()
    directory, _, _ = state(workplace)
    assert (told["HA_JOB"], told["HA_EPOCH"], told["HA_SESSION_ID"]) == ("orders", "1", directory.session_id)
    assert told["HA_LEADER_DIRECTORY"] == f"{workplace.jobs.as_uri()}/orders/{directory.name}"
    assert told["HA_FILES"] == workplace.jobs.as_uri()
    assert not Path(told["HA_BELIEF"]).exists(), "it went with the sidecar"


def test_a_command_under_a_sidecar_takes_its_leadership(workplace: Workplace) -> None:
    source = NOTES + (
        "import ha\n"
        "with ha.lead('orders') as leadership:\n"
        "    note([leadership.epoch, leadership.is_leader(), leadership.checkpoints.next()])\n"
    )
    program = run(workplace, "a", source)
    assert program.wait() == 0
    assert [what for _, what, *_ in Notes(workplace).all()] == [[1, True, 1]]


def test_a_command_that_fails_lets_a_standby_take_over(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", STAYS)
    pid = notes.until(1, first)[2]
    second = run(workplace, "b", STAYS)
    second.until_said("contending as b")
    os.kill(pid, signal.SIGKILL)
    name, what, _, epoch = notes.until(2, second)
    assert (name, what, epoch) == ("b", "runs", 2), "the one that failed leaves it to the other for a while"
    assert first.process.poll() is None, "and stays a standby"


THRICE = {"HA_RESTART_STRATEGY": "fixed-delay", "HA_RESTART_ATTEMPTS": "2", "HA_RESTART_DELAY": "0.01"}
"""The command runs three times in a leadership if it fails."""

LATER = {**THRICE, "HA_RESTART_DELAY": "9999"}
"""The restart is so late that no test waits for it."""


def test_a_command_that_fails_is_started_again_before_the_leadership_is_given_back(
    workplace: Workplace, notes: Notes
) -> None:
    program = run(workplace, "a", ENDS, CODE="3", **THRICE)
    notes.until(4, program)
    assert [epoch for *_, epoch in notes.all()][:4] == [1, 1, 1, 2], "restarts keep the epoch; then it begins anew"
    assert program.said.index("the restart strategy gives up here") < program.said.index("granted at epoch 2")
    assert program.said.partition("granted at epoch 2")[0].count("is started again in 0.0 s") == 2
    assert "revoked" not in program.said.partition("the restart strategy gives up here")[0]


@pytest.mark.timed
@pytest.mark.usefixtures("short_leases")
def test_a_job_is_restarting_until_its_command_runs_again(workplace: Workplace, notes: Notes) -> None:
    program = run(workplace, "a", ENDS, CODE="3", **LATER)
    program.until_said("is started again in 9999.0 s")
    assert state(workplace)[2] == ["status=RESTARTING"]

    program.end()
    source = (
        NOTES
        + "again = os.path.exists('notes-2'); open('notes-2', 'w'); note('runs'); stay() if again else sys.exit(3)"
    )
    second = run(workplace, "b", source, **THRICE)
    notes.until(3, second)
    assert state(workplace)[2] == ["status=RUNNING"]


def test_sigterm_asks_the_command_first_and_gives_the_lease_back(workplace: Workplace, notes: Notes) -> None:
    program = run(workplace, "a", STAYS)
    pid = notes.until(1, program)[2]
    program.send(signal.SIGTERM)
    assert program.wait() == 128 + signal.SIGTERM
    assert [what for _, what, *_ in notes.all()] == ["runs", "asked"]
    assert not alive(pid)
    _, found, status = state(workplace)
    assert (found.released, status) == (True, ["status=RUNNING"]), "it was asked to end: the job has not finished"
    assert "revoked" in program.said

    successor = run(workplace, "b", ENDS)
    assert successor.wait() == 0
    assert [name for name, *_ in notes.all()] == ["a", "a", "b"]


def test_sigterm_without_a_grant_just_ends(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", STAYS)
    notes.until(1, first)
    second = run(workplace, "b", STAYS)
    second.until_said("contending as b")
    second.send(signal.SIGTERM)
    assert second.wait() == 128 + signal.SIGTERM
    assert len(notes.all()) == 1
    assert state(workplace)[0].epoch == 1


def test_a_stubborn_command_is_killed_after_the_grace(workplace: Workplace, notes: Notes) -> None:
    program = run(workplace, "a", STUBBORN, HA_STOP_GRACE="0.5")
    pid = notes.until(1, program)[2]
    program.send(signal.SIGTERM)
    assert program.wait() == 128 + signal.SIGTERM
    assert [what for _, what, *_ in notes.all()] == ["runs", "asked"]
    assert not alive(pid)
    assert "did not end in time and is killed" in program.said
    assert state(workplace)[1].released


def test_sigkill_of_the_sidecar_kills_the_command_and_the_standby_takes_over(
    workplace: Workplace, notes: Notes
) -> None:
    taken_over(workplace, notes)


@pytest.mark.timed
@pytest.mark.usefixtures("short_leases")
def test_a_standby_takes_over_as_soon_as_the_lease_has_ended(workplace: Workplace, notes: Notes) -> None:
    assert taken_over(workplace, notes) <= TAKEOVER + NOISE


def taken_over(workplace: Workplace, notes: Notes) -> float:
    """Kill a sidecar beside a standby; returns after how many seconds the standby's command ran."""
    first = run(workplace, "a", STUBBORN)
    pid = notes.until(1, first)[2]
    second = run(workplace, "b", STAYS)
    second.until_said("contending as b")
    os.kill(first.pid, signal.SIGKILL)
    killed = now()
    wait_until(lambda: not alive(pid))
    name, *_, epoch = notes.until(2, second)
    assert (name, epoch) == ("b", 2)
    return now() - killed


@pytest.mark.timed
@pytest.mark.usefixtures("short_leases")
@pytest.mark.parametrize("settings", [{}, {**THRICE, "HA_RESTART_DELAY": "0"}], ids=["", "again"])
def test_a_frozen_sidecars_command_is_dead_before_the_standby_starts_its_own(
    workplace: Workplace, notes: Notes, settings: dict[str, str]
) -> None:
    first = run(workplace, "a", STUBBORN, **settings)
    pid = notes.until(1, first)[2]
    successor = NOTES + f"note('alive' if os.path.exists('/proc/{pid}/exe') else 'dead'); stay()"
    second = run(workplace, "b", successor)
    second.until_said("contending as b")
    os.kill(first.pid, signal.SIGSTOP)
    name, what, _, epoch = notes.until(2, second)
    assert (name, epoch) == ("b", 2)
    assert what == "dead" or not alive(pid)
    os.kill(first.pid, signal.SIGCONT)
    first.until_said("revoked")
    assert [who for who, what, *_ in notes.all() if what == "runs"] == ["a"]


def test_an_operators_switchover(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", STAYS)
    notes.until(1, first)
    second, third = run(workplace, "b", STAYS), run(workplace, "c", STAYS)
    for program in (second, third):
        program.until_said("contending as")
    assert workplace.ha("job", "handover", "orders", "--to", "c").wait() == 0
    wait_until(lambda: [name for name, what, *_ in notes.all() if what == "runs"] == ["a", "c"])
    _, found, _ = state(workplace)
    assert found.lease is not None
    assert found.lease.contender == "c"
    assert found.lease.mode is Mode.HDFS


def test_two_that_start_together_run_one_command(workplace: Workplace, notes: Notes) -> None:
    programs = [run(workplace, name, STAYS) for name in ("a", "b", "c")]
    for program in programs:
        program.until_said("contending as")
    notes.until(1, programs[0])
    assert workplace.ha("job", "leader", "orders", "--timeout", "20").wait() == 0
    assert len(notes.all()) == 1
    assert sum("granted" in program.said for program in programs) == 1


def test_the_log_for_machines_is_json(workplace: Workplace, notes: Notes) -> None:
    program = run(workplace, "a", ENDS, "--log-format", "json")
    assert program.wait() == 0
    messages = [json.loads(line)["message"] for line in program.said.splitlines()]
    assert messages[0] == f"The jobs are in {workplace.jobs.as_uri()} (HA_FILES), there is no ZooKeeper (default)."
    assert any(message.startswith("orders: granted at epoch 1") for message in messages)
    assert len(notes.all()) == 1


def test_a_second_sidecar_of_the_same_name_is_refused(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", STAYS, "--standby", "warm")
    notes.until(1, first)
    second = run(workplace, "a", STAYS)
    assert second.wait() == 2
    assert "Another process that is called a leads this job" in second.said
    assert first.process.poll() is None
    assert len(notes.all()) == 1


ENDS_BY_EPOCH = (
    NOTES
    + """
note('runs')
epoch = int(os.environ['HA_EPOCH'])
if epoch == 1: sys.exit(3)
if epoch == 2: os.kill(os.getpid(), signal.SIGKILL)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
stay()
"""
)


def test_the_history_says_how_each_leadership_ended(workplace: Workplace, notes: Notes) -> None:
    program = run(workplace, "a", ENDS_BY_EPOCH)
    notes.until(3, program)
    assert workplace.ha("job", "handover", "orders").wait() == 1, "it has no standby: it leads again"
    notes.until(4, program)
    program.send(signal.SIGTERM)
    program.wait()
    rows = shown(workplace, "job", "history")
    assert [each["epoch"] for each in rows] == [1, 2, 3, 4]
    assert [each["ended"] for each in rows] == ["exit-3", "signal-9", "resigned", "stopped"]
    assert [each["by"] is not None for each in rows] == [False, False, True, False]
