"""An exit code of 0 is a success only if the program has left its block in order, and a sidecar ends in order, too."""

import signal
import sys

import pytest

from ha.sidecar.command.jvm_watch import ASTRAY
from ha.sidecar.command.spark_overlay import NOT_BEGUN
from leader.layout.lease import Mode
from tests.unit.ha.noting import NOTES, STAYS, Notes, run, state
from tests.unit.ha.programs import Workplace
from tests.unit.ha.sidecar.test_escalation import failures

ONCE = {"HA_RESTART_STRATEGY": "none", "HA_FAILOVER_MAX_ATTEMPTS": "1"}
LEADS = NOTES + "import ha\nfrom contextlib import suppress\n"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("with ha.lead('orders'): os._exit(0)", "it was inside its block of ha.lead."),
        ("with suppress(ValueError), ha.lead('orders'): raise ValueError('no')", "ValueError: no"),
        ("with ha.lead('orders') as it: it.keep_failure('ValueError', 'no'); os._exit(0)", "it was inside its block"),
    ],
    ids=["gone", "raised", "kept"],
)
def test_exit_0_is_a_failure_that_is_kept_and_counted(
    workplace: Workplace, notes: Notes, program: str, said: str
) -> None:
    del notes
    assert run(workplace, "a", LEADS + program, **ONCE).wait() == 1
    assert state(workplace)[2] == ["status=FAILED"]
    found = failures(workplace)
    assert [each["class"] for each in found][-2:] == ["exit-0", "gave-up"]
    assert found[-2]["message"].startswith(f"The command has ended with 0: {said}")
    if "keep_failure" in program:
        assert (found[0]["class"], found[0]["message"]) == ("ValueError", "no"), "the sidecar has kept it"


@pytest.mark.parametrize(
    "program",
    [
        "with ha.lead('orders'): sys.exit(0)",
        "with ha.lead('orders') as leadership: leadership.finish(); os._exit(0)",
        "with suppress(ValueError), ha.lead('orders') as it: it.finish(); raise ValueError('meant')",
    ],
    ids=["exit", "finished", "raised"],
)
def test_an_end_that_is_meant_is_a_success(workplace: Workplace, notes: Notes, program: str) -> None:
    del notes
    assert run(workplace, "a", LEADS + program, **ONCE).wait() == 0
    assert state(workplace)[2] == ["status=FINISHED"]


BACKGROUND = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=NEW)
"""


@pytest.mark.parametrize("new_session", ["True", "False"], ids=["setsid", "nohup"])
def test_a_script_that_puts_its_program_into_the_background_is_no_success(
    workplace: Workplace, new_session: str
) -> None:
    sidecar = run(workplace, "a", BACKGROUND.replace("NEW", new_session), **ONCE)
    sidecar.until_said("No restart mends this")
    kept = failures(workplace)[0]
    assert kept["class"] == "exit-0"
    assert "The command has ended with 0: it left programs behind, which were ended after 5 s: " in kept["message"]
    assert "time.sleep(3600)' (" in kept["message"]
    assert "Start the program in the foreground" in sidecar.said
    assert state(workplace)[2] != ["status=FINISHED"]


def test_a_program_that_has_ended_in_order_may_leave_a_helper_behind(workplace: Workplace) -> None:
    ends = BACKGROUND.replace("NEW", "True") + "import ha\nwith ha.lead('orders') as it: it.finish()"
    sidecar = run(workplace, "a", ends, **ONCE)
    assert sidecar.wait() == 0
    assert state(workplace)[2] == ["status=FINISHED"]
    assert "the command has ended with 0, but it left programs behind" in sidecar.said


@pytest.mark.parametrize("command", ["orders.py | cat", "nothing-of-that-name | cat", "exit 0"])
def test_a_shell_under_spark_that_has_started_no_spark_is_no_success(workplace: Workplace, command: str) -> None:
    sidecar = workplace.ha("run", "orders", "--contender", "a", "--spark", "--", "sh", "-c", command, **ONCE)
    assert sidecar.wait() == 1, sidecar.said
    kept = failures(workplace)[0]
    assert kept["message"].startswith(f"The command has ended with 0: {NOT_BEGUN.said}")


LOOKS_LIKE_SPARK = "exec -a java $0 -c 'import time; time.sleep(3600)' org.apache.spark.deploy.SparkSubmit"


def test_spark_that_was_started_without_the_settings_of_the_sidecar_is_ended_and_waits_for_somebody(
    workplace: Workplace,
) -> None:
    command = ("env", "-i", "bash", "-c", LOOKS_LIKE_SPARK, sys.executable)
    sidecar = workplace.ha("run", "orders", "--contender", "a", "--spark", "--", *command, **ONCE)
    sidecar.until_said("No restart mends this")
    assert failures(workplace)[0]["message"].startswith(f"The command has ended with 137: {ASTRAY[0]}")
    assert ASTRAY[1] in sidecar.said


def test_quit_writes_the_stacks_and_hup_ends_it_in_order(workplace: Workplace, notes: Notes) -> None:
    leader = run(workplace, "a", STAYS)
    notes.until(1, leader)
    leader.send(signal.SIGQUIT)
    leader.until_said("most recent call first")
    assert leader.process.poll() is None
    leader.send(signal.SIGHUP)
    assert leader.wait() == 128 + signal.SIGHUP
    assert [what for _, what, *_ in notes.all()] == ["runs", "asked"]
    assert (lease := state(workplace)[1].lease) is not None
    assert lease.mode is Mode.RELEASED
