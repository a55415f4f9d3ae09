"""OperatorRequests: the sidecar's end of what operators ask for, as to stop the job, or to take a savepoint of it."""

import logging
import threading
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from leader.errors import NotLeader
from leader.job.fenced_directory import FencedDirectory
from leader.job.requests import Request, Requests, State
from leader.timing import NEVER, Timing
from store.clock import BOOT_CLOCK, now
from store.errors import StoreError

STOP, CANCEL, RESTART = "stop", "cancel", "restart"
SAVEPOINT, STOP_WITH_SAVEPOINT, RESTART_FROM = "savepoint", "stop-with-savepoint", "restart-from"
RESTART_QUERY, RESCALE_EXECUTORS = "restart-query", "rescale-executors"
OF_PROGRAM = (RESTART_QUERY, RESCALE_EXECUTORS)
"""The program itself does these, one at a time, and the command goes on."""

VERBS = (STOP, CANCEL, RESTART, SAVEPOINT, STOP_WITH_SAVEPOINT, RESTART_FROM, *OF_PROGRAM)
"""A leader of an earlier version refuses a verb that it does not know, and overlooks an argument."""

SAVES = (SAVEPOINT, STOP_WITH_SAVEPOINT, RESTART_FROM)
"""Of these, one at a time."""

QUERY = "query"
"""The argument of a request to restart a query: its name."""

EXCLUDE = "exclude"
"""The argument of a request to restart: hosts that executors keep off from then on, separated by commas."""

EXECUTORS = "executors"
"""The argument of a request to rescale these: their number."""

ANSWER_PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Before each further try to write an answer: an operator waits for it, and the store may be what has failed."""

_log = logging.getLogger("ha")


class OperatorRequests:
    """The requests of one leadership.

    One of them is carried out at a time, and those that come meanwhile are refused. A savepoint of the running job and
    what the program does itself are beside that one: they hold up nothing.
    """

    def __init__(self, directory: FencedDirectory, timing: Timing) -> None:
        """Connect to nothing yet; ``directory`` is the one that was granted."""
        self._job, self._timing = directory.job, timing
        self.look_again_at = NEVER
        """When to look once more, because the store did not answer: nothing else tells of what was asked meanwhile."""
        self._pause = timing.retry
        self._requests = Requests(directory)
        self.present: Request | None = None
        """The one that is being carried out."""
        self.saving: Request | None = None
        """The savepoint of the running job that is being taken."""
        self.of_program: Request | None = None
        """What the program has been asked for."""
        self.staged = ""
        """Where the savepoint comes from that the command is to start from next; empty if there is none."""
        self._kept: tuple[str, Mapping[str, Any]] = ("", {})

    @property
    def ends_the_job(self) -> bool:
        """Whether the job is to end because an operator asks for that."""
        return self.present is not None and self.present.verb in (STOP, CANCEL)

    @property
    def restarts(self) -> bool:
        """Whether the command is to be started again because an operator asks for that."""
        return self.present is not None and (self.present.verb == RESTART or bool(self.staged))

    @property
    def awaits_savepoint(self) -> bool:
        """Whether the command is to end, or has ended, for a savepoint that is not taken yet."""
        return self.present is not None and self.present.verb == STOP_WITH_SAVEPOINT and not self._kept[0]

    def take(self, leading: Callable[[], bool], waiting: Callable[[], Container[str]]) -> Iterator[Request]:
        """Accept what operators ask for, and yield what is to be carried out now.

        Both are asked for each request, because an earlier one may have changed the answer.

        Args:
            leading: whether the command is to run; if not, the leadership is about to end.
            waiting: verbs that have to wait for a savepoint.
        """
        self.look_again_at = NEVER
        try:
            for request in self._requests.accept():
                if refusal := self._refusal(request, leading, waiting):
                    self._answer(request, State.REFUSED, refusal)
                    continue
                _log.info("%s: %s asks to %s.", self._job, request.by or "an operator", request.verb)
                if request.verb == SAVEPOINT:
                    self.saving = request
                elif request.verb in OF_PROGRAM:
                    self.of_program = request
                else:
                    self.answer("The job is cancelled.", done=False)  # what has waited for a savepoint
                    self.present, self._kept = request, ("", {})
                yield request
        except NotLeader as error:
            _log.warning("%s: the requests of operators are not known: %s", self._job, error)
        except StoreError as error:
            self._look_later(error)
        else:
            self._pause = self._timing.retry

    def _look_later(self, error: StoreError) -> None:
        """Nothing else tells of what was asked. A leader at rest calls the store as often as this does at last."""
        if self._pause == self._timing.retry:  # the first time in a row
            _log.warning("%s: the requests of operators are not known yet: %s", self._job, error)
        self.look_again_at = now() + self._pause
        self._pause = min(2 * self._pause, self._timing.renewal)

    def _refusal(
        self, request: Request, leading: Callable[[], bool], waiting: Callable[[], Container[str]]
    ) -> str | None:
        """Return why a request is refused; None if it is carried out."""
        if request.verb not in VERBS:
            return f"This version knows no request {request.verb!r}."
        if self.present is not None and not (request.verb == CANCEL and self.present.verb in SAVES):
            return f"It is carrying out another one: {self.present.verb}."
        if not leading():
            return "This leadership is about to end: ask again."
        if request.verb in waiting():
            return "It is busy with a savepoint: ask again after that."
        if request.verb in OF_PROGRAM and (busy := self.of_program) is not None:
            return f"Its program is busy with {busy.verb} {' '.join(busy.arguments.values())}: ask again after that."
        return None

    def answer(self, said: str, *, done: bool = True) -> None:
        """Answer the one that is being carried out, if there is one."""
        request, self.present, self.staged = self.present, None, ""
        if request is not None:
            kept, result = self._kept
            self._answer(request, State.DONE if done else State.FAILED, f"{said} {kept}".rstrip(), result)

    def answer_saving(self, said: str, result: Mapping[str, Any] | None = None, *, done: bool = True) -> None:
        """Answer the savepoint of the running job, if there is one."""
        request, self.saving = self.saving, None
        if request is not None:
            self._answer(request, State.DONE if done else State.FAILED, said, result)

    def answer_of_program(self, state: State, said: str) -> None:
        """Answer what the program has been asked for, if there is anything."""
        request, self.of_program = self.of_program, None
        if request is not None:
            self._answer(request, state, said)

    def keep(self, said: str, result: Mapping[str, Any]) -> None:
        """Have the next answer say this as well."""
        self._kept = said, result

    def tell(self, request: Request, said: str) -> None:
        """Tell how far a request has come; from any thread."""
        self._answer(request, State.ACCEPTED, said)

    def _answer(self, request: Request, state: State, said: str, result: Mapping[str, Any] | None = None) -> None:
        _log.info("%s: the request to %s is %s: %s", self._job, request.verb, state.value, said)

        def answered() -> bool:
            try:
                self._requests.answer(request, state, said, result)
            except StoreError as error:
                _log.warning("%s: the operator who asked to %s is not answered: %s", self._job, request.verb, error)
                return False
            except NotLeader as error:  # the next leader answers
                _log.warning("%s: the operator who asked to %s is not answered: %s", self._job, request.verb, error)
            return True

        def later() -> None:
            for pause in ANSWER_PAUSES_S:
                BOOT_CLOCK.sleep(pause)
                if answered():
                    return

        if not answered() and state.final:
            threading.Thread(target=later, name="ha-answer", daemon=True).start()
