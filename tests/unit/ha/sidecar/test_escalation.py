"""The consequences of a job's failures, with real sidecars: tries, pauses, and the end."""

from typing import Any

from ha.sidecar.machine.ends import HAD_FAILED
from tests.unit.ha.cli.test_pausing import asked, listed
from tests.unit.ha.noting import ENDS, NOTES, STAYS, Notes, run, shown, state
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until

FAILS = NOTES + "note('runs'); sys.exit(3)"
TELLS = (
    NOTES
    + """
note('runs')
from ha.program.end_file import End, tell
tell(End(remedy='add the package that is missing'))
sys.exit(3)
"""
)


def failures(workplace: Workplace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown(workplace, "job", "exceptions")
    return found


def test_the_last_attempt_leaves_the_job_failed_and_again_runs_it_once_more(workplace: Workplace, notes: Notes) -> None:
    program = run(workplace, "a", FAILS, HA_FAILOVER_MAX_ATTEMPTS="2")
    assert program.wait() == 1
    assert len(notes.all()) == 2
    assert state(workplace)[2] == ["status=FAILED"]
    assert [each["class"] for each in failures(workplace)] == ["exit-3", "exit-3", "gave-up"]
    assert failures(workplace)[-1]["message"] == (
        "The command has failed 2 times in a row without a completed batch; at last: exit-3."
    )
    assert listed(workplace)["state"] == "FAILED"
    late = run(workplace, "b", STAYS)
    assert late.wait() == HAD_FAILED, "it has ended for good"
    assert run(workplace, "b", ENDS, "--again", HA_FAILOVER_MAX_ATTEMPTS="2").wait() == 0
    assert state(workplace)[2] == ["status=FINISHED"]


def test_the_list_says_when_a_job_that_keeps_failing_is_tried_again(workplace: Workplace, notes: Notes) -> None:
    program = run(workplace, "a", FAILS)
    notes.until(4, program)
    tries = wait_until(lambda: listed(workplace)["next_try"], what="it waits")
    assert (tries["cause"], tries["remedy"]) == ("exit-3", None)
    wait_until(lambda: "in a row, last on" in asked(workplace, "job", "list"), what="it waits again")


def test_what_no_restart_mends_uses_up_no_attempt_and_says_what_to_do(workplace: Workplace, notes: Notes) -> None:
    strategy = {"HA_RESTART_STRATEGY": "fixed-delay", "HA_RESTART_DELAY": "0"}
    program = run(workplace, "a", TELLS, HA_FAILOVER_MAX_ATTEMPTS="1", **strategy)
    notes.until(2, program)  # once more at once, and then every five minutes
    assert len({epoch for _, _, _, epoch in notes.all()}) == len(notes.all()), "none was started again in place"
    tries = wait_until(lambda: listed(workplace)["next_try"], what="it waits")
    assert tries["remedy"] == "add the package that is missing"
    assert "No restart mends this: add the package that is missing." in program.said
    assert program.process.poll() is None
