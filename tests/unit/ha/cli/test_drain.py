"""``ha host drain`` and ``ha host undrain`` with real sidecars: the host leads nothing, and takes nothing over."""

import json
import signal
from pathlib import Path

import pytest

from ha.drain.executors import Master, Worker
from store.errors import PermissionDenied
from tests.unit.ha.cli.test_pausing import asked, listed
from tests.unit.ha.cli.test_status import LASTING, shown
from tests.unit.ha.command_line import CommandLine
from tests.unit.ha.led import Led
from tests.unit.ha.noting import STAYS, UNHURRIED, Notes, run
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until


@pytest.mark.timed
@pytest.mark.usefixtures("short_leases")
def test_a_host_is_drained_and_takes_over_again_only_when_it_may(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", STAYS, **UNHURRIED)
    notes.until(1, first)
    second = run(workplace, "b", STAYS, **UNHURRIED)
    second.until_said("contending as b")
    said = asked(workplace, "host", "drain", "a", "--reason", "new disks", "--for", "1 h")
    assert "orders: b leads epoch 2" in said
    assert "a leads nothing: it is barred from 1 jobs, and 1 have moved." in said
    assert notes.until(3, second)[::3] == ("b", 2)
    (barred,) = listed(workplace)["barred"]
    assert (barred["contender"], barred["reason"]) == ("a", "new disks")
    assert "orders: a is barred by " in asked(workplace, "job", "list")
    # Its process goes and comes again: it reads that its host is drained.
    first.send(signal.SIGKILL)
    again = run(workplace, "a", STAYS, **LASTING)
    again.until_said("this host is barred by")
    wait_until(lambda: shown(workplace, again)[0]["jobs"][0]["not_eligible"], what="it knows")
    second.send(signal.SIGKILL)
    again.until_said("it does not take over")
    assert listed(workplace)["epoch"] == 2
    assert "a may lead again. It was barred from 1 jobs." in asked(workplace, "host", "undrain", "a")
    assert notes.until(4, again)[::3] == ("a", 3)
    again_asked = json.loads(asked(workplace, "host", "undrain", "a", "--json"))
    assert again_asked == {"host": "a", "drained": False, "jobs": [], "not_yours": []}


def test_bad_input_is_refused_in_one_sentence(workplace: Workplace) -> None:
    assert "is not a name of a contender" in asked(workplace, "host", "drain", "no name", code=2)
    assert "The reason is too long" in asked(workplace, "host", "drain", "a", "--reason", "x" * 300, code=2)
    assert "is not in the range 0<x<=7776000" in asked(workplace, "host", "drain", "a", "--for", "100 d", code=2)


def test_a_master_that_does_not_answer_is_told_before_anything_moves(workplace: Workplace) -> None:
    said = asked(workplace, "host", "drain", "a", "--master-ui", "http://127.0.0.1:1", code=4)
    assert "does not answer" in said
    assert not (workplace.jobs / ".drained").exists()


@pytest.mark.parametrize("as_json", [True, False])
def test_a_master_that_refuses_hides_nothing_of_what_has_moved(
    quick: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine, *, as_json: bool
) -> None:
    def refuses(*_: object) -> list[Worker]:
        raise PermissionDenied("The master refuses.")

    Led(quick).claim("orders", "b:1")
    monkeypatch.setattr(Master, "check_known", lambda *_: None)
    monkeypatch.setattr(Master, "decommission", refuses)
    said = cli("host drain z --unseen --master-ui http://m:8080", *(["--json"] if as_json else []), code=1)
    assert "The master refuses. The jobs have moved as told above" in said.err
    if as_json:
        assert (said.json["barred"], said.json["refused"]) == (1, "The master refuses.")
    else:
        assert "z leads nothing" in said.out
        assert "No executor" not in said.out
