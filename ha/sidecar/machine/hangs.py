"""Hangs: whether the present run still does its work, by the driver's heartbeat and by the liveness probe."""

import logging

from ha.program.heartbeat import Beat
from ha.sidecar.machine.commands import CountFailure, KeepException, KillHung, Probe, Say
from ha.sidecar.machine.leadership import end_phase, record_end
from ha.sidecar.machine.sidecar_events import Dumped, Probed
from ha.sidecar.machine.sidecar_state import Leading, SidecarState

HANG, PROBE_FAILED = "hang", "probe-failed"  # how a leadership ended, in one word of the history


def begin(state: SidecarState) -> None:
    """Watch a run that was granted the job just now."""
    end(state)
    if state.rules.probe is not None:
        state.liveness = state.rules.probe(state.at)


def end(state: SidecarState) -> None:
    """Watch nothing."""
    state.liveness = None
    state.heartbeat.hangs(state.at, None)


def look(state: SidecarState, beat: Beat | None) -> None:
    """Look once, as at least every two seconds; a run that hangs is killed, as soon as its stacks are known."""
    run, phase, schedule = state.run, state.phase, state.liveness
    if run is None or not state.runs_granted or run.ends or run.hang is not None or not isinstance(phase, Leading):
        if run is None or run.hang is None:
            end(state)
        return
    if state.heartbeat.hangs(state.at, beat):
        run.hang = HANG, f"The driver did not answer for {state.heartbeat.silence:.0f} s."
    elif schedule is not None:
        if schedule.look(state.at):
            state.do(Probe(run.number, phase.leader, state.at, schedule.timeout))
        if schedule.dead:
            run.hang = PROBE_FAILED, f"The liveness probe has failed {schedule.threshold} times: {schedule.wrong}."
    if run.hang is not None:
        said = f"{run.hang[1]} The command is killed, and the leadership given back."
        state.do(Say(logging.ERROR, said), KillHung(run.number, beat))


def probed(state: SidecarState, event: Probed) -> None:
    """A try of the probe has come back."""
    schedule = state.liveness
    if schedule is not None:
        schedule.answered(event.began, event.ended, event.wrong)
        if event.wrong:
            times = f"{schedule.failures} of {schedule.threshold}"
            state.do(Say(logging.WARNING, f"the liveness probe has failed ({times}): {event.wrong}."))


def dumped(state: SidecarState, event: Dumped) -> None:
    """The run is being killed. The leadership is given back: another host may do better."""
    run, phase = state.run, state.phase
    if run is None or run.number != event.run or run.hang is None:
        return
    cause, said = run.hang
    run.ends, run.kill_at = True, min(run.kill_at, state.at)  # it is killed once more by the clock
    if isinstance(phase, Leading):
        state.do(KeepException(phase.leader, cause, said, event.dump))
        if state.may_run:
            state.do(CountFailure(phase.leader, cause, state.at - run.since))
        record_end(state, cause)
        end_phase(state)
