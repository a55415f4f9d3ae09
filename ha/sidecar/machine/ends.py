"""The end of a run of the command: the job goes on, has finished, or has failed; and what follows from each."""

import logging
import signal
from dataclasses import replace

from ha.config.restart_strategy import NoRestart
from ha.program.engine_state import EngineState
from ha.sidecar.machine import answers, hangs, operators
from ha.sidecar.machine.commands import (
    NOTE_S,
    SHORT_NOTE_S,
    CountFailure,
    CountRestart,
    KeepException,
    NoteRestarting,
    Say,
)
from ha.sidecar.machine.leadership import end_work, finish, wait
from ha.sidecar.machine.sidecar_events import CommandEnded, FailureCounted, Finished, RestartingNoted
from ha.sidecar.machine.sidecar_state import Ending, Leading, Reconciling, SidecarState, Standby, Step
from ha.sidecar.machine.starts import start, warm_up_later
from leader.job.status import Status
from leader.timing import NEVER

BY_SIGNAL = 128  # added to the number of the signal that has ended a command
JOB_FAILED = 1  # the exit code of a sidecar that has given the job up

# What operators are told whose requests come too late.
ENDED, HAS_FAILED = "The job has ended.", "The job has FAILED, and is not run any more: --again runs it once more."

# Exit codes of a job that had ended so, and does not run: a supervisor need not try again.
HAD_FAILED, WAS_CANCELED = 5, 6

_NOT_RUN = {
    Status.FINISHED: (0, logging.INFO, "the job has finished; --again runs it once more, and `rerun` each time."),
    Status.FAILED: (
        HAD_FAILED,
        logging.ERROR,
        "the job has FAILED, and is not run: `ha job exceptions` says why; --again runs it once more.",
    ),
    Status.CANCELED: (WAS_CANCELED, logging.ERROR, "the job was CANCELED, and is not run; --again runs it once more."),
}


def end_of_command(code: int, *, finished: bool) -> str:
    """Return in one word how a command has ended."""
    if code == 0:
        return "finished" if finished else "exit-0"
    number = code - BY_SIGNAL
    return f"signal-{number}" if 0 < number < signal.NSIG else f"exit-{code}"


def command_ended(state: SidecarState, event: CommandEnded) -> None:
    """A run has ended, for whatever reason."""
    run, phase = state.run, state.phase
    if run is None or run.number != event.run:
        return
    if isinstance(phase, Reconciling):
        state.early_end = event  # until it is known whether the run is taken up
        return
    answers.program_ended(state)
    hangs.end(state)
    state.run = None
    failed = event.code != 0 or event.end.said != ""
    state.do(Say(logging.WARNING if failed else logging.INFO, f"the command has ended with {event.code}."))
    if isinstance(phase, Standby):
        warm_up_later(state)
        return
    if not run.granted:
        return  # a warm one, which is not there when its time comes
    if isinstance(phase, Leading) and state.may_run:
        if operators.goes_on(state, phase, drained=event.drained):
            return
        if run.outdated or (run.warm and run.starting):
            start(state, phase)  # it has not taken its grant
            return
    finished = (event.done and not failed) or answers.ends_the_job(state)
    cause = "jvm-ended" if event.jvm_ended else end_of_command(event.code, finished=finished)
    state.last_end = cause, f"The command has ended with {event.code}."
    if finished:
        finish(state)
    elif failed and isinstance(phase, Leading) and not run.outdated:
        known = event.end.said if event.code == 0 or not event.end.inside else ""
        said = f"The command has ended with {event.code}{f': {known}' if known else '.'}"
        state.do(KeepException(phase.leader, cause, said, wait=NOTE_S if known else SHORT_NOTE_S))
        _after_failure(state, phase, event, state.at - run.since)
    else:
        end_work(state, *state.last_end)


def _after_failure(state: SidecarState, phase: Leading, event: CommandEnded, seconds: float) -> None:
    """Decide what follows the end of a command that was to run on."""
    # A failure that no restart mends is no matter of the restart strategy; `remedy` says what is to be done. Nor is one
    # after which the command's engine gave up: it has used that strategy itself.
    if not state.may_run:
        end_work(state, *state.last_end)
        return
    cause, remedy = state.last_end[0], event.end.remedy
    delay = None if remedy or event.gave_up else phase.strategy.failed(state.at)
    state.phase = replace(phase, step=Step.RECORDING, start_at=NEVER)
    if delay is not None:
        state.restart_at = state.at + delay
        state.do(NoteRestarting(phase.leader))
        return
    if not remedy and (event.gave_up or not isinstance(phase.strategy, NoRestart)):
        state.do(Say(logging.WARNING, "the restart strategy gives up here; another contender may try."))
    state.do(CountFailure(phase.leader, cause, seconds, remedy))


def restarting_noted(state: SidecarState, event: RestartingNoted) -> None:
    """The command may be started again; or its program has ended the job for good."""
    phase = state.phase
    if not isinstance(phase, Leading) or phase.step is not Step.RECORDING or phase.leader != event.leader:
        return
    if event.ended:
        state.do(Say(logging.INFO, "its program has ended the job: the command is not started again."))
        state.exit_code = 0
        operators.job_ended(state, ENDED)
        end_work(state, *state.last_end)
        return
    delay = max(0.0, state.restart_at - state.at)
    state.do(Say(logging.INFO, f"the command is started again in {delay:.1f} s; the leadership stays."))
    wait(state, phase, delay)


def counted(state: SidecarState, event: FailureCounted) -> None:
    """A failure that ends the leadership is counted; after the last one the sidecar ends as well."""
    phase = state.phase
    if event.gave_up:
        state.exit_code = JOB_FAILED
    if isinstance(phase, Leading) and phase.leader == event.leader and (event.gave_up or phase.step is Step.RECORDING):
        if event.gave_up:
            operators.job_ended(state, HAS_FAILED)
        end_work(state, *state.last_end)


def finished(state: SidecarState, event: Finished) -> None:
    """The job has ended."""
    phase = state.phase
    if isinstance(phase, Ending) and phase.leader == event.leader:
        if event.recorded:
            state.exit_code = 0
        said = ENDED if event.recorded else "The command has ended, and the job's state is not known."
        operators.job_ended(state, said, done=event.recorded, recorded=event.recorded)
        end_work(state, *state.last_end)


def look_at_engine(state: SidecarState, engine: EngineState) -> None:
    """A program that has failed under its engine is counted, and kept; it ends no command and no leadership."""
    run, phase = state.run, state.phase
    if run is None or not isinstance(phase, Leading):
        return
    known, run.engine = run.engine, engine
    if known is None or engine.failures <= known.failures or engine.gave_up:
        return
    cause = end_of_command(engine.code, finished=False)
    said = f"The program has ended with {engine.code}, and is started again. Its queries go on."
    logged = f"the program has ended with {engine.code}; its JVM and queries go on, and it is started again in "
    state.do(
        CountRestart(),
        Say(logging.WARNING, f"{logged}{engine.delay:.1f} s."),
        KeepException(phase.leader, cause, said),
    )


def not_run(state: SidecarState, ended: Status) -> None:
    """Give the lease back: the job had ended before, and does not run again."""
    state.exit_code, level, said = _NOT_RUN[ended]
    state.do(Say(level, said))
    operators.job_ended(state, f"The job has ended: it is {ended.value}.")
    end_work(state, "has-finished", f"The job has ended: {ended.value}.")
