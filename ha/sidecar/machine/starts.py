"""Starts of the command: to warm up, with a grant, and again; and what follows if it could not be started."""

import logging
from dataclasses import replace

from ha.sidecar.machine import hangs
from ha.sidecar.machine.commands import CountFailure, CountRestart, Grant, KeepException, Say, StartCommand, Terminate
from ha.sidecar.machine.leadership import end_work, release, step_down, stop_command, wait
from ha.sidecar.machine.sidecar_events import NotStarted, Outdated, Started
from ha.sidecar.machine.sidecar_state import Leading, PresentRun, SidecarState, Standby, Step
from leader.job.failed_attempts import LONGEST_PAUSE_S
from leader.timing import NEVER

NOT_STARTED = "not-started"  # how a leadership ended, in one word of the history
LACK_PAUSE_S = 2.0  # between two tries while the host lacks what a start needs
REMEDY = "store the program again, or mend this host"


def warm_up(state: SidecarState) -> None:
    """Start a warm standby's command."""
    if state.rules.warm and state.exit_code is None and state.run is None:
        state.runs += 1
        state.run = PresentRun(state.runs, granted=False, since=state.at, warm=True)
        state.do(StartCommand(state.runs, None))


def warm_up_later(state: SidecarState) -> None:
    """Have a command that has ended before its grant started again."""
    if state.exit_code is None:
        delay = state.rules.warm_up.failed(state.at) or state.rules.long_ttl
        said = f"the command ended before its grant; it is started again in {delay:.1f} s."
        state.do(Say(logging.WARNING, said))
        state.phase = Standby(state.at + delay)


def start(state: SidecarState, phase: Leading, *, again: bool = False) -> None:
    """Grant the job to the command: it is started, or the warm one is told; ``again`` if it ran before, or waited."""
    state.phase = replace(phase, step=Step.STARTING, start_at=NEVER)
    state.forget_at = LONGEST_PAUSE_S
    if again and state.lacks_since == NEVER:
        state.do(CountRestart())
    waited, state.waited = state.waited, False
    if state.run is None:
        state.runs += 1
        state.run = PresentRun(state.runs, granted=True, since=state.at)
        state.do(StartCommand(state.runs, phase.leader, again, waited))
        return
    run = state.run
    run.granted, run.since, run.starting = True, state.at, True
    if run.ends:  # it was to end; its end starts the next one
        run.outdated = True
    else:
        state.do(Grant(run.number, phase.leader, again, waited))


def start_due(state: SidecarState) -> None:
    """The time has come for the start that was waited for."""
    phase = state.phase
    if isinstance(phase, Standby):
        state.phase = Standby()
        warm_up(state)
    elif isinstance(phase, Leading):
        start_or_end(state, phase, again=True)


def start_or_end(state: SidecarState, phase: Leading, *, again: bool = False) -> None:
    """Start the command, unless this process was paused meanwhile; the notice of the end is on its way then."""
    if state.may_run:
        start(state, phase, again=again)
    else:
        cause = "revoked" if state.exit_code is None else "stopped"
        end_work(state, cause, "The leadership was over before the command could be started.")


def started(state: SidecarState, event: Started) -> None:
    """The run is there."""
    run = state.run
    if run is None or run.number != event.run or (run.granted and not event.granted):
        return
    run.starting = False
    if state.lacks_since != NEVER:
        state.do(Say(logging.INFO, "the host has again what the command needs, which is started."))
        state.lacks_since = NEVER
    if run.ends:
        state.do(Terminate())
    if run.granted and isinstance(state.phase, Leading):
        state.phase = replace(state.phase, step=Step.RUNNING)
        hangs.begin(state)


def outdated(state: SidecarState, event: Outdated) -> None:
    """The warm run is replaced by a newer program."""
    run = state.run
    if run is not None and run.number == event.run:
        said = "a newer program was stored, or its files are gone: it replaces the warm one."
        state.do(Say(logging.INFO, said))
        run.starting, run.outdated = False, True
        stop_command(state, state.at)


def tries_again(state: SidecarState, event: NotStarted) -> bool:
    """Have a start made again that the host lacked something for; returns whether it is, within the leadership."""
    run, phase = state.run, state.phase
    if not event.lack or event.runs or run is None or run.number != event.run or not isinstance(phase, Leading):
        return False
    began = min(state.lacks_since, state.at)
    if not run.granted or state.at - began >= state.rules.long_ttl:  # others may lead instead
        state.lacks_since = NEVER
        return False
    if state.lacks_since == NEVER:
        said = f"The command could not be started: {event.said} This host lacks something, so it is tried again."
        state.do(Say(logging.WARNING, said), KeepException(phase.leader, NOT_STARTED, said))
    state.lacks_since, state.run = began, None
    wait(state, phase, LACK_PAUSE_S)
    return True


def not_started(state: SidecarState, event: NotStarted) -> None:
    """A start that fails is a failure like another: counted, and others may try."""
    run, phase = state.run, state.phase
    if run is None or run.number != event.run:
        return
    if event.runs:
        run.starting = False
    else:
        state.run = None
    if isinstance(phase, Standby):
        state.do(Say(logging.WARNING, f"the command does not warm up: {event.said}"))
        state.phase = Standby(state.at + state.rules.long_ttl)
    elif isinstance(phase, Leading) and not event.granted:
        if phase.step is Step.STARTING:
            start_or_end(state, phase)  # its grant came meanwhile; in any other step its time comes later
    elif isinstance(phase, Leading):
        said = f"The command could not be {'told that it leads' if event.runs else 'started'}: {event.said}"
        state.do(
            Say(logging.ERROR, said),
            KeepException(phase.leader, NOT_STARTED, said),
            CountFailure(phase.leader, NOT_STARTED, 0.0, REMEDY),
        )
        step_down(state, NOT_STARTED, said)
        if event.runs:
            stop_command(state)
        else:
            release(state)
