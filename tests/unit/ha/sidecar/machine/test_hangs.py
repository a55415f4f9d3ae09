"""A run that hangs: when it is watched, what is done about it, and in which order."""

from functools import partial

import pytest

from ha.program.heartbeat import Beat
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.commands import NOTE_S
from ha.sidecar.machine.liveness import Schedule
from ha.sidecar.machine.sidecar_state import Ending
from tests.unit.ha.sidecar.machine.driven import Driven, driven


def probed(threshold: int = 1) -> Driven:
    return driven(probe=lambda at: Schedule(at + 5.0, 10.0, 1.0, threshold))


def try_probe(made: Driven, at: float, wrong: str | None = "it answered 500") -> list[do.SidecarCommand]:
    begun = [each for each in made.look(at) if isinstance(each, do.Probe)]
    for each in begun:
        made.take(events.Probed(each.began, at, wrong))
    return made.look(at)


def test_a_driver_that_is_silent_is_killed_counted_and_the_lease_given_back() -> None:
    made = driven(heartbeat_timeout=2.0)
    leader = made.run()
    for at in (100.0, 101.0, 101.9):
        assert not [each for each in made.look(at, Beat(1)) if isinstance(each, do.KillHung)]
    kill = do.KillHung(1, Beat(1))
    assert kill in made.look(102.0, Beat(1))
    assert kill not in made.look(103.0, Beat(1)), "its stacks are being taken"
    assert made.take(events.Dumped(1, "stacks")) == [
        do.KeepException(leader, "hang", "The driver did not answer for 2 s.", "stacks", NOTE_S),
        do.CountFailure(leader, "hang", 3.0),
        do.RecordEnd(leader, "hang"),
        do.Say(30, "the command did not end in time and is killed."),
        do.Kill(),
    ]
    assert made.state.phase == Ending(leader)
    assert made.take(events.CommandEnded(1, 137))[-2:] == [
        do.StepDown("The command has ended with 137."),
        do.Release(leader),
    ]
    made.take(events.Released())
    assert made.state.stands_by
    assert len(made.all(do.CountFailure)) == 1


def test_a_run_that_ends_while_its_stacks_are_taken_has_failed_as_it_ended() -> None:
    made = driven(heartbeat_timeout=2.0)
    leader = made.run()
    for at in (100.0, 101.0, 102.0):
        made.look(at, Beat(1))
    made.take(events.CommandEnded(1, 1))
    made.take(events.Dumped(1, "stacks"))
    assert made.all(do.CountFailure) == [do.CountFailure(leader, "exit-1", 2.0)]


@pytest.mark.parametrize("threshold", [1, 3])
def test_a_probe_that_fails_as_often_as_it_may_is_a_hang(threshold: int) -> None:
    made = probed(threshold)
    made.run()
    for number in range(threshold):
        assert made.all(do.KillHung) == []
        try_probe(made, 105.0 + 10.0 * number)
    assert made.all(do.KillHung) == [do.KillHung(1, None)]
    made.take(events.Dumped(1))
    assert [each.kind for each in made.all(do.KeepException)] == ["probe-failed"]


def test_what_is_not_known_and_what_is_well_kill_nobody() -> None:
    made = probed()
    made.run()
    for number in range(6):
        try_probe(made, 105.0 + 10.0 * number, None if number % 2 else "")
    assert len(made.all(do.Probe)) == 6
    assert made.all(do.KillHung) == []


def test_a_run_that_was_asked_to_end_or_has_ended_is_not_watched_but_the_next_one_is() -> None:
    for end in (partial(Driven.ask, verb="restart"), lambda made: made.take(events.CommandEnded(1, 3))):
        made = probed()
        made.run()
        end(made)
        if made.all(do.PrepareRestart):
            made.take(events.RestartPrepared(made.state.requests.present.id))  # type: ignore[union-attr]
            made.take(events.Settling(1, 10.0, able=False))
        try_probe(made, 105.0)
        assert (made.all(do.Probe), made.all(do.KillHung)) == ([], [])
    made.take(events.FailureCounted(made.state.phase.leader))  # type: ignore[union-attr]
    made.take(events.Released())
    made.run(2)
    try_probe(made, 110.0)
    assert made.all(do.KillHung) == [do.KillHung(2, None)]


def test_a_leader_that_may_not_run_its_command_counts_nothing() -> None:
    made = driven(heartbeat_timeout=2.0)
    leader = made.run()
    for at in (100.0, 101.0, 102.0):
        made.look(at, Beat(1))
    made.leads = False
    made.take(events.Dumped(1, "stacks"))
    assert (len(made.all(do.KeepException)), made.all(do.CountFailure)) == (1, [])
    assert made.state.recorded == leader
