"""``ha job pause`` and ``ha job resume`` with real sidecars: whoever leads stays, and nobody takes over."""

import json
import signal
from typing import Any

import pytest

from tests.unit.ha.cli.test_status import LASTING, WAITS, shown
from tests.unit.ha.noting import STAYS, Notes, run, state
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until


def asked(workplace: Workplace, *arguments: str, code: int = 0) -> str:
    program = workplace.ha(*arguments)
    assert program.wait() == code, program.said
    return program.output.read_text() + program.said


def listed(workplace: Workplace) -> dict[str, Any]:
    (row,) = json.loads(asked(workplace, "job", "list", "--json").splitlines()[0])
    found: dict[str, Any] = row
    return found


@pytest.mark.timed
@pytest.mark.usefixtures("short_leases")
def test_a_leader_that_dies_while_the_job_is_paused_has_no_successor_before_it_is_resumed(
    workplace: Workplace, notes: Notes
) -> None:
    first = run(workplace, "a", STAYS)
    notes.until(1, first)
    second = run(workplace, "b", STAYS)
    second.until_said("contending as b")
    said = asked(workplace, "job", "pause", "orders", "--reason", "a new rack")
    assert "The job is paused: a, which holds its lease in epoch 1, stays, and no process takes over." in said
    assert said.splitlines()[-1] == "`ha job resume orders` ends the pause"
    assert "it cannot be handed over before `ha job resume orders`" in asked(
        workplace, "job", "handover", "orders", code=1
    )
    second.until_said("(a new rack): no takeover.")
    first.send(signal.SIGKILL)
    sequence = state(workplace)[1].lease
    for _ in range(4):  # each of these takes longer than a lease without a renewal lasts, or nearly so
        before = listed(workplace)
    assert state(workplace)[1].lease == sequence
    assert (before["paused"]["reason"], before["epoch"], len(notes.all())) == ("a new rack", 1, 1)
    assert "orders: paused by " in asked(workplace, "job", "list")
    assert "The job was paused by" in asked(workplace, "job", "resume", "orders")
    assert notes.until(2, second)[::3] == ("b", 2)
    assert listed(workplace)["paused"] is None
    assert "The job was not paused: b, which holds" in asked(workplace, "job", "resume", "orders")


def test_status_says_who_waits_and_who_stays(workplace: Workplace, notes: Notes) -> None:
    first = run(workplace, "a", STAYS, **LASTING)
    notes.until(1, first)
    second = run(workplace, "b", WAITS, **LASTING)
    second.until_said("contending as b")
    asked(workplace, "job", "pause", "orders")
    wait_until(lambda: all(each["jobs"][0]["paused"] for each in shown(workplace, first, second)), what="both know")
    said = asked(workplace, "host", "status")
    assert "it stays the leader" in said
    assert "it waits for `ha job resume orders`" in said
