"""The end of a leadership: its command is asked to end, its contender steps down, and its lease is given back."""

from dataclasses import replace

from ha.sidecar.machine.answers import answer
from ha.sidecar.machine.commands import AbandonSavepoint, Finish, RecordEnd, Release, StepDown, Terminate
from ha.sidecar.machine.sidecar_state import Ending, Leading, Reconciling, SidecarState, Standby, Step
from ha.verbs.table import RESTART
from leader.timing import NEVER

KILL_MARGIN_S = 0.2  # a command that does not end when asked is killed this long before the deadline


def record_end(state: SidecarState, cause: str) -> None:
    """Write down why the present leadership ends, if nothing else has ended it before."""
    phase = state.phase
    if not isinstance(phase, Standby) and phase.leader != state.recorded:
        state.recorded = phase.leader
        state.do(RecordEnd(phase.leader, cause))


def end_phase(state: SidecarState) -> None:
    """From now on the command is not started again."""
    abandon_savepoint(state)
    if isinstance(state.phase, Leading | Reconciling):
        state.phase = Ending(state.phase.leader)
    elif isinstance(state.phase, Standby):
        state.phase = Standby()


def step_down(state: SidecarState, cause: str, reason: str) -> None:
    """Have the leadership end, for a cause in one word and a reason in a sentence; the revocation follows."""
    record_end(state, cause)
    end_phase(state)
    state.do(StepDown(reason))


def end_work(state: SidecarState, cause: str, reason: str) -> None:
    """End a leadership, and give the lease back once nothing runs; arguments as of :func:`step_down`."""
    step_down(state, cause, reason)
    if state.run is not None and state.run.granted:
        stop_command(state)
    else:
        release(state)


def release(state: SidecarState) -> None:
    """Give the lease back: no command runs under it."""
    phase = state.phase
    if isinstance(phase, Ending) and not phase.releasing:
        assert state.run is None or not state.run.granted, "nothing runs"
        abandon_savepoint(state)
        if (present := state.requests.present) is not None and present.verb == RESTART:
            answer(state, "This leadership has ended before the command was started again: ask again.", done=False)
        state.phase = replace(phase, releasing=True)
        state.do(Release(phase.leader, phase.successor))


def finish(state: SidecarState) -> None:
    """Have the job end: no command of it runs, and none is to."""
    phase = state.phase
    assert isinstance(phase, Leading | Ending), "it is granted"
    state.phase = Ending(phase.leader, phase.successor if isinstance(phase, Ending) else "", finishing=True)
    state.do(Finish(phase.leader))


def wait(state: SidecarState, phase: Leading, seconds: float) -> None:
    """Have the command started in so many seconds; the leadership stays."""
    state.phase = replace(phase, step=Step.WAITING, start_at=state.at + seconds)


def stop_command(state: SidecarState, until: float | None = None) -> None:
    """Ask the command to end: before ``until``, or within the grace period if there is no such time."""
    run = state.run
    if run is None:
        return
    latest = state.at + state.rules.stop_grace if until is None else until - KILL_MARGIN_S
    run.ends, run.terminate_at = True, NEVER
    run.kill_at = min(run.kill_at, latest)
    if not run.starting:
        state.do(Terminate())


def abandon_savepoint(state: SidecarState) -> None:
    """End the work of a savepoint, if there is some; nothing follows it."""
    if state.work:
        state.work = 0
        state.do(AbandonSavepoint())
