"""The sidecar: contends for a job, runs a command while it leads, and stops the command when the leadership ends.

Its phases are in ha/sidecar/phase.py; it alone changes them.
"""

import logging
import random
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FrameType

from ha.config.command_settings import CLASS_DATA_ON, WARM
from ha.config.restart_strategy import INFINITE, ExponentialDelay
from ha.daemon.process import ContendingProcess
from ha.leadership.notices import AskedTo, Granted, Notice, NoticeQueue, Refused, Requested, Revoked, Wake
from ha.metrics.contending import CommandCounters
from ha.metrics.outputs import OutputMetrics
from ha.metrics.queries import QueryMetrics, Reports
from ha.metrics.verification import VerificationMetrics
from ha.sidecar.class_data import ClassData
from ha.sidecar.command import NEVER, Command
from ha.sidecar.escalation import Escalation
from ha.sidecar.failures import CommandFailures, Decision, end_of_command
from ha.sidecar.hangs import HangWatch
from ha.sidecar.job_status import NOTE_S, JobStatusUpdater
from ha.sidecar.newest_program import NewestProgram
from ha.sidecar.operator_requests import (
    CANCEL,
    RESTART,
    RESTART_FROM,
    SAVEPOINT,
    STOP_WITH_SAVEPOINT,
    OperatorRequests,
)
from ha.sidecar.phase import Ending, Leading, Phase, Standby
from ha.sidecar.probes import probe_of
from ha.sidecar.savepoint_work import Restore
from ha.sidecar.savepoints import Savepoints
from ha.sidecar.stored_program import StoredProgram
from ha.sidecar.verification import Verification
from ha.spark.checkpoint_publisher import SidecarPublisher
from ha.spark.query_reports import QueryReports
from leader.election.events import Grant, Revoke
from leader.errors import LeaderError
from leader.job.requests import Request
from leader.layout.information import check_endpoints
from leader.layout.lease import ANYBODY
from leader.layout.names import LeaderDirectory, check_job
from store.clock import now

KILL_MARGIN_S = 0.2
"""A command that does not end when it is asked to is killed this long before the leadership's deadline."""

LONGEST_PAUSE_S = 0.5
"""The sidecar looks at the clock at least this often."""

WARM_UP_AGAIN = (1.0, 60.0, 1.5, 0.1, 3600.0, INFINITE)
"""Delays after which a warm command that ended before its grant is started again: Flink's exponential defaults."""

CHILD_ENDED = "child ended"
SAVEPOINT_ENDED = "savepoint ended"

WRONG_USAGE = 2
"""The exit code of a sidecar whose name another one has."""

_log = logging.getLogger("ha")


