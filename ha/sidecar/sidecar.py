"""The sidecar: contends for a job, runs a command while it leads, and stops the command when the leadership ends.

One thread takes what happens from a queue, has the machine decide (ha/sidecar/machine), and the executor act.
"""

import logging
import random
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FrameType

from ha.config.command_settings import WARM
from ha.daemon.process import ContendingProcess
from ha.hosts.crew import Crew
from ha.leadership.notices import (
    AskedTo,
    GrantNotice,
    Notice,
    NoticeQueue,
    RefusalNotice,
    Requested,
    RevocationNotice,
    Wake,
)
from ha.leadership.signals import end_in_order
from ha.metrics.reports import OutputMetrics, QueryMetrics, ReportFiles
from ha.sidecar.command.class_data import ClassData
from ha.sidecar.command.command import Command
from ha.sidecar.command.newest_program import NewestProgram, StoredProgram
from ha.sidecar.command.run_environment import RunEnvironment
from ha.sidecar.command.succession import Succession
from ha.sidecar.executor import Executor, InOrder
from ha.sidecar.executor_hosts import ExecutorHosts
from ha.sidecar.failure_count import FailureCount
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.ends import BY_SIGNAL, HAD_FAILED, JOB_FAILED, WAS_CANCELED
from ha.sidecar.machine.machine import Machine
from ha.sidecar.machine.rules import rules_of
from ha.sidecar.probes import probe_of
from ha.sidecar.running_note import RunningNote
from ha.sidecar.savepoint_work import Restore, SavepointWork
from ha.sidecar.standby import Replication, Verification
from ha.sidecar.store_work import StoreWork
from ha.spark.queries.checkpoint_publisher import SidecarPublisher
from ha.spark.queries.query_reports import QueryReports
from leader.job.status import Status
from leader.layout.information import check_endpoints
from leader.layout.names import LeaderDirectory, check_job
from leader.timing import NEVER
from store.clock import now

LONGEST_PAUSE_S = 0.5  # the sidecar looks at the clock at least this often
RESTING_PAUSE_S = 5.0  # the same of a standby without a command: a notice wakes it, and nothing else is due
STAYING_PAUSE_S = 5.0  # a sidecar whose job has ended looks so often whether it runs again

CREW = 6  # threads: for the end of a run, a savepoint, a probe, a command that hangs, and failures that are kept

OVER = frozenset({0, JOB_FAILED, HAD_FAILED, WAS_CANCELED})  # exit codes of a sidecar whose job is over

