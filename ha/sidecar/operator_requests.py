"""OperatorRequests: the sidecar's end of what operators ask for: stop the job, cancel it, or restart its command."""

import logging
from collections.abc import Iterator

from leader.errors import NotLeader
from leader.job.fenced_directory import FencedDirectory
from leader.job.requests import Request, Requests, State
from store.errors import StoreError

STOP, CANCEL, RESTART = "stop", "cancel", "restart"
VERBS = (STOP, CANCEL, RESTART)

_log = logging.getLogger("ha")


class OperatorRequests:
    """The requests of one leadership. One of them is carried out at a time; those that come meanwhile are refused."""

    def __init__(self, directory: FencedDirectory) -> None:
        """Connect to nothing yet; ``directory`` is the one that was granted."""
        self._job = directory.job
        self._requests = Requests(directory)
        self.present: Request | None = None
        """The one that is being carried out."""

    @property
    def ends_the_job(self) -> bool:
        """Whether the job is to end because an operator asks for that."""
        return self.present is not None and self.present.verb in (STOP, CANCEL)

    @property
    def restarts(self) -> bool:
        """Whether the command is to be started again because an operator asks for that."""
        return self.present is not None and self.present.verb == RESTART

    def take(self, *, leading: bool) -> Iterator[Request]:
        """Accept what operators ask for, and yield what is to be carried out now.

        Args:
            leading: whether the command is to run; if not, the leadership is about to end.
        """
        try:
            for request in self._requests.accept():
                if request.verb not in VERBS:
                    self._answer(request, State.REFUSED, f"This version knows no request {request.verb!r}.")
                elif self.present is not None:
                    self._answer(request, State.REFUSED, f"It is carrying out another one: {self.present.verb}.")
                elif not leading:
                    self._answer(request, State.REFUSED, "This leadership is about to end: ask again.")
                else:
                    _log.info("%s: %s asks to %s.", self._job, request.by or "an operator", request.verb)
                    self.present = request
                    yield request
        except (StoreError, NotLeader) as error:
            _log.warning("%s: the requests of operators are not known: %s", self._job, error)

    def answer(self, said: str, *, done: bool = True) -> None:
        """Answer the one that is being carried out, if there is one."""
        request, self.present = self.present, None
        if request is not None:
            self._answer(request, State.DONE if done else State.FAILED, said)

    def _answer(self, request: Request, state: State, said: str) -> None:
        _log.info("%s: the request to %s is %s: %s", self._job, request.verb, state.value, said)
        try:
            self._requests.answer(request, state, said)
        except (StoreError, NotLeader) as error:
            _log.warning("%s: the operator who asked to %s is not answered: %s", self._job, request.verb, error)