class Sidecar:
    """Runs one command for one job whenever this process leads it; a warm command also before that."""

    def __init__(
        self,
        process: ContendingProcess,
        job: str,
        command: Sequence[str],
        endpoints: Mapping[str, str],
        *,
        again: bool = False,
        spark: bool = False,
        stored: StoredProgram | None = None,
        restore: Restore | None = None,
    ) -> None:
        """Prepare; it does not contend before :meth:`run`.

        Args:
            process: its stores and contender are used; the caller closes it.
            job: the job's name.
            command: program and arguments; ignored if there is a stored program.
            endpoints: published while leading.
            again: run the command even if the job had ended before this process contended.
            spark: use Spark's own configuration to tell the command where its checkpoints are; not if it is warm.
            stored: each start of the command takes its newest version.
            restore: a savepoint that the job starts from.

        Raises:
            InvalidName: the job or an endpoint has a name that is not allowed.
            InvalidSettings: ``spark`` does not work with this command, its driver would run on another host, or the
                liveness probe has another form.
        """
        self._programs = NewestProgram(stored, command, spark=spark, warm=process.settings.standby == WARM)
        program = self._programs.first()
        probe = process.settings.liveness_probe
        asks = probe_of(probe, process.stores) if probe else None
        self._process = process
        self._settings = process.settings
        self._job = check_job(job)
        self._endpoints = check_endpoints(endpoints)
        self._status = JobStatusUpdater(process, job, again=again)
        self._escalation = Escalation(self._status, job, process.settings.failover_max_attempts)
        self._granted_at = now()
        """When the command was last started with a grant, or told of one."""
        self._leads_until = float("-inf")
        self._notices = NoticeQueue(self._believed)
        settings = process.settings
        self._class_data = ClassData(program.command, settings.files) if settings.class_data == CLASS_DATA_ON else None
        ended = lambda: self._notices.put(Wake(CHILD_ENDED))  # noqa: E731
        self._command = Command(process, job, program, ended, stored=stored, spark=spark, class_data=self._class_data)
        process.commands[job] = self._command.status
        logs = QueryReports()
        self._publisher = None
        if spark:
            self._publisher = SidecarPublisher(job, process.stores, process.runtime, self._leads, logs.committed)
        self._phase: Phase = Standby()
        self._warm_up_again = ExponentialDelay(*WARM_UP_AGAIN, random.random)
        self._counters = CommandCounters(process.metrics.registry, job)
        self._failures = CommandFailures(job, self._status, self._escalation, self._counters)
        reports = Reports(self._command.report, lambda: self._command.starts, lambda: self._command.granted, logs.all)
        QueryMetrics(process.metrics.registry, job, reports)
        stands_by = lambda: isinstance(self._phase, Standby)  # noqa: E731
        metrics = VerificationMetrics(process.metrics.registry, job, stands_by)
        self._verification = Verification(settings, job, metrics, stands_by)
        OutputMetrics(process.metrics.registry, job, reports)
        self._hangs = HangWatch(settings, self._command, asks)
        self._exit_code: int | None = None
        self._operators: OperatorRequests | None = None
        self._replaces = False
        """Whether the command that is being ended is started again in another version."""
        saved = lambda: self._notices.put(Wake(SAVEPOINT_ENDED))  # noqa: E731
        self._savepoints = Savepoints(process.stores, job, self._status, self._leads, saved)
        self._restore = restore
        self._terminate_at = NEVER
        """When a command whose queries end in order gets SIGTERM, if it has not ended before."""
        self._recorded: LeaderDirectory | None = None
        """The leadership whose end stands in the history; its first cause is the one that counts."""

    def run(self) -> int:
        """Contend until the job has finished or a signal comes; returns the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)
        if self._class_data is not None:
            self._class_data.begin()
        self._verification.begin()
        self._status.look()
        self._process.join(self._job, self._notices)
        self._process.contend(self._job, self._endpoints)
        _log.info("%s: contending as %s.", self._job, self._settings.contender)
        self._warm_up()
        try:
            while self._exit_code is None or self._command.runs or not isinstance(self._phase, Standby):
                next_at = min(self._command.kill_at, self._start_at)
                self._act(self._notices.get(min(LONGEST_PAUSE_S, max(0.0, next_at - now()))))
            self._process.release_and_wait([self._job])  # a grant may have come since; nothing runs under it
        finally:
            self._verification.close()
            self._command.close()
            if self._class_data is not None:
                self._class_data.close()
        return self._exit_code

    @property
    def _start_at(self) -> float:
        return NEVER if isinstance(self._phase, Ending) else self._phase.start_at

    # --- what happens

    def _act(self, notice: Notice | None) -> None:
        match notice:
            case Granted(_, grant):
                self._granted(grant)
            case Revoked(_, revoke):
                self._revoked(revoke)
            case AskedTo(_, successor):
                self._asked_to_hand_over(successor)
            case Requested():
                self._look_for_requests()
            case Refused():
                self._refused()
            case Wake(what) if what == CHILD_ENDED:
                self._command_ended()
            case Wake(what) if what == SAVEPOINT_ENDED:
                self._savepoints.woken()
            case Wake(what):
                self._told_to_stop(what)
            case _:
                pass
        self._watch_for_hangs()
        self._act_by_the_clock()

    def _act_by_the_clock(self) -> None:
        if now() >= self._terminate_at:
            self._terminate_at = NEVER
            self._stop_command(None)
        self._command.kill_late()
        if now() >= self._start_at:
            self._start_again()

    def _believed(self, _: str, leads_until: float, holds_until: float) -> None:
        self._leads_until = leads_until
        self._command.deadline.write(leads_until, holds_until)

    def _signalled(self, number: int, _: FrameType | None) -> None:
        if self._exit_code is None:
            self._exit_code = 128 + number
        self._notices.put(Wake(signal.Signals(number).name))

    def _granted(self, grant: Grant) -> None:
        leader = LeaderDirectory(grant.epoch, grant.session_id)
        self._phase = Ending(leader)  # until it is clear that the command is to run
        if self._exit_code is not None:
            self._record_end("stopped")
            self._step_down("The sidecar is stopping.")
        elif self._status.begin(leader):
            self._phase = Leading(leader, self._settings.restart_strategy(random.random))
            self._operators = OperatorRequests(self._status.directory(leader))
            self._savepoints.begin(leader, self._operators)
            if self._publisher is not None:
                self._publisher.begin(leader)
            if pause := self._escalation.pause(leader):
                self._status.fail(leader)
                self._wait(self._phase, pause)
            elif self._restore is not None:
                self._savepoints.start_from(self._restore, self._started_from)
            else:
                self._grant_to_command(leader)
            self._look_for_requests()  # those for former epochs are answered, and one may have come just before
        else:
            _log.info("%s: the job has finished; --again runs it once more, and `rerun` each time.", self._job)
            self._exit_code = 0
            self._record_end("has-finished")
            self._step_down("The job has finished.")

    def _revoked(self, revoke: Revoke) -> None:
        if isinstance(self._phase, Standby) or revoke.session_id != self._phase.leader.session_id:
            return
        self._record_end("revoked")
        self._end_phase()
        if self._command.runs:
            self._stop_command(revoke.until)
        else:
            self._give_back()

    def _asked_to_hand_over(self, successor: str) -> None:
        if not isinstance(self._phase, Standby):
            self._record_end("resigned" if successor in ("", ANYBODY) else f"switchover-to-{successor}"[:64])
            self._phase = Ending(self._phase.leader, successor)
            self._step_down("An operator asked to hand over.")

    def _look_for_requests(self) -> None:
        if self._operators is None:
            return
        for request in self._operators.take(leading=isinstance(self._phase, Leading), waiting=self._savepoints.waiting):
            assert isinstance(self._phase, Leading), "only then anything is carried out"
            if request.verb == SAVEPOINT:
                self._savepoints.take(request)
            elif request.verb == RESTART_FROM:
                self._savepoints.restart_from(request, self._restarted_from)
            else:
                self._carry_out(request, self._phase)

    def _carry_out(self, request: Request, phase: Leading) -> None:
        """Do what ends the command."""
        if request.verb == STOP_WITH_SAVEPOINT:
            self._phase = replace(phase, start_at=NEVER)
            if self._command.runs:
                self._terminate_at = now() + self._savepoints.settle(request, self._command)
            else:
                self._savepoints.take_stopped(self._stopped_with)
            return
        if request.verb == RESTART:
            if (unfit := self._take_newest()) is not None:
                assert self._operators is not None, "it has accepted this one"
                self._operators.answer(f"Nothing was restarted: {unfit}", done=False)
                return
            self._status.fail(phase.leader)
            self._escalation.forget(phase.leader)
            if not self._command.runs:
                self._phase = replace(phase, start_at=now())
        else:
            if request.verb == CANCEL:
                self._savepoints.end("The job is cancelled.")
                self._status.cancel(phase.leader)
            self._record_end("cancelled" if request.verb == CANCEL else "stopped-by-operator")
            self._phase = Ending(phase.leader)
        if self._command.runs:
            self._stop_command(None)
        elif isinstance(self._phase, Ending):
            self._ended(self._phase, 0, finished=True, jvm_ended=False)

    @property
    def _ends_as_asked(self) -> bool:
        return self._operators is not None and self._operators.ends_the_job

    def _refused(self) -> None:
        """Another process has this one's name: only a person can mend that."""
        if isinstance(self._phase, Standby) and self._exit_code is None:
            self._exit_code = WRONG_USAGE
            self._stop_command(None)

    def _told_to_stop(self, signal_name: str) -> None:
        self._record_end("stopped")
        self._step_down(f"The sidecar was told to stop ({signal_name}).")
        if isinstance(self._phase, Standby):  # no revocation will come, because nothing is granted
            self._stop_command(None)

    def _command_ended(self) -> None:
        self._terminate_at = NEVER
        jvm_ended, remedy = self._command.jvm_ended, self._command.remedy
        code, finished = self._command.end()
        _log.log(logging.WARNING if code else logging.INFO, "%s: the command has ended with %d.", self._job, code)
        phase = self._phase
        if isinstance(phase, Standby):
            self._ended_before_the_grant()
            return
        replaces, self._replaces = self._replaces, False
        if isinstance(phase, Leading) and self._may_run():
            if self._operators is not None and self._operators.awaits_savepoint:
                self._savepoints.take_stopped(self._stopped_with, drained=self._command.drained)
                return
            if replaces or (self._operators is not None and self._operators.restarts):
                self._savepoints.put_back()
                self._wait(phase, 0.0)
                return
        finished = finished or self._ends_as_asked
        self._ended(phase, code, finished=finished, jvm_ended=jvm_ended, remedy=remedy)

    def _ended(self, phase: Leading | Ending, code: int, *, finished: bool, jvm_ended: bool, remedy: str = "") -> None:
        if finished:
            if self._publisher is not None:
                self._publisher.finish()
            recorded = self._status.finish(phase.leader)
            if recorded:
                self._exit_code = 0
            if self._operators is not None:
                said = "The job has ended." if recorded else "The command has ended, and the job's state is not known."
                self._savepoints.end("The job has ended meanwhile.")
                self._operators.answer(said, done=recorded)
        cause = "jvm-ended" if jvm_ended else end_of_command(code, finished=finished)
        decision = Decision()
        if code and isinstance(phase, Leading):
            self._failures.tell(phase.leader, cause, f"The command has ended with {code}: see its output.")
            if self._may_run():
                decision = self._failures.after(phase, cause, now() - self._granted_at, remedy)
        if decision.delay is not None and isinstance(phase, Leading):
            self._wait(phase, decision.delay)
            return
        if decision.exit_code is not None:
            self._exit_code = decision.exit_code
        self._record_end(cause)
        self._end_of_work(f"The command has ended with {code}.")

    # --- savepoints

    def _stopped_with(self, error: str) -> None:
        """The savepoint of the stopped job is taken, and the job has ended; or it is not, and the job goes on."""
        phase = self._phase
        if not isinstance(phase, Leading) or self._operators is None:
            return
        if error:
            self._operators.answer(f"{error} The job goes on.", done=False)
            self._wait(phase, 0.0)
        else:
            self._record_end("stopped-by-operator")
            self._phase = Ending(phase.leader)
            self._ended(self._phase, 0, finished=True, jvm_ended=False)

    def _started_from(self, error: str) -> None:
        """The job's checkpoints are those of the savepoint that it starts from; or it cannot start."""
        if not isinstance(self._phase, Leading):
            return
        if not error:
            self._grant_to_command(self._phase.leader)
            return
        _log.error("%s: it cannot start from the savepoint: %s", self._job, error)
        self._exit_code = 1
        self._record_end("not-started")
        self._end_of_work("The job could not be started from the savepoint.")

    def _restarted_from(self, _: str) -> None:
        """The savepoint is copied into the job: the command ends, and starts again from there."""
        phase = self._phase
        if not isinstance(phase, Leading):
            return
        self._status.fail(phase.leader)
        self._escalation.forget(phase.leader)
        if self._command.runs:
            self._stop_command(None)
        else:
            self._savepoints.put_back()
            self._wait(phase, 0.0)

    # --- the command

    def _warm_up(self) -> None:
        if self._settings.standby == WARM and self._exit_code is None:
            try:
                self._start(None)
            except LeaderError as error:
                _log.warning("%s: the command does not warm up: %s", self._job, error)
                self._phase = Standby(now() + self._settings.long_ttl)

    def _start(self, leader: LeaderDirectory | None) -> None:
        """Start the newest version of the command.

        Raises:
            LeaderError: it is damaged, or this host cannot run it.
            OSError: it cannot be started.
        """
        self._command.program = self._programs.newest(self._command.program)
        self._command.start(leader)

    def _take_newest(self) -> LeaderError | None:
        """Fetch the newest version while the present one runs; returns why it cannot be run."""
        try:
            self._programs.newest(self._command.program)
        except LeaderError as error:
            return error
        return None

    def _wait(self, phase: Leading, seconds: float) -> None:
        """Have the command started in so many seconds; the leadership stays."""
        self._phase = replace(phase, start_at=now() + seconds)
        self._command.restarting(self._phase.start_at)

    def _grant_to_command(self, leader: LeaderDirectory) -> None:
        self._granted_at = now()
        try:
            if not self._command.runs:
                self._start(leader)
            elif self._programs.newest(self._command.program) == self._command.program:
                self._command.grant(leader)
            else:
                _log.info("%s: a newer program was stored: the warm command is replaced.", self._job)
                self._replaces = True
                self._stop_command(now())
                return
            self._hangs.begin(self._status.directory(leader))
        except LeaderError as error:
            _log.error("%s: the command is not started: %s", self._job, error)
            self._failures.tell(leader, "not-started", f"{error}").join(NOTE_S)
            counted = self._failures.counted(leader, "not-started", 0.0, "store the program again, or mend this host")
            self._exit_code = counted.exit_code
            self._record_end("not-started")
            self._step_down("The command could not be started.")
        except OSError as error:  # on a host where no file can be written a driver cannot work either
            self._record_end("not-started")
            self._step_down(f"The command could not be told that it leads: {error.strerror}.")

    def _start_again(self) -> None:
        phase = self._phase
        if isinstance(phase, Standby):
            self._phase = Standby()
            self._warm_up()
        elif isinstance(phase, Leading) and self._may_run():
            self._phase = replace(phase, start_at=NEVER)
            self._counters.restarted()
            self._status.restart(phase.leader)
            self._grant_to_command(phase.leader)
            self._escalation.tries(phase.leader)
            if self._operators is not None and self._operators.restarts:
                self._operators.answer("The command has been started again.")
        else:  # this process was paused meanwhile; the notice of the end is on its way
            self._end_of_work("The leadership was over before the command could be started again.")

    def _may_run(self) -> bool:
        """Whether the command may run as far as this process knows; the guard enforces the deadline anyway."""
        return self._exit_code is None and self._leads()

    def _leads(self) -> bool:
        return now() < self._leads_until

    def _stop_command(self, until: float | None) -> None:
        """Ask the command to end: before ``until``, or within the grace period if there is no such time."""
        self._command.terminate(now() + self._settings.stop_grace if until is None else until - KILL_MARGIN_S)

    def _ended_before_the_grant(self) -> None:
        if self._exit_code is None:
            delay = self._warm_up_again.failed(now()) or self._settings.long_ttl
            _log.warning("%s: the command ended before its grant; it is started again in %.1f s.", self._job, delay)
            self._phase = Standby(now() + delay)

    def _watch_for_hangs(self) -> None:
        """Kill a command that hangs, and give the leadership back: another host may do better."""
        phase = self._phase
        if not isinstance(phase, Leading):
            self._hangs.end()
        elif (hang := self._hangs.look()) is not None:
            _log.error("%s: %s The command is killed, and the leadership given back.", self._job, hang.said)
            dump = self._command.thread_dumps(hang.beat)
            self._failures.tell(phase.leader, hang.cause, hang.said, dump).join(NOTE_S)
            if self._may_run():
                counted = self._failures.counted(phase.leader, hang.cause, now() - self._granted_at)
                self._exit_code = counted.exit_code
            self._record_end(hang.cause)
            self._end_phase()
            self._command.terminate(now())

    # --- the end of a leadership

    def _record_end(self, cause: str) -> None:
        """Write down why the present leadership ends, if nothing else has ended it before."""
        if not isinstance(self._phase, Standby) and self._phase.leader != self._recorded:
            self._recorded = self._phase.leader
            self._process.record_end(self._job, self._recorded, cause)

    def _end_of_work(self, reason: str) -> None:
        self._step_down(reason)
        self._give_back()

    def _step_down(self, reason: str) -> None:
        """Tell the contender that the leadership, if there is one, is to end; the revocation follows."""
        self._end_phase()
        self._process.step_down(self._job, reason)

    def _end_phase(self) -> None:
        """From now on the command is not started again."""
        self._savepoints.end()
        if isinstance(self._phase, Leading):
            self._phase = Ending(self._phase.leader)
        elif isinstance(self._phase, Standby):
            self._phase = Standby()

    def _give_back(self) -> None:
        successor = self._phase.successor if isinstance(self._phase, Ending) else ""
        self._phase = Standby()
        self._savepoints.end()
        self._operators = None  # what is not answered is unknown, as the next leader says
        if self._publisher is not None:
            self._publisher.end()
        self._command.given_up()
        self._process.release(self._job, successor)
        if self._exit_code is None:
            self._process.contend(self._job, self._endpoints)
            self._warm_up()