_log = logging.getLogger("ha")


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run of the command has ended."""

    run: int


class Sidecar:
    """Runs one command for one job whenever this process leads it; a warm command also before that."""

    def __init__(
        self,
        process: ContendingProcess,  # its stores and contender are used; the caller closes it
        job: str,
        command: Sequence[str],  # program and arguments; ignored if there is a stored program
        endpoints: Mapping[str, str],  # published while leading
        *,
        again: bool = False,  # run the command even if the job had ended before this process contended
        stay: bool = False,  # once the job is over, wait until it runs again
        # Use Spark's own configuration to tell the command where its checkpoints are; not if it is warm.
        spark: bool = False,
        engine: bool = False,  # start the program under an engine, so that its queries outlive it
        stored: StoredProgram | None = None,  # each start of the command takes its newest version
        restore: Restore | None = None,  # a savepoint that the job starts from
        # What is taken over from a sidecar that was killed, and left to the next one; None for nothing.
        succession: Succession | None = None,
    ) -> None:
        """Prepare; it does not contend before :meth:`run`."""
        # InvalidName: of the job or an endpoint. InvalidSettings: `spark` does not work with this command, its driver
        # would run on another host, or the liveness probe has another form.
        self._process, self._settings = process, process.settings
        settings, stores = process.settings, process.stores
        programs = NewestProgram(stored, command, spark=spark, engine=engine, warm=settings.command.standby == WARM)
        program = programs.first()
        probe = probe_of(settings.probe.liveness_probe, stores) if settings.probe.liveness_probe else None
        self._job = check_job(job)
        self._endpoints = check_endpoints(endpoints)
        self._stays, self._leads_until = stay, float("-inf")
        self._notices = NoticeQueue(self._believed)
        post, in_order = self._post, InOrder(lambda error: self._notices.put(Wake(error)))
        self._class_data = ClassData(program.command, settings.stores.files) if settings.command.class_data else None
        self._orphan = succession.orphan if succession is not None else None
        environment = RunEnvironment(
            process, job, stored=stored, spark=spark, engine=engine, class_data=self._class_data
        )
        ended = lambda run: post(RunEnded(run))  # noqa: E731
        crew = Crew("ha-crew", CREW)
        self._threads = [crew.close, in_order.close]
        self._command = Command(process, job, program, environment, ended, crew, engine=engine, succession=succession)
        process.commands[job] = self._command.status
        self._status = JobStatusUpdater(process, job, crew, again=again)
        self._status.notes = lambda: self._command.files.report.parent
        self._machine = Machine(rules_of(settings, random.random, restores=restore is not None))
        logs = QueryReports()
        file = lambda: self._command.files.unguarded  # noqa: E731
        publisher = SidecarPublisher(job, stores, process.runtime, self._leads, logs.committed, file) if spark else None
        hosts = ExecutorHosts(stores, job, self._status)
        contender = settings.leadership.contender
        self._note = RunningNote(job, contender, programs.running(contender))
        store = StoreWork(
            job, self._status, FailureCount(self._status, job, settings.command.failover_max_attempts),
            SavepointWork(stores, job, self._leads, post, crew), programs, lambda: self._command.program, hosts,
            publisher, restore, in_order.later, lambda: self._command.files.unguarded, self._command.last_words,
            self._note,
        )  # fmt: skip
        self._executor = Executor(
            process, job, self._endpoints, self._command, programs, hosts, store, probe, post, in_order, crew
        )
        stands_by = lambda: self._machine.state.stands_by  # noqa: E731
        self._verification = Verification(settings, job, process.metrics.registry, stands_by)
        self._replication = Replication(settings, job, process.metrics.registry, stands_by)
        self._measure(logs, spark=spark)

    def _measure(self, logs: QueryReports, *, spark: bool) -> None:
        registry, command = self._process.metrics.registry, self._command
        reports = ReportFiles(
            lambda run: command.files_of(run).report,
            lambda: command.starts,
            lambda: self._machine.state.runs_granted,
            logs.all,
            lambda: command.since if spark else None,
        )
        QueryMetrics(registry, self._job, reports)
        OutputMetrics(registry, self._job, reports)

    def run(self) -> int | None:
        """Contend until the job is over or a signal comes; returns the exit code."""
        # With ``stay`` it returns None when the job runs again, or the code of a signal that came before.
        end_in_order(self._signalled)
        if self._class_data is not None:
            self._class_data.begin()
        self._verification.begin()
        self._replication.begin()
        self._process.join(self._job, self._notices, self._note.stand_by)
        state = self._machine.state
        self._begin()
        try:
            while not state.over:
                self._take(self._notices.get(self._pause))
            self._process.release_and_wait([self._job])  # a grant may have come since; nothing runs under it
            self._status.settle()
        finally:
            self._verification.close()
            self._replication.close()
            self._command.close()
            for close in self._threads:
                close()
            if self._class_data is not None:
                self._class_data.close()
        # A job that its program, or an operator, has ended otherwise is no success of this run.
        code = state.exit_code or {Status.FAILED: JOB_FAILED, Status.CANCELED: WAS_CANCELED}.get(self._status.ended, 0)
        return self._await_next_run() if self._stays and code in OVER else code

    def _await_next_run(self) -> int | None:
        _log.info("%s: this sidecar stays until the job runs again.", self._job)
        while not self._status.runs_again():
            match self._notices.get(STAYING_PAUSE_S):
                case Wake(events.Signalled(number)):
                    return BY_SIGNAL + number
        _log.info("%s: the job runs again.", self._job)
        return None

    def _begin(self) -> None:
        """Contend; or take up the leadership of a sidecar that has died on this host."""
        if self._orphan is None:
            self._status.look()
            for command in self._machine.begin(now()):
                self._executor.carry_out(command)
            _log.info("%s: contending as %s.", self._job, self._settings.leadership.contender)
            return
        self._command.take_up(self._orphan)
        left = self._orphan.left
        self._machine.take_up(now(), left.leader, left.starts)
        self._process.adopt(self._job, left.leader, self._endpoints)
        _log.info("%s: taking up epoch %d as %s.", self._job, left.leader.epoch, self._settings.leadership.contender)

    @property
    def _pause(self) -> float:
        """Seconds for which only a notice is waited for."""
        state = self._machine.state
        rests = state.stands_by and state.run is None
        return min(RESTING_PAUSE_S if rests else LONGEST_PAUSE_S, max(0.0, state.due - now()))

    # --- what happens

    def _take(self, notice: Notice | None) -> None:
        match notice:
            case Wake(RunEnded(run)):
                self._look()
                self._handle(self._executor.ended(run))
            case Wake(Exception() as error):
                raise error
            case Wake(event):
                self._handle(event)
            case GrantNotice(_, grant):
                self._handle(events.LeadershipGranted(LeaderDirectory(grant.epoch, grant.session_id)))
            case RevocationNotice(_, revoke):
                self._handle(events.LeadershipRevoked(revoke.session_id, revoke.until))
            case AskedTo(_, successor):
                self._handle(events.AskedToHandOver(successor))
            case Requested():
                self._handle(events.Marked())
            case RefusalNotice():
                self._handle(events.NameRefused())
            case _:
                pass
        self._look()

    def _look(self) -> None:
        for event in self._executor.look(self._machine.state):
            self._handle(event)

    def _post(self, event: events.SidecarEvent | RunEnded) -> None:
        self._notices.put(Wake(event))

    def _handle(self, event: events.SidecarEvent) -> None:
        machine = self._machine
        for command in machine.handle(event, now(), leads=self._leads()):
            self._executor.carry_out(command)
        self._command.start_at = NEVER if machine.state.stands_by else machine.state.start_at

    def _believed(self, _: str, leads_until: float, holds_until: float) -> None:
        self._leads_until = leads_until
        self._command.deadline.write(leads_until, holds_until)

    def _leads(self) -> bool:
        return now() < self._leads_until

    def _signalled(self, number: int, _: FrameType | None) -> None:
        self._machine.stop(number)
        self._notices.put(Wake(events.Signalled(number, signal.Signals(number).name)))
