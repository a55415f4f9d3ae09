"""Savepoints of a sidecar's job: what operators ask for, and the savepoint that a job starts from, step by step."""

import logging
from collections.abc import Callable

import msgspec

from ha.config.stores import Stores
from ha.sidecar.command import Command
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.operator_requests import RESTART, SAVES, OperatorRequests
from ha.sidecar.savepoint_work import Outcome, Restore, SavepointWork
from ha.spark.savepoints.arguments import DISCARD, DRAIN, FROM, TIMEOUT, TIMEOUT_S, TO
from ha.spark.savepoints.taking import Wanted
from leader.job.requests import Request
from leader.layout.names import LeaderDirectory

Then = Callable[[str], object]
"""Called with why it was not done; with an empty text if it was."""

_log = logging.getLogger("ha")


class Savepoints:
    """Everything about savepoints in one sidecar. Its methods are called on the sidecar's thread."""

    def __init__(
        self,
        stores: Stores,
        job: str,
        status: JobStatusUpdater,
        leads: Callable[[], bool],
        ended: Callable[[], object],
    ) -> None:
        """Do nothing yet; ``ended`` has :meth:`woken` called."""
        self._job, self._status = job, status
        self._work = SavepointWork(stores, job, leads, ended)
        self._leader: LeaderDirectory | None = None
        self._operators: OperatorRequests | None = None
        self._starting = False

    def begin(self, leader: LeaderDirectory, operators: OperatorRequests) -> None:
        """A leadership has begun."""
        self._leader, self._operators = leader, operators

    def end(self, said: str = "") -> None:
        """The leadership ends, or the job: what is under way is given up, and answered if there is something to say."""
        self._work.abandon()
        self._starting = False
        operators = self._operators
        if operators is not None and said:
            operators.answer_saving(said, done=False)
            if operators.awaits_savepoint:
                operators.answer(said, done=False)

    def woken(self) -> None:
        """Work may have ended."""
        self._work.woken()

    def take(self, request: Request) -> None:
        """Take a savepoint of the job as it runs."""
        self._take(request, self._taken, stopped=False)

    def settle(self, request: Request, command: Command) -> float:
        """Have the queries of the command end in order; returns the seconds after which it is to get SIGTERM."""
        seconds = float(request.arguments.get(TIMEOUT, TIMEOUT_S))
        return seconds if command.settle(seconds, drain=bool(request.arguments.get(DRAIN))) else 0.0

    def take_stopped(self, then: Then, *, drained: bool = True) -> None:
        """Take the savepoint for which the job was stopped; ``drained`` if it has processed all that there was."""
        operators = self._operators
        assert operators is not None, "a leadership has begun"
        assert operators.present is not None, "somebody asks for it"
        request = operators.present

        if request.arguments.get(DRAIN) and not drained:
            then("There is no savepoint: the queries had not processed all that there was, in the time that they have.")
            return

        def taken(outcome: Outcome) -> None:
            if outcome.manifest is not None:
                operators.keep(*_told(request, outcome))
            then("" if outcome.manifest is not None else f"There is no savepoint. {outcome.error}")

        self._take(request, taken, stopped=True)

    def start_from(self, restore: Restore, then: Then) -> None:
        """Put the job back to a savepoint, if it has never been started from that."""

        def staged(outcome: Outcome) -> None:
            self._starting = False
            if outcome.manifest is None or self._status.restore(self._known, restore.where):
                then(outcome.error)  # else the leadership has ended

        _log.info("%s: it starts from the savepoint %s, unless it has done so before.", self._job, restore.where)
        self._starting = True
        self._work.stage(self._status.directory(self._known), restore, lambda said: _log.info("%s", said), staged)

    def restart_from(self, request: Request, then: Then) -> None:
        """Copy a savepoint into the job, which goes on; ``then`` follows if that has succeeded."""
        operators = self._operators
        assert operators is not None, "a leadership has begun"

        def staged(outcome: Outcome) -> None:
            if outcome.manifest is None:
                operators.answer(outcome.error, done=False)
                return
            operators.staged = request.arguments.get(FROM, "")
            operators.keep(f"It goes on from savepoint {outcome.manifest.id}: {outcome.manifest.said}.", {})
            then("")

        restore = Restore(request.arguments.get(FROM, ""), bool(request.arguments.get(DISCARD)))
        directory = self._status.directory(self._known)
        self._work.stage(directory, restore, lambda said: operators.tell(request, said), staged)

    def put_back(self) -> None:
        """Put the job back to the savepoint that was copied into it, if there is one; its command does not run."""
        if self._operators is not None and self._operators.staged:
            self._status.restore(self._known, self._operators.staged)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Verbs that cannot be carried out now, because of what is under way."""
        if not self._work.busy:
            return ()
        return (*SAVES, RESTART) if self._starting else SAVES

    @property
    def _known(self) -> LeaderDirectory:
        assert self._leader is not None, "a leadership has begun"
        return self._leader

    def _take(self, request: Request, then: Callable[[Outcome], object], *, stopped: bool) -> None:
        operators = self._operators
        assert operators is not None, "a leadership has begun"
        wanted = Wanted(request.id, request.arguments.get(TO, "") or request.id, request.by, stopped=stopped)
        timeout = float(request.arguments.get(TIMEOUT, TIMEOUT_S))
        directory = self._status.directory(self._known)
        self._work.take(directory, wanted, timeout, lambda said: operators.tell(request, said), then)

    def _taken(self, outcome: Outcome) -> None:
        operators = self._operators
        if operators is None or operators.saving is None:
            return
        if outcome.manifest is None:
            operators.answer_saving(f"There is no savepoint. {outcome.error} The job goes on.", done=False)
        else:
            operators.answer_saving(*_told(operators.saving, outcome))


def _told(request: Request, outcome: Outcome) -> tuple[str, dict[str, object]]:
    assert outcome.manifest is not None, "it was taken"
    where = request.arguments.get(TO, "") or request.id
    elsewhere = outcome.manifest.bound(where) if "://" in where else []
    said = " ".join(f"{each}." for each in (f"Savepoint {where}: {outcome.manifest.said}", *elsewhere))
    return said, {"savepoint": where, **msgspec.to_builtins(outcome.manifest)}
