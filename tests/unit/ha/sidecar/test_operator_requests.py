"""``ha job stop``, ``ha job cancel`` and ``ha job restart``, with real sidecars and commands."""

import signal

import pytest

from ha.sidecar.machine.ends import WAS_CANCELED
from tests.patience import PATIENCE_S
from tests.unit.ha.noting import STAYS, STUBBORN, UNHURRIED, Notes, run, shown, state
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import wait_until


def ask(workplace: Workplace, verb: str, *options: str) -> Program:
    return workplace.ha("job", verb, "orders", "--timeout", f"{PATIENCE_S:g}", *options)


def test_a_job_is_stopped_and_is_finished(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STAYS)
    notes.until(1, leader)
    stopped = ask(workplace, "stop")
    assert (stopped.wait(), leader.wait()) == (0, 0)
    assert stopped.output.read_text().startswith("orders: The job has ended.\n")
    assert state(workplace)[2] == ["status=FINISHED"]
    assert [what for _, what, *_ in notes.all()] == ["runs", "asked"]
    assert run(workplace, "b", STAYS).wait() == 0, "the job has finished, so it does not run again"
    assert len(notes.all()) == 2


def test_a_cancelled_job_is_cancelled_whatever_its_command_says(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STUBBORN, HA_STOP_GRACE="1")
    notes.until(1, leader)
    cancelled = ask(workplace, "cancel", "--json", "--request-id", "deploy-7")
    assert (cancelled.wait(), leader.wait()) == (0, WAS_CANCELED)
    assert state(workplace)[2] == ["status=CANCELED"]
    assert [each["ended"] for each in shown(workplace, "job", "history")] == ["cancelled"]


def test_a_command_is_started_again_in_the_same_epoch_and_once_for_one_id(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STAYS)
    notes.until(1, leader)
    for _ in range(2):
        asked = ask(workplace, "restart", "--request-id", "once")
        assert asked.wait() == 0
        said = asked.output.read_text()
        assert said.startswith("orders: The command has been started again. The COMMAND that its `ha run` was given ")
        assert "given runs as a on " in said
        assert " in epoch 1, since 2" in said
    notes.until(3, leader)
    found = notes.all()
    assert [what for _, what, *_ in found] == ["runs", "asked", "runs"]
    assert found[0][2] != found[2][2], "another process"
    assert {epoch for *_, epoch in found} == {1}
    wait_until(lambda: state(workplace)[2] == ["status=RUNNING"], what="it runs")


@pytest.mark.timed
@pytest.mark.usefixtures("short_leases")
def test_a_cancellation_survives_its_leader(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STUBBORN, HA_STOP_GRACE="300", **UNHURRIED)
    notes.until(1, leader)
    ask(workplace, "cancel", "--request-id", "1")
    notes.until(2, leader)
    assert state(workplace)[2] == ["status=CANCELLING"], "that comes before the signal"
    leader.send(signal.SIGKILL)
    second = run(workplace, "b", STAYS)
    assert second.wait() == WAS_CANCELED
    assert state(workplace)[2] == ["status=CANCELED"]
    assert [name for name, *_ in notes.all()] == ["a", "a"], "the command of the second one never ran"


@pytest.mark.timed
@pytest.mark.usefixtures("short_leases")
def test_the_next_leader_answers_for_the_one_that_died(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STUBBORN, HA_STOP_GRACE="300", **UNHURRIED)
    notes.until(1, leader)
    asked = ask(workplace, "restart", "--request-id", "1")
    notes.until(2, leader)
    leader.send(signal.SIGKILL)
    run(workplace, "b", STAYS)
    assert asked.wait() == 1
    assert "is unknown. Its leader, of epoch 1, ended while it carried this out" in asked.said


def test_a_job_that_no_process_leads_is_stopped_by_the_command(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STAYS)
    notes.until(1, leader)
    leader.send(signal.SIGTERM)
    leader.wait()
    asked = ask(workplace, "stop", "--request-id", "1")
    assert asked.wait() == 0, asked.said
    assert "this command takes its lease, to stop it" in asked.said
    assert state(workplace)[2] == ["status=FINISHED"]
    assert run(workplace, "b", STAYS).wait() == 0


def test_without_a_leader_there_is_nobody_to_ask(workplace: Workplace) -> None:
    asked = ask(workplace, "stop")
    assert asked.wait() == 3
    assert "There is no job 'orders'" in asked.said


def test_a_daemon_says_that_it_has_no_command(workplace: Workplace) -> None:
    workplace.ha("host", "daemon", "orders", "--contender", "a")
    wait_until(lambda: workplace.ha("job", "leader", "orders").wait() == 0, what="it leads")
    asked = ask(workplace, "stop")
    assert asked.wait() == 1
    assert "is refused. This leader has no command that it could stop" in asked.said
