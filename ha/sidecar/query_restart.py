"""QueryRestart: an operator has a query started again; the program does it, and the command goes on."""

from ha.leadership import restart_file
from ha.leadership.restart_file import Wanted
from ha.sidecar.command import Command
from ha.sidecar.operator_requests import QUERY, OperatorRequests
from leader.job.requests import Request, State
from store.clock import now

WITHIN_S = 300.0
"""A program that has not answered by then is not waited for any more."""


class QueryRestart:
    """The restart that is under way, if there is one. Its methods are called on the sidecar's thread."""

    def __init__(self, command: Command) -> None:
        """Do nothing yet."""
        self._command = command
        self._requests: OperatorRequests | None = None
        self._said = ""
        self._until = 0.0

    def begin(self, request: Request, requests: OperatorRequests) -> None:
        """Have the program start a query again."""
        path = self._command.restart_file
        self._requests, self._said, self._until = requests, "", now() + WITHIN_S
        if not self._command.granted:
            self._answer(State.REFUSED, "Its command does not run now, and starts all queries when it runs again.")
        elif not restart_file.able(path):
            self._answer(
                State.REFUSED,
                "Its program does not use ha.spark.Job, or has not begun to start its queries: `ha restart` without a "
                "query starts the whole command again.",
            )
        else:
            try:
                restart_file.ask(path, Wanted(request.id, request.arguments.get(QUERY, "")))
            except OSError as error:
                self._answer(State.FAILED, f"Its program could not be asked: {error.strerror}.")

    def look(self) -> None:
        """Pass on what the program says about it."""
        requests = self._requests
        if requests is None or requests.restarting is None:
            return
        found = restart_file.answered(self._command.restart_file, requests.restarting.id)
        if found is not None and found.state.final:
            self._answer(found.state, found.said)
        elif now() >= self._until:
            self._answer(State.UNKNOWN, f"Its program has not said within {WITHIN_S:g} s what came of it.")
        elif found is not None and found.said != self._said:
            self._said = found.said
            requests.tell(requests.restarting, found.said)

    def command_ended(self) -> None:
        """The program has ended, and with it what it had begun."""
        self.look()
        self._answer(State.FAILED, "The command has ended meanwhile: all of its queries start when it runs again.")

    def end(self) -> None:
        """The leadership is over; what is not answered is unknown, as the next leader says."""
        self._requests = None

    def _answer(self, state: State, said: str) -> None:
        if self._requests is not None:
            self._requests.answer_restarting(state, said)
