"""Operators' requests: each is refused, or carried out and answered, one at a time unless it holds up nothing."""

import logging
from dataclasses import replace

from ha.sidecar.machine.answers import (
    LATER,
    answer,
    answer_saving,
    awaits_savepoint,
    program_answered,
)
from ha.sidecar.machine.commands import (
    AnswerRequest,
    AskProgram,
    ForgetFailures,
    LookForRequests,
    PrepareRestart,
    PutBack,
    RecordCancelling,
    RefuseRest,
    Say,
    SettleQueries,
    StageSavepoint,
    TakeSavepoint,
)
from ha.sidecar.machine.leadership import abandon_savepoint, end_work, finish, record_end, stop_command, wait
from ha.sidecar.machine.sidecar_events import (
    CancellingNoted,
    ProgramAnswered,
    RequestsFound,
    RestartPrepared,
    SavepointEnded,
    Settling,
)
from ha.sidecar.machine.sidecar_state import Ending, Leading, SidecarState, Step
from ha.sidecar.machine.starts import NOT_STARTED, start_or_end
from ha.verbs.places import DRAIN, FROM, TIMEOUT, TIMEOUT_S
from ha.verbs.table import (
    CANCEL,
    OF_LEADER,
    RESTART,
    RESTART_FROM,
    RESTART_QUERY,
    SAVEPOINT,
    STOP_WITH_SAVEPOINT,
)
from leader.job.request_folder import Request
from leader.job.request_folder import State as Told
from leader.timing import NEVER

STOPPED, CANCELLED = "stopped-by-operator", "cancelled"  # how a leadership ended, for the history
PROGRAM_WITHIN_S = 300.0  # a program that has not answered by then is not waited for any longer


def look(state: SidecarState) -> None:
    """Look for what operators ask for: once more, if that is under way."""
    phase, requests = state.phase, state.requests
    if not isinstance(phase, Leading):
        return  # it is left to the next leader, who refuses or accepts it
    requests.look_at = NEVER
    if requests.looking:
        requests.again = True
    else:
        requests.looking = True
        state.do(LookForRequests(phase.leader))


def found(state: SidecarState, event: RequestsFound) -> None:
    """These are accepted: each one is refused, or carried out."""
    phase, requests = state.phase, state.requests
    if isinstance(phase, Leading | Ending) and phase.leader == event.leader:
        first, requests.looking, requests.first = requests.first, False, False
        for request in event.requests:
            if refusal := _refusal(state, request):
                state.do(AnswerRequest(request, Told.REFUSED, refusal))
            else:
                _carry_out(state, request, first=first)
        if event.unknown:
            requests.look_at = state.at + requests.pause
            requests.pause = min(2 * requests.pause, state.rules.renewal)
        else:
            requests.pause = state.rules.retry
        if requests.again:
            requests.again = False
            look(state)


def _refusal(state: SidecarState, request: Request) -> str:
    requests, phase = state.requests, state.phase
    present = requests.present
    if request.verb not in OF_LEADER or OF_LEADER[request.verb].at_once:
        return f"This version knows no request {request.verb!r}."
    if present is not None and not (request.verb == CANCEL and OF_LEADER[present.verb].saves):
        return f"It is carrying out another one: {present.verb}."
    if not isinstance(phase, Leading):
        return "This leadership is about to end: ask again."
    restarts = phase.step is Step.RESTORING and request.verb == RESTART
    if state.work and (OF_LEADER[request.verb].saves or restarts):
        return "It is busy with a savepoint: ask again after that."
    if request.verb == RESTART_QUERY and (busy := requests.of_program) is not None:
        return f"Its program is busy with {busy.verb} {' '.join(busy.arguments.values())}: ask again after that."
    return ""


