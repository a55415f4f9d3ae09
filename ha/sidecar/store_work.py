"""StoreWork: what a sidecar does to the store, one command after the other; each one may wait until the lease ends."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ha.hook.query_watch import FAILED
from ha.program.failure_notes import left
from ha.sidecar.command.newest_program import NewestProgram
from ha.sidecar.executor_hosts import ExecutorHosts
from ha.sidecar.failure_count import FailureCount
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.running_note import RunningNote
from ha.sidecar.savepoint_work import Restore, SavepointWork
from ha.spark.queries.checkpoint_publisher import SidecarPublisher
from ha.spark.stored.unguarded import Unguarded
from ha.verbs.table import EXCLUDE, RESTART, RESTART_FROM
from leader.errors import LeaderError, NotLeader
from leader.job.excluded import hosts_of
from leader.job.fenced_directory import FencedDirectory
from leader.job.programs import Program
from leader.job.request_folder import Request, Requests, State
from leader.layout.names import LeaderDirectory
from store.errors import StoreError

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # before each further try to write an answer: an operator waits for it

# Has a function called after so many seconds, behind what is being done then.
Later = Callable[[float, Callable[[], None]], object]

_log = logging.getLogger("ha")


class StoreWork:
    """The store's part of one sidecar's work, in one job."""

    def __init__(
        self,
        job: str,
        status: JobStatusUpdater,  # the job's
        failures: FailureCount,  # the count of the job's failures
        savepoints: SavepointWork,  # their work, which has a thread of its own
        programs: NewestProgram,  # which program each start takes
        program: Callable[[], Program],  # returns the present one
        hosts: ExecutorHosts,  # those that executors keep off
        # Publishes the checkpoints of a program that does not do so itself; None if it does.
        publisher: SidecarPublisher | None,
        restore: Restore | None,  # a savepoint that the job starts from; None for none
        later: Later,  # has a function called after so many seconds
        unguarded: Callable[[], Path],  # returns the file in which the program names queries that are not guarded
        # Returns what else is known of the end of the command, and the last lines of its output.
        last_words: Callable[[], tuple[str, str]] = lambda: ("", ""),
        note: RunningNote | None = None,  # tells others what runs
    ) -> None:
        self._job, self._status, self._note = job, status, note
        self.failures, self.savepoints = failures, savepoints
        self._programs, self._program, self._hosts = programs, program, hosts
        self._publisher, self._restore, self._later = publisher, restore, later
        self._operators: OperatorAnswers | None = None
        self._unguarded_file, self._last_words = unguarded, last_words
        self._unguarded: Unguarded | None = None
        self._kept: tuple[threading.Event, float] | None = None
        self._told = threading.Event()  # set when the failures that the program has told of are kept
        self._told.set()

    def directory(self, leader: LeaderDirectory) -> FencedDirectory:
        """Return the leader directory as a store."""
        return self._status.directory(leader)

    def carry_out(self, command: do.SidecarCommand) -> events.SidecarEvent | None:  # noqa: C901, PLR0911, PLR0912  # one line each
        """Carry out a command; returns what came of it."""
        match command:
            case do.Begin(leader):
                return self._begin(leader)
            case do.RecordTakeUp(leader):
                self._take_part(leader)
                self._status.reconcile(leader)
            case do.NoteRestarting(leader):
                return events.RestartingNoted(leader, ended=not self._status.fail(leader))
            case do.CountFailure(leader, cause, seconds, remedy):
                return events.FailureCounted(leader, gave_up=self.failures.add(leader, cause, seconds, remedy))
            case do.ForgetFailures(leader, restarting):
                if restarting:
                    self._status.fail(leader)
                return events.Forgotten(leader) if self.failures.forget(leader) else None
            case do.RecordCancelling(leader):
                self._status.cancel(leader)
                return events.CancellingNoted(leader)
            case do.Finish(leader):
                if self._publisher is not None:
                    self._publisher.finish()
                return events.Finished(leader, recorded=self._status.finish(leader))
            case do.LookForRequests(leader):
                return self._answers(leader).look()
            case do.AnswerRequest(request, state, said, result):
                runs = self._runs() if state is State.DONE and request.verb in (RESTART, RESTART_FROM) else {}
                self._tell(request, state, f"{said} {runs.pop('said')}" if runs else said, {**result, **runs})
            case do.RefuseRest(leader, said):
                self._answers(leader).refuse_rest(said)
            case do.PrepareRestart(leader, request):
                return events.RestartPrepared(request.id, self._prepare(leader, request))
            case do.TakeSavepoint(work, leader, request, stopped):
                tell = lambda said: self._tell(request, State.ACCEPTED, said)  # noqa: E731
                self.savepoints.take(work, self.directory(leader), request, tell, stopped=stopped)
            case do.StageSavepoint(work, leader, request):
                self._stage(work, leader, request)
            case do.PutBack(leader, where):
                self._status.restore(leader, where or (self._restore.where if self._restore is not None else ""))
            case _:
                raise AssertionError(f"{type(command).__name__} is nothing for the store")
        return None

    def keep_rest(self, leader: LeaderDirectory) -> None:
        """Keep what the store has not taken so far: this host, or the store, lacked something."""
        self._status.keep_failures(leader)

    def running(self, leader: LeaderDirectory) -> None:
        """Set the job's state to RUNNING."""
        self._status.restart(leader)

    def started(self, leader: LeaderDirectory) -> None:
        """Say what runs, if it is another version now; no call otherwise."""
        if self._note is not None and self._note.version != self._program().version:
            self._say_what_runs(leader)

    def _say_what_runs(self, leader: LeaderDirectory) -> None:
        if self._note is not None:
            with suppress(StoreError, NotLeader):  # the next start, or the next leadership, says it
                self._note.lead(self.directory(leader), self._program().version)

    def keep(self, command: do.KeepException) -> None:
        """Keep a failure, in the background."""
        more, lines = ("", "") if command.dump else self._last_words()
        said = f"{command.said} {more}".rstrip()
        kept = self._status.add_exception(command.leader, command.kind, said, lines, command.dump)
        # One with lines is a file, which takes longer than the short wait: it is kept after the lease is given back.
        self._kept = None if lines and command.wait < do.NOTE_S else (kept, command.wait)

    def show_told(self) -> None:
        """Show what the program has told of its queries: those that are not guarded, and failures of others."""
        notes = self._status.notes()
        with suppress(OSError):  # the host lacks a descriptor: the next look
            if self._operators is not None and self._told.is_set() and any(notes.glob(f"*{FAILED}")) and left(notes):
                self._told = self._status.keep_failures(self._operators.leader)
        if self._unguarded is not None:
            with suppress(StoreError, NotLeader):  # the next look does it, or the next leader
                self._unguarded.look(())

    def end(self) -> None:
        """The lease is about to be given back: wait for a moment until the last failure is kept."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept[0].wait(kept[1])
        if self._publisher is not None:
            self._publisher.end()

    def _begin(self, leader: LeaderDirectory) -> events.Begun:
        self._take_part(leader)
        if not self._status.begin(leader):
            return events.Begun(leader, ended=self._status.ended)
        pause, failed = self.failures.pause(leader)
        if pause:
            self._status.fail(leader)
        return events.Begun(leader, gave_up=pause is None, pause=pause or 0.0, failed=failed)

    def _take_part(self, leader: LeaderDirectory) -> None:
        self._status.keep_failures(leader)
        self._answers(leader)
        self._say_what_runs(leader)
        if self._publisher is not None:  # which shows them as well
            self._publisher.begin(leader)
        else:
            self._unguarded = Unguarded(self.directory(leader), self._unguarded_file)

    def _answers(self, leader: LeaderDirectory) -> "OperatorAnswers":
        if self._operators is None or self._operators.leader != leader:
            self._operators = OperatorAnswers(self.directory(leader), self._later)
        return self._operators

    def _tell(self, request: Request, state: State, said: str, result: dict[str, object] | None = None) -> None:
        assert self._operators is not None, "a leader has accepted it"
        self._operators.answer(request, state, said, result)

    def _runs(self) -> dict[str, Any]:
        """Return what runs now, for an operator who has asked for another program, and a sentence about it."""
        assert self._operators is not None, "a leader has accepted it"
        version, epoch, contender = self._program().version, self._operators.leader.epoch, self._status.contender
        host, since = socket.gethostname(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        what = f"Version {version}" if version else "The COMMAND that its `ha run` was given"
        said = f"{what} runs as {contender} on {host} in epoch {epoch}, since {since}."
        runs = {"version": version or None, "contender": contender, "host": host, "epoch": epoch, "since": since}
        return {"runs": runs, "said": said}

    def _prepare(self, leader: LeaderDirectory, request: Request) -> str:
        """Record the hosts to keep off, and fetch the newest program; returns why not, if so."""
        if problem := self._hosts.keep_off(leader, hosts_of(request.arguments.get(EXCLUDE, ""))):
            return problem
        try:
            self._programs.newest(self._program())
        except LeaderError as error:
            return f"{error}"
        return ""

    def _stage(self, work: int, leader: LeaderDirectory, request: Request | None) -> None:
        directory = self.directory(leader)
        if request is not None:
            tell = lambda said: self._tell(request, State.ACCEPTED, said)  # noqa: E731
            self.savepoints.stage_for(work, directory, request, tell)
        else:
            assert self._restore is not None, "the machine knows that there is one"
            self.savepoints.stage(work, directory, self._restore, lambda _: None)


class OperatorAnswers:
    """The requests of one leadership. Every method may wait for the store."""

    def __init__(self, directory: FencedDirectory, later: Later) -> None:
        self.leader: LeaderDirectory = directory.leader
        self._job, self._later = directory.job, later
        self._requests = Requests(directory)
        self._away = False

    def look(self) -> events.RequestsFound:
        """Accept what operators ask for."""
        found = list[Request]()
        try:
            for request in self._requests.accept():
                found.append(request)  # those before an error are accepted, too
        except NotLeader as error:
            _log.warning("%s: the requests of operators are not known: %s", self._job, error)
        except StoreError as error:
            if not self._away:
                _log.warning("%s: the requests of operators are not known yet: %s", self._job, error)
            self._away = True
            return events.RequestsFound(self.leader, tuple(found), unknown=True)
        self._away = False
        return events.RequestsFound(self.leader, tuple(found))

    def refuse_rest(self, said: str) -> None:
        """Refuse what nobody has accepted; one try."""
        try:
            for request in self._requests.accept():
                self.answer(request, State.REFUSED, said)
        except (StoreError, NotLeader) as error:
            _log.warning("%s: operators are not told that it has ended: %s", self._job, error)

    def answer(self, request: Request, state: State, said: str, result: Mapping[str, Any] | None = None) -> None:
        """Write how far a request has come; the end of it is tried for about a minute."""
        _log.info("%s: the request to %s is %s: %s", self._job, request.verb, state.value, said)

        def attempt(number: int = 0) -> None:
            try:
                self._requests.answer(request, state, said, result)
            except (StoreError, NotLeader) as error:
                _log.warning("%s: the operator who asked to %s is not answered: %s", self._job, request.verb, error)
                # If another one leads, that one answers. How far it has come is told by the next news.
                if isinstance(error, StoreError) and state.final and number < len(PAUSES_S):
                    self._later(PAUSES_S[number], lambda: attempt(number + 1))

        attempt()
