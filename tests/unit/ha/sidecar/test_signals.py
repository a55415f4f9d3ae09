"""Signals: HUP ends a sidecar in order, and QUIT writes its stacks and ends nothing."""

import signal

from leader.layout.lease import Mode
from tests.unit.ha.noting import STAYS, Notes, run, state
from tests.unit.ha.programs import Workplace


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
