"""``ha stop``, ``ha cancel`` and ``ha restart``, with real sidecars and commands."""

import signal

import pytest

from leader.job.admin import JobAdmin
from store.open import open_files
from tests.unit.ha.noting import NOTES, STAYS, STUBBORN, UNHURRIED, Notes, run, state
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import PATIENCE, wait_until

FAILS = NOTES + "note('runs'); sys.exit(3)"
DELAYED = {
    "HA_RESTART_STRATEGY_TYPE": "fixed-delay",
    "HA_RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS": "9",
    "HA_RESTART_STRATEGY_FIXED_DELAY_DELAY": "600",
}


def ask(workplace: Workplace, verb: str, *options: str) -> Program:
    return workplace.ha(verb, "orders", "--timeout", f"{PATIENCE:g}", *options)


def test_a_job_is_stopped_and_is_finished(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STAYS)
    notes.until(1, leader)
    stopped = ask(workplace, "stop")
    assert (stopped.wait(), leader.wait()) == (0, 0)
    assert stopped.output.read_text() == "orders: The job has ended.\n"
    assert state(workplace)[2] == ["status=FINISHED"]
    assert [what for _, what, *_ in notes.all()] == ["runs", "asked"]
    assert run(workplace, "b", STAYS).wait() == 0, "the job has finished, so it does not run again"
    assert len(notes.all()) == 2


def test_a_cancelled_job_is_cancelled_whatever_its_command_says(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STUBBORN, HA_STOP_GRACE="1")
    notes.until(1, leader)
    cancelled = ask(workplace, "cancel", "--json", "--request-id", "deploy-7")
    assert (cancelled.wait(), leader.wait()) == (0, 0)
    assert state(workplace)[2] == ["status=CANCELED"]
    assert ended(workplace) == ["cancelled"]


def test_a_command_is_started_again_in_the_same_epoch(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STAYS)
    notes.until(1, leader)
    asked = ask(workplace, "restart")
    assert asked.wait() == 0
    assert asked.output.read_text() == "orders: The command has been started again.\n"
    notes.until(3, leader)
    found = notes.all()
    assert [what for _, what, *_ in found] == ["runs", "asked", "runs"]
    assert found[0][2] != found[2][2], "another process"
    assert {epoch for *_, epoch in found} == {1}
    wait_until(lambda: state(workplace)[2] == ["status=RUNNING"], what="it runs")


def test_a_command_that_waits_for_its_restart_is_started_at_once(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", FAILS, **DELAYED)
    notes.until(1, leader)
    wait_until(lambda: state(workplace)[2] == ["status=RESTARTING"], what="it waits")
    assert ask(workplace, "restart").wait() == 0
    notes.until(2, leader)


@pytest.mark.parametrize(("verb", "end"), [("stop", "FINISHED"), ("cancel", "CANCELED")])
def test_a_job_that_waits_for_its_restart_can_end(workplace: Workplace, notes: Notes, verb: str, end: str) -> None:
    leader = run(workplace, "a", FAILS, **DELAYED)
    notes.until(1, leader)
    wait_until(lambda: state(workplace)[2] == ["status=RESTARTING"], what="it waits")
    assert ask(workplace, verb).wait() == 0
    assert leader.wait() == 0
    assert state(workplace)[2] == [f"status={end}"]


def test_asking_again_with_one_id_tells_how_it_ended(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STAYS)
    notes.until(1, leader)
    for _ in range(2):
        assert ask(workplace, "restart", "--request-id", "once").wait() == 0
    notes.until(3, leader)
    assert len([what for _, what, *_ in notes.all() if what == "runs"]) == 2


def test_a_cancellation_survives_its_leader(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STUBBORN, HA_STOP_GRACE="300", **UNHURRIED)
    notes.until(1, leader)
    ask(workplace, "cancel", "--request-id", "1")
    notes.until(2, leader)
    leader.send(signal.SIGKILL)
    second = run(workplace, "b", STAYS)
    assert second.wait() == 0
    assert state(workplace)[2] == ["status=CANCELED"]
    assert [name for name, *_ in notes.all()] == ["a", "a"], "the command of the second one never ran"


def test_the_next_leader_answers_for_the_one_that_died(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STUBBORN, HA_STOP_GRACE="300", **UNHURRIED)
    notes.until(1, leader)
    asked = ask(workplace, "restart", "--request-id", "1")
    notes.until(2, leader)
    leader.send(signal.SIGKILL)
    run(workplace, "b", STAYS)
    assert asked.wait() == 1
    assert "is unknown. Its leader, of epoch 1, ended while it carried this out" in asked.said


def test_without_a_leader_there_is_nobody_to_ask(workplace: Workplace) -> None:
    asked = ask(workplace, "stop")
    assert asked.wait() == 3
    assert "There is no job 'orders'" in asked.said


def test_a_daemon_says_that_it_has_no_command(workplace: Workplace) -> None:
    workplace.ha("daemon", "orders", "--contender", "a")
    wait_until(lambda: workplace.ha("leader", "orders").wait() == 0, what="it leads")
    asked = ask(workplace, "stop")
    assert asked.wait() == 1
    assert "is refused. This leader has no command that it could stop" in asked.said


def ended(workplace: Workplace) -> list[str]:
    with open_files(workplace.jobs.as_uri()) as files:
        return [each.ended for each in JobAdmin(files, None, 10.0).history("orders")]