def _carry_out(state: SidecarState, request: Request, *, first: bool) -> None:
    requests, phase = state.requests, state.phase
    assert isinstance(phase, Leading), "any other is refused"
    state.do(Say(logging.INFO, f"{request.by or 'an operator'} asks to {request.verb}."))
    if request.verb == SAVEPOINT:
        requests.saving = request
        state.do(TakeSavepoint(_work(state), phase.leader, request))
        return
    if request.verb == RESTART_QUERY:
        requests.of_program, requests.program_by, requests.program_said = request, state.at + PROGRAM_WITHIN_S, ""
        if state.runs_granted:
            state.do(AskProgram(request))
        else:
            program_answered(state, ProgramAnswered(request.id, Told.REFUSED, f"Its command does not run now: {LATER}"))
        return
    answer(state, "The job is cancelled.", done=False)  # what has waited for a savepoint
    requests.present, requests.kept, requests.result = request, "", {}
    if request.verb == RESTART and first and phase.step is Step.RUNNING and not request.arguments:
        answer(state, "The command has been started by the leader that came next.")
    elif request.verb in (RESTART, RESTART_FROM):
        state.do(PrepareRestart(phase.leader, request))
    elif request.verb == STOP_WITH_SAVEPOINT:
        _stop_with_savepoint(state, request, phase)
    else:
        _end_job(state, phase, cancelled=request.verb == CANCEL)


# --- the end of the command


def job_ended(state: SidecarState, said: str, *, done: bool = False, recorded: bool = True) -> None:
    """Answer everybody: the job has ended; ``done`` if that was asked for, ``recorded`` if its state says so."""
    phase = state.phase
    _give_up_savepoints(state, "The job has ended meanwhile.")
    answer(state, said, done=done)
    if recorded and isinstance(phase, Leading | Ending):
        state.do(RefuseRest(phase.leader, said))


def goes_on(state: SidecarState, phase: Leading, *, drained: bool) -> bool:
    """Go on after the end of the command, if it was asked to end for that; returns whether it was."""
    if awaits_savepoint(state):
        _take_stopped(state, phase, drained=drained)
        return True
    if state.requests.restarts:
        _start_again(state, phase)
        return True
    return False


def _start_again(state: SidecarState, phase: Leading) -> None:
    if state.requests.staged:
        state.do(PutBack(phase.leader, state.requests.staged))
    wait(state, phase, 0.0)


def _let_end(state: SidecarState, seconds: float, *, drain: bool = False) -> None:
    """Have the command end after the present batches of its queries, if it knows how; otherwise by SIGTERM."""
    # A signal goes to all its processes, so the JVM interrupts what it does.
    run = state.run
    if run is not None and run.granted and not run.starting:
        state.do(SettleQueries(run.number, seconds, drain))
    else:
        stop_command(state)


def settling(state: SidecarState, event: Settling) -> None:
    """The program ends its queries in order; or it does not know how."""
    run = state.run
    if run is not None and run.number == event.run and not run.ends:
        if event.able:
            run.terminate_at = state.at + event.seconds
        else:
            stop_command(state)


# --- stop, cancel, restart


def _end_job(state: SidecarState, phase: Leading, *, cancelled: bool) -> None:
    if cancelled:
        _give_up_savepoints(state, "The job is cancelled.")
        state.do(RecordCancelling(phase.leader))
    _end(state, phase, CANCELLED if cancelled else STOPPED)


def _end(state: SidecarState, phase: Leading, cause: str) -> None:
    record_end(state, cause)
    if state.requests.saving is None:
        abandon_savepoint(state)
    state.phase = Ending(phase.leader)
    if state.run is None or not state.run.granted:
        state.last_end = "finished", "An operator has ended the job."
        finish(state)
    elif cause == STOPPED:
        _let_end(state, state.rules.stop_grace)


def cancelling_noted(state: SidecarState, event: CancellingNoted) -> None:
    """The command ends now: before that, a leader that dies would have the next one start the job again."""
    phase, run = state.phase, state.run
    if isinstance(phase, Ending) and phase.leader == event.leader and run is not None and run.granted and not run.ends:
        stop_command(state)


