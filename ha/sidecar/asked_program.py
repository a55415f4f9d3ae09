"""AskedProgram: what operators ask of the program itself, through files beside it; the command goes on."""

from typing import NamedTuple

from ha.leadership import program_file
from ha.leadership.program_file import Wanted
from ha.sidecar.command import Command
from ha.sidecar.operator_requests import EXECUTORS, QUERY, RESCALE_EXECUTORS, RESTART_QUERY, OperatorRequests
from leader.job.requests import Request, State
from store.clock import now

WITHIN_S = 300.0
"""A program that has not answered by then is not waited for any more."""


class _Verb(NamedTuple):
    """What a verb is about.

    Attributes:
        argument: of the request, which the program gets.
        later: said if no program runs, or if it has ended meanwhile: what becomes of it then.
        unable: said if the program does not know how.
    """

    argument: str
    later: str
    unable: str


_VERBS = {
    RESTART_QUERY: _Verb(
        QUERY,
        "all of its queries start when it runs again.",
        "Its program does not use ha.spark.Job, or has not begun to start its queries: `ha restart` without a query "
        "starts the whole command again.",
    ),
    RESCALE_EXECUTORS: _Verb(
        EXECUTORS,
        "it begins with the number of its own settings when it runs again.",
        "Its program is not in a block of ha.spark.lead, which alone can ask the cluster: set spark.executor.instances "
        "or spark.cores.max for it, and `ha restart`.",
    ),
}


class AskedProgram:
    """What the program is asked for now, if there is anything. Its methods are called on the sidecar's thread."""

    def __init__(self, command: Command) -> None:
        """Do nothing yet."""
        self._command = command
        self._requests: OperatorRequests | None = None
        self._said = ""
        self._until = 0.0

    def begin(self, request: Request, requests: OperatorRequests) -> None:
        """Ask the program."""
        path, verb = self._command.files.asking_for(request.verb), _VERBS[request.verb]
        self._requests, self._said, self._until = requests, "", now() + WITHIN_S
        if not self._command.granted:
            self._answer(State.REFUSED, f"Its command does not run now: {verb.later}")
        elif not program_file.able(path):
            self._answer(State.REFUSED, verb.unable)
        else:
            try:
                program_file.ask(path, Wanted(request.id, request.arguments.get(verb.argument, "")))
            except OSError as error:
                self._answer(State.FAILED, f"Its program could not be asked: {error.strerror}.")

    def look(self) -> None:
        """Pass on what the program says about it."""
        requests = self._requests
        if requests is None or requests.of_program is None:
            return
        asked = requests.of_program
        found = program_file.answered(self._command.files.asking_for(asked.verb), asked.id)
        if found is not None and found.state.final:
            self._answer(found.state, found.said)
        elif now() >= self._until:
            self._answer(State.UNKNOWN, f"Its program has not said within {WITHIN_S:g} s what came of it.")
        elif found is not None and found.said != self._said:
            self._said = found.said
            requests.tell(asked, found.said)

    def command_ended(self) -> None:
        """The program has ended, and with it what it had begun."""
        self.look()
        if self._requests is not None and self._requests.of_program is not None:
            later = _VERBS[self._requests.of_program.verb].later
            self._answer(State.FAILED, f"The command has ended meanwhile: {later}")

    def end(self) -> None:
        """The leadership is over; what is not answered is unknown, as the next leader says."""
        self._requests = None

    def _answer(self, state: State, said: str) -> None:
        if self._requests is not None:
            self._requests.answer_of_program(state, said)
