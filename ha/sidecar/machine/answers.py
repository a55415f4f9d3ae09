"""Answers to operators, and what the requests that are being carried out want."""

from collections.abc import Mapping
from typing import Any

from ha.sidecar.machine.commands import AnswerRequest
from ha.sidecar.machine.sidecar_events import ProgramAnswered
from ha.sidecar.machine.sidecar_state import SidecarState
from ha.verbs.table import CANCEL, STOP, STOP_WITH_SAVEPOINT
from leader.job.request_folder import State
from leader.timing import NEVER

LATER = "all of its queries start when it runs again."


def answer(state: SidecarState, said: str, *, done: bool = True) -> None:
    """Answer the one that is being carried out, if there is one."""
    requests = state.requests
    request, requests.present, requests.staged, requests.restarts = requests.present, None, "", False
    if request is not None:
        told = State.DONE if done else State.FAILED
        state.do(AnswerRequest(request, told, f"{said} {requests.kept}".rstrip(), requests.result))


def answer_saving(
    state: SidecarState, said: str, result: Mapping[str, Any] | None = None, *, done: bool = True
) -> None:
    """Answer the savepoint of the running job, if there is one."""
    request, state.requests.saving = state.requests.saving, None
    if request is not None:
        state.do(AnswerRequest(request, State.DONE if done else State.FAILED, said, result or {}))


def started(state: SidecarState) -> None:
    """The command has been started: that may be what an operator waits for, unless this run is to end for it."""
    run = state.run
    if state.requests.restarts and state.runs_granted and run is not None and not run.ends:
        answer(state, "The command has been started again.")


def not_started(state: SidecarState, said: str) -> None:
    """The command could not be started."""
    if state.requests.restarts:
        answer(state, f"The command could not be started again: {said}", done=False)


def ends_the_job(state: SidecarState) -> bool:
    """Whether the job is to end because an operator asks for that."""
    present = state.requests.present
    return present is not None and present.verb in (STOP, CANCEL)


def awaits_savepoint(state: SidecarState) -> bool:
    """Whether the job is to end for a savepoint that is not taken yet."""
    present = state.requests.present
    return present is not None and present.verb == STOP_WITH_SAVEPOINT and not state.requests.kept


def program_answered(state: SidecarState, event: ProgramAnswered) -> None:
    """The program has said how far a request has come."""
    requests = state.requests
    request = requests.of_program
    if request is None or request.id != event.request:
        return
    if event.state.final:
        requests.of_program, requests.program_by = None, NEVER
        state.do(AnswerRequest(request, event.state, event.said))
    elif event.said != requests.program_said:
        requests.program_said = event.said
        state.do(AnswerRequest(request, State.ACCEPTED, event.said))


def program_ended(state: SidecarState) -> None:
    """The program has ended, and with it what it had begun."""
    if (request := state.requests.of_program) is not None:
        said = f"The command has ended meanwhile: {LATER}"
        program_answered(state, ProgramAnswered(request.id, State.FAILED, said))