def restart_prepared(state: SidecarState, event: RestartPrepared) -> None:
    """All that a restart needs is at hand, or nothing is restarted."""
    phase, present = state.phase, state.requests.present
    if present is None or present.id != event.request or not isinstance(phase, Leading):
        return
    if event.problem:
        answer(state, f"Nothing was restarted: {event.problem}", done=False)
    elif present.verb == RESTART_FROM:
        state.do(StageSavepoint(_work(state), phase.leader, present))
    else:
        _restart(state, phase)


def _restart(state: SidecarState, phase: Leading) -> None:
    state.requests.restarts = True
    state.do(ForgetFailures(phase.leader, restarting=True))
    if state.run is None or not state.run.granted:
        _start_again(state, phase)
    else:
        _let_end(state, state.rules.stop_grace)


# --- savepoints


def _work(state: SidecarState) -> int:
    assert not state.work, "one at a time"
    state.works += 1
    state.work = state.works
    return state.work


def _stop_with_savepoint(state: SidecarState, request: Request, phase: Leading) -> None:
    if state.run is not None and state.run.granted:
        seconds = float(request.arguments.get(TIMEOUT, TIMEOUT_S))
        _let_end(state, seconds, drain=bool(request.arguments.get(DRAIN)))
    else:
        _take_stopped(state, phase, drained=True)


def _take_stopped(state: SidecarState, phase: Leading, *, drained: bool) -> None:
    request = state.requests.present
    assert request is not None, "somebody asks for it"
    if request.arguments.get(DRAIN) and not drained:
        said = "There is no savepoint: the queries had not processed all that there was, in the time that they have."
        _go_on_without(state, phase, said)
        return
    state.phase = replace(phase, step=Step.SAVING, start_at=NEVER)
    state.do(TakeSavepoint(_work(state), phase.leader, request, stopped=True))


def _go_on_without(state: SidecarState, phase: Leading, said: str) -> None:
    answer(state, f"{said} The job goes on.", done=False)
    wait(state, phase, 0.0)


def savepoint_ended(state: SidecarState, event: SavepointEnded) -> None:
    """A savepoint is taken, or copied into the job; or it is not."""
    phase, requests = state.phase, state.requests
    if event.work != state.work:
        return
    state.work = 0
    if requests.saving is not None:
        if event.error:
            answer_saving(state, f"There is no savepoint. {event.error} The job goes on.", done=False)
        else:
            answer_saving(state, event.said, event.result)
    elif not isinstance(phase, Leading):
        return
    elif phase.step is Step.RESTORING:
        _restored(state, phase, event)
    elif requests.present is None:
        return
    elif requests.present.verb == STOP_WITH_SAVEPOINT:
        if event.error:
            _go_on_without(state, phase, f"There is no savepoint. {event.error}")
        else:
            requests.kept, requests.result = event.said, event.result
            _end(state, phase, STOPPED)
    elif event.error:
        answer(state, event.error, done=False)
    else:
        requests.staged, requests.kept = requests.present.arguments.get(FROM, ""), event.said
        _restart(state, phase)


def _restored(state: SidecarState, phase: Leading, event: SavepointEnded) -> None:
    if event.error:
        state.do(Say(logging.ERROR, f"it cannot start from the savepoint: {event.error}"))
        state.exit_code = 1
        end_work(state, NOT_STARTED, "The job could not be started from the savepoint.")
        return
    if not event.known:
        state.do(PutBack(phase.leader))
    start_or_end(state, phase)


def _give_up_savepoints(state: SidecarState, said: str) -> None:
    abandon_savepoint(state)
    answer_saving(state, said, done=False)
    if awaits_savepoint(state):
        answer(state, said, done=False)


# --- by the clock


def act_by_the_clock(state: SidecarState) -> None:
    """Do what is due."""
    requests, run = state.requests, state.run
    if state.at >= requests.look_at:
        look(state)
    if (request := requests.of_program) is not None and state.at >= requests.program_by:
        said = f"Its program has not said within {PROGRAM_WITHIN_S:g} s what came of it."
        program_answered(state, ProgramAnswered(request.id, Told.UNKNOWN, said))
    if run is not None and state.at >= run.terminate_at:
        stop_command(state)
