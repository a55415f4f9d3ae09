"""Canaries of the machine: mistakes that a search of whatever may happen has to find."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from ha.sidecar.machine import commands as do
from ha.sidecar.machine import ends, leadership, machine, operators, starts
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.sidecar_state import Ending, Leading, PresentRun, SidecarState
from leader.job.request_folder import State
from tests.unit.ha.sidecar.machine.test_whatever_happens import World, check

WITHIN = 600
"""Seeds within which each has to show."""


def _released(state: SidecarState) -> None:
    phase = state.phase
    if isinstance(phase, Ending):
        state.do(do.Release(phase.leader, phase.successor))


def _answered_and_kept(state: SidecarState, said: str, *, done: bool = True) -> None:
    if (request := state.requests.present) is not None:
        state.do(do.AnswerRequest(request, State.DONE if done else State.FAILED, said))


def _look_unless_looking(state: SidecarState) -> None:
    phase = state.phase
    if isinstance(phase, Leading) and not state.requests.looking:
        state.requests.looking = True
        state.do(do.LookForRequests(phase.leader))


def _started_once_more(state: SidecarState, phase: Leading, *, again: bool = False) -> None:
    state.run = None
    _start(state, phase, again=again)


def _started_whatever_leads(state: SidecarState, phase: Leading, *, again: bool = False) -> None:
    starts.start(state, phase, again=again)


def _not_asked_to_end(state: SidecarState, until: float | None = None) -> None:
    if state.run is not None and not state.run.starting:
        _stop(state, until)


def _counted_in_any_step(state: SidecarState, event: events.FailureCounted) -> None:
    _counted(state, event)
    if isinstance(state.phase, Leading):
        leadership.end_work(state, *state.last_end)


def _failed_twice(state: SidecarState, phase: Leading, event: events.CommandEnded, seconds: float) -> None:
    state.do(do.CountFailure(phase.leader, "exit-3", seconds))
    _after(state, phase, event, seconds)


def _nothing(*_: object, **__: object) -> None:
    """It is forgotten."""


def _never(*_: object, **__: object) -> bool:
    return False


def _cancelled_at_once(state: SidecarState, phase: Leading, *, cancelled: bool) -> None:
    _end_job(state, phase, cancelled=cancelled)
    if cancelled and state.run is not None and state.run.granted:
        leadership.stop_command(state)


def _lacking_and_forgotten(state: SidecarState, event: events.NotStarted) -> bool:
    if lacking := event.lack and event.granted:
        state.run = None
    return lacking


_end_job = operators._end_job
_start, _stop, _counted, _after = starts.start, leadership.stop_command, ends.counted, ends._after_failure

MUTANTS: dict[str, Callable[[], Any]] = {
    "the lease is given back twice": lambda: mock.patch.multiple(machine, release=_released),
    "a leadership that ends is not given back": lambda: mock.patch.object(machine, "release", _nothing),
    "an answer is given again": lambda: mock.patch.object(operators, "answer", _answered_and_kept),
    "a mark that comes during a look is lost": lambda: mock.patch.object(operators, "look", _look_unless_looking),
    "a run is started beside another": lambda: mock.patch.object(starts, "start", _started_once_more),
    "a run is started whoever leads": lambda: mock.patch.object(starts, "start_or_end", _started_whatever_leads),
    "a run that starts is not asked to end": lambda: mock.patch.object(machine, "stop_command", _not_asked_to_end),
    "a failure is counted twice": lambda: mock.patch.object(ends, "_after_failure", _failed_twice),
    "a restart of an operator is forgotten": lambda: mock.patch.object(operators, "goes_on", _never),
    "a late run is not killed": lambda: mock.patch.object(PresentRun, "kill_at", property(lambda _: 1e9, _nothing)),
    "a run that could not be started ends no leadership": lambda: mock.patch.object(starts, "not_started", _nothing),
    "a savepoint that ends is not heard of": lambda: mock.patch.object(operators, "savepoint_ended", _nothing),
    "an outdated run is not replaced": lambda: mock.patch.object(starts, "outdated", _nothing),
    "a command ends before the cancellation is written": lambda: mock.patch.object(
        operators, "_end_job", _cancelled_at_once
    ),
    "a cancellation that is written ends nothing": lambda: mock.patch.object(operators, "cancelling_noted", _nothing),
    "a start that lacked something is not made again": lambda: mock.patch.object(
        starts, "tries_again", _lacking_and_forgotten
    ),
    "what waits is never started": lambda: mock.patch.object(starts, "start_due", _nothing),
}


def caught(within: int = WITHIN) -> str:
    """Return what a search finds; empty if it finds nothing."""
    for seed in range(within):
        try:
            check(World(seed, warm=bool(seed % 2)), 20 + seed % 150)
        except (AssertionError, RecursionError) as error:
            return f"seed {seed}: {error}"
    return ""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    with MUTANTS[name]():
        assert caught()


def test_nothing_is_found_without_one() -> None:
    assert not caught()
