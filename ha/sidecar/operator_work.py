"""OperatorWork: what a sidecar does when operators ask for it: stop, cancel, restart, and savepoints."""

from collections.abc import Callable
from dataclasses import replace

from ha.sidecar.asked_program import AskedProgram
from ha.sidecar.command import Command
from ha.sidecar.command_starts import CommandStarts
from ha.sidecar.escalation import Escalation
from ha.sidecar.executor_hosts import ExecutorHosts
from ha.sidecar.job_leadership import JobLeadership
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.operator_requests import (
    CANCEL,
    EXCLUDE,
    OF_PROGRAM,
    RESTART,
    RESTART_FROM,
    SAVEPOINT,
    STOP_WITH_SAVEPOINT,
    OperatorRequests,
)
from ha.sidecar.phase import Ending, Leading
from ha.sidecar.savepoints import Savepoints
from leader.job.excluded import hosts_of
from leader.job.requests import Request
from leader.layout.names import LeaderDirectory
from leader.timing import NEVER
from store.clock import now

STOPPED, CANCELLED = "stopped-by-operator", "cancelled"
"""Why a leadership has ended, for the history."""


class OperatorWork:
    """Carries out what operators ask for while this sidecar leads. Its methods are called on the sidecar's thread."""

    def __init__(
        self,
        leadership: JobLeadership,
        status: JobStatusUpdater,
        escalation: Escalation,
        command: Command,
        starts: CommandStarts,
        savepoints: Savepoints,
        hosts: ExecutorHosts,
        finish: Callable[[Ending], object],
    ) -> None:
        """Do nothing yet; ``finish`` ends the job of which no command runs."""
        self._leadership, self._status, self._escalation = leadership, status, escalation
        self._command, self._starts, self._savepoints, self._finish = command, starts, savepoints, finish
        self._hosts = hosts
        self._requests: OperatorRequests | None = None
        self._asked_program = AskedProgram(command)
        self._terminate_at = NEVER
        """When a command whose queries end in order gets SIGTERM, if it has not ended before."""

    def begin(self, leader: LeaderDirectory) -> None:
        """A leadership has begun."""
        self._requests = OperatorRequests(self._status.directory(leader), self._leadership.timing)
        self._savepoints.begin(leader, self._requests)

    def end(self) -> None:
        """The leadership is over; what is not answered is unknown, as the next leader says."""
        self._asked_program.end()
        self._requests = None

    def look(self) -> None:
        """Carry out what operators have asked for meanwhile."""
        if self._requests is None:
            return
        leading = lambda: isinstance(self._leadership.phase, Leading)  # noqa: E731
        for request in self._requests.take(leading, lambda: self._savepoints.waiting):
            phase = self._leadership.phase
            assert isinstance(phase, Leading), "only then anything is carried out"
            if request.verb in (RESTART, RESTART_FROM) and not self._excluded(phase.leader, request):
                continue
            match request.verb:
                case verb if verb == SAVEPOINT:
                    self._savepoints.take(request)
                case verb if verb in OF_PROGRAM:
                    self._asked_program.begin(request, self._requests)
                case verb if verb == RESTART_FROM:
                    self._savepoints.restart_from(request, self._restart_from)
                case verb if verb == STOP_WITH_SAVEPOINT:
                    self._stop_with_savepoint(request, phase)
                case verb if verb == RESTART:
                    self._restart_newest(phase)
                case verb:
                    self._end_job(phase, cancelled=verb == CANCEL)

    def act_by_the_clock(self) -> None:
        """Do what is due: pass on what the program says, look again, end a command whose queries have not ended."""
        self._asked_program.look()
        if self._requests is not None and now() >= self._requests.look_again_at:
            self.look()
        if now() >= self._terminate_at:
            self._terminate_at = NEVER
            self._leadership.stop_command()

    def command_ended(self) -> None:
        """The command has ended, for whatever reason."""
        self._asked_program.command_ended()
        self._terminate_at = NEVER

    def goes_on(self, phase: Leading, *, replaces: bool) -> bool:
        """Go on after the end of the command, if it was asked to end for that; returns whether it was.

        Args:
            phase: the command may run.
            replaces: whether a newer version of it is to be started.
        """
        requests = self._requests
        if requests is not None and requests.awaits_savepoint:
            self._savepoints.take_stopped(self._stopped, drained=self._command.drained)
            return True
        if replaces or (requests is not None and requests.restarts):
            self._savepoints.put_back()
            self._leadership.start_in(phase, 0.0)
            return True
        return False

    @property
    def ends_the_job(self) -> bool:
        """Whether the job is to end because an operator asks for that."""
        return self._requests is not None and self._requests.ends_the_job

    def started_again(self) -> None:
        """The command has been started again: that may be what an operator waits for."""
        if self._requests is not None and self._requests.restarts:
            self._requests.answer("The command has been started again.")

    def job_ended(self, *, recorded: bool) -> None:
        """The job has ended; ``recorded`` if its state says so."""
        if self._requests is not None:
            said = "The job has ended." if recorded else "The command has ended, and the job's state is not known."
            self._savepoints.end("The job has ended meanwhile.")
            self._requests.answer(said, done=recorded)

    # --- one by one

    def _stop_with_savepoint(self, request: Request, phase: Leading) -> None:
        self._leadership.phase = replace(phase, start_at=NEVER)
        if self._command.runs:
            self._terminate_at = now() + self._savepoints.settle(request, self._command)
        else:
            self._savepoints.take_stopped(self._stopped)

    def _stopped(self, error: str) -> None:
        """The savepoint of the stopped job is taken, and the job has ended; or it is not, and the job goes on."""
        phase = self._leadership.phase
        if not isinstance(phase, Leading) or self._requests is None:
            return
        if error:
            self._requests.answer(f"{error} The job goes on.", done=False)
            self._leadership.start_in(phase, 0.0)
        else:
            self._end(phase, STOPPED)

    def _excluded(self, leader: LeaderDirectory, request: Request) -> bool:
        """Record the hosts that executors keep off from this restart on; returns whether that was done."""
        assert self._requests is not None, "it has accepted this one"
        if problem := self._hosts.keep_off(leader, hosts_of(request.arguments.get(EXCLUDE, ""))):
            self._requests.answer(f"Nothing was restarted: {problem}", done=False)
        return not problem

    def _restart_newest(self, phase: Leading) -> None:
        if (unfit := self._starts.take_newest()) is not None:
            assert self._requests is not None, "it has accepted this one"
            self._requests.answer(f"Nothing was restarted: {unfit}", done=False)
        else:
            self._restart(phase)

    def _restart_from(self, _: str) -> None:
        """The savepoint is copied into the job: the command ends, and starts again from there."""
        if isinstance(self._leadership.phase, Leading):
            self._restart(self._leadership.phase)

    def _restart(self, phase: Leading) -> None:
        self._status.fail(phase.leader)
        self._escalation.forget(phase.leader)
        if self._command.runs:
            self._let_end()
        else:
            self._savepoints.put_back()
            self._leadership.start_in(phase, 0.0)

    def _end_job(self, phase: Leading, *, cancelled: bool) -> None:
        if cancelled:
            self._savepoints.end("The job is cancelled.")
            self._status.cancel(phase.leader)
        self._end(phase, CANCELLED if cancelled else STOPPED)

    def _end(self, phase: Leading, cause: str) -> None:
        self._leadership.record_end(cause)
        self._leadership.phase = ending = Ending(phase.leader)
        if not self._command.runs:
            self._finish(ending)
        elif cause == CANCELLED:
            self._leadership.stop_command()
        else:
            self._let_end()

    def _let_end(self) -> None:
        """Have the command end after the present batches of its queries, if it knows how; otherwise by SIGTERM.

        A signal goes to all its processes, so the JVM interrupts what it does.
        """
        seconds = self._leadership.stop_grace
        if self._command.settle(seconds, drain=False):
            self._terminate_at = now() + seconds
        else:
            self._leadership.stop_command()
