"""``ha job logs``: the output of a job's runs on this host, and the last lines of one that failed with its failure."""

import os
import signal
from typing import Any

from tests.unit.ha.noting import ENDS, NOTES, Notes, run, shown
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until

TALKS = f"{NOTES}print('begun', os.environ['HA_EPOCH']); print('no such table', file=sys.stderr); sys.exit(7)"


def test_a_failure_has_the_last_lines_and_the_runs_have_them_all(workplace: Workplace) -> None:
    assert run(workplace, "a", TALKS, HA_FAILOVER_MAX_ATTEMPTS="1").wait() == 1
    failure = shown(workplace, "job", "exceptions")[0]
    assert failure["class"] == "exit-7"
    assert failure["message"] == ("The command has ended with 7. Its last lines follow; `ha job logs orders` has all.")
    assert sorted(failure["trace"].splitlines()) == ["begun 1", "no such table"]
    assert run(workplace, "b", TALKS, "--again", HA_FAILOVER_MAX_ATTEMPTS="1").wait() == 1
    newest, before = (workplace.ha("job", "logs", "orders", *more) for more in ((), ("--previous", "-n", "1")))
    assert [newest.wait(), before.wait()] == [0, 0]
    assert "begun 2\n" in newest.output.read_text()
    assert len(before.output.read_text().splitlines()) == 1
    assert newest.said.startswith("orders: /")


def test_what_comes_is_followed(workplace: Workplace, notes: Notes) -> None:
    source = f"{NOTES}signal.signal(signal.SIGUSR1, lambda *_: print('again'))\nprint('first')\nnote('runs'); stay()"
    leader = run(workplace, "a", source)
    pid = notes.until(1, leader)[2]
    follower = workplace.ha("job", "logs", "orders", "-f")
    wait_until(lambda: follower.output.read_text() == "first\n", what=follower.said)
    os.kill(pid, signal.SIGUSR1)
    wait_until(lambda: follower.output.read_text() == "first\nagain\n")


def asked_logs(workplace: Workplace, *more: str) -> tuple[int, Any]:
    asked = workplace.ha("job", "logs", "orders", *more)
    return asked.wait(), asked.said.splitlines()[-1]


def test_where_none_is_kept_it_says_where_to_look(workplace: Workplace) -> None:
    assert "There is no job 'orders'" in asked_logs(workplace)[1]
    assert run(workplace, "a", ENDS).wait() == 0
    assert asked_logs(workplace, "--previous") == (1, "ha: Only one run of 'orders' is kept on this host.")
    workplace.environment["XDG_STATE_HOME"] = str(workplace.directory / "elsewhere")
    code, text = asked_logs(workplace)
    assert (code, "No run of 'orders' is kept on this host" in text) == (1, True)
    assert text.endswith("It has no leader.")


def test_what_is_no_name_of_a_job_is_no_path_either(workplace: Workplace) -> None:
    asked = workplace.ha("job", "logs", "../orders")
    assert (asked.wait(), "'../orders' is not a job name" in asked.said) == (2, True)
