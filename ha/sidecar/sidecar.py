"""The sidecar: contends for a job, runs a command while it leads, and stops the command when the leadership ends.

It hears what happens. Its phases are in ha/sidecar/phase.py, and what it does while it leads in ha/sidecar/job_work.py.
"""

import logging
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from types import FrameType

from ha.config.command_settings import CLASS_DATA_ON, WARM
from ha.daemon.process import ContendingProcess
from ha.leadership.notices import AskedTo, Granted, Notice, NoticeQueue, Refused, Requested, Revoked, Wake
from ha.metrics.outputs import OutputMetrics
from ha.metrics.queries import QueryMetrics, Reports
from ha.sidecar.class_data import ClassData
from ha.sidecar.command import Command
from ha.sidecar.job_leadership import JobLeadership
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.job_work import JobWork
from ha.sidecar.newest_program import NewestProgram
from ha.sidecar.phase import Ending, Reconciling, Standby
from ha.sidecar.probes import probe_of
from ha.sidecar.replication import Replication
from ha.sidecar.run_environment import RunEnvironment
from ha.sidecar.savepoint_work import Restore
from ha.sidecar.savepoints import Savepoints
from ha.sidecar.stored_program import StoredProgram
from ha.sidecar.succession import Succession
from ha.sidecar.verification import Verification
from ha.spark.checkpoint_publisher import SidecarPublisher
from ha.spark.query_reports import QueryReports
from leader.election.events import Grant, Revoke
from leader.layout.information import check_endpoints
from leader.layout.lease import ANYBODY
from leader.layout.names import LeaderDirectory, check_job
from store.clock import now

LONGEST_PAUSE_S = 0.5
"""The sidecar looks at the clock at least this often."""

RESTING_PAUSE_S = 5.0
"""The same of a standby without a command: a notice wakes it, and nothing that it has is due before a known time."""

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
        engine: bool = False,
        stored: StoredProgram | None = None,
        restore: Restore | None = None,
        succession: Succession | None = None,
    ) -> None:
        """Prepare; it does not contend before :meth:`run`.

        Args:
            process: its stores and contender are used; the caller closes it.
            job: the job's name.
            command: program and arguments; ignored if there is a stored program.
            endpoints: published while leading.
            again: run the command even if the job had ended before this process contended.
            spark: use Spark's own configuration to tell the command where its checkpoints are; not if it is warm.
            engine: start the program under an engine, so that its queries go on without it.
            stored: each start of the command takes its newest version.
            restore: a savepoint that the job starts from.
            succession: what is taken over from a sidecar that was killed, and left to the next one; None for nothing.

        Raises:
            InvalidName: the job or an endpoint has a name that is not allowed.
            InvalidSettings: ``spark`` does not work with this command, its driver would run on another host, or the
                liveness probe has another form.
        """
        self._process, self._settings = process, process.settings
        settings, stores = process.settings, process.stores
        programs = NewestProgram(stored, command, spark=spark, engine=engine, warm=settings.standby == WARM)
        program = programs.first()
        probe = probe_of(settings.liveness_probe, stores) if settings.liveness_probe else None
        self._job = check_job(job)
        self._endpoints = check_endpoints(endpoints)
        self._leads_until = float("-inf")
        self._ended_early = False
        self._notices = NoticeQueue(self._believed)
        ended, saved = (partial(self._notices.put, Wake(what)) for what in (CHILD_ENDED, SAVEPOINT_ENDED))
        self._class_data = ClassData(program.command, settings.files) if settings.class_data == CLASS_DATA_ON else None
        self._orphan = succession.orphan if succession is not None else None
        environment = RunEnvironment(process, job, stored=stored, spark=spark, class_data=self._class_data)
        self._command = Command(process, job, program, environment, ended, engine=engine, succession=succession)
        process.commands[job] = self._command.status
        self._status = JobStatusUpdater(process, job, again=again)
        self._savepoints = Savepoints(stores, job, self._status, self._leads, saved)
        self._leadership = JobLeadership(process, job, self._endpoints, self._leads, self._command, self._savepoints)
        logs = QueryReports()
        publisher = SidecarPublisher(job, stores, process.runtime, self._leads, logs.committed) if spark else None
        self._work = JobWork(
            process, job, programs, self._command, self._status, self._leadership, self._savepoints, probe, publisher,
            restore,
        )  # fmt: skip
        stands_by = lambda: self._leadership.stands_by  # noqa: E731
        self._verification = Verification(settings, job, process.metrics.registry, stands_by)
        self._replication = Replication(settings, job, process.metrics.registry, stands_by)
        self._measure(logs)

    def _measure(self, logs: QueryReports) -> None:
        """Register the metrics of the job's queries and outputs."""
        registry, command = self._process.metrics.registry, self._command
        reports = Reports(
            lambda run: command.files_of(run).report, lambda: command.starts, lambda: command.granted, logs.all
        )
        QueryMetrics(registry, self._job, reports)
        OutputMetrics(registry, self._job, reports)

    def run(self) -> int:
        """Contend until the job has finished or a signal comes; returns the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)
        if self._class_data is not None:
            self._class_data.begin()
        self._verification.begin()
        self._replication.begin()
        self._process.join(self._job, self._notices)
        leadership = self._leadership
        if self._orphan is not None:
            self._command.take_up(self._orphan)
            leader = self._orphan.left.leader
            leadership.take_up(leader)
            _log.info("%s: taking up epoch %d as %s.", self._job, leader.epoch, self._settings.contender)
        else:
            self._status.look()
            self._process.contend(self._job, self._endpoints)
            _log.info("%s: contending as %s.", self._job, self._settings.contender)
            self._work.starts.warm_up()
        try:
            while leadership.exit_code is None or self._command.runs or not leadership.stands_by:
                self._act(self._notices.get(self._pause))
            self._process.release_and_wait([self._job])  # a grant may have come since; nothing runs under it
        finally:
            self._verification.close()
            self._replication.close()
            self._command.close()
            if self._class_data is not None:
                self._class_data.close()
        return leadership.exit_code

    @property
    def _pause(self) -> float:
        """Seconds for which only a notice is waited for."""
        rests = self._leadership.stands_by and not self._command.runs
        return min(RESTING_PAUSE_S if rests else LONGEST_PAUSE_S, max(0.0, self._work.due - now()))

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
                self._work.operators.look()
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
        self._work.act_by_the_clock()

    def _believed(self, _: str, leads_until: float, holds_until: float) -> None:
        self._leads_until = leads_until
        self._command.deadline.write(leads_until, holds_until)

    def _leads(self) -> bool:
        return now() < self._leads_until

    def _signalled(self, number: int, _: FrameType | None) -> None:
        if self._leadership.exit_code is None:
            self._leadership.exit_code = 128 + number
        self._notices.put(Wake(signal.Signals(number).name))

    def _granted(self, grant: Grant) -> None:
        leader = LeaderDirectory(grant.epoch, grant.session_id)
        taken_up = isinstance(self._leadership.phase, Reconciling)
        self._leadership.phase = Ending(leader)  # until it is clear that the command is to run
        if self._leadership.exit_code is not None:
            self._leadership.step_down("stopped", "The sidecar is stopping.")
        elif taken_up:
            self._work.take_up(leader)
            self._tell_of_the_end()
        elif self._status.begin(leader):
            self._work.begin(leader)
        else:
            _log.info("%s: the job has finished; --again runs it once more, and `rerun` each time.", self._job)
            self._leadership.exit_code = 0
            self._leadership.step_down("has-finished", "The job has finished.")

    def _command_ended(self) -> None:
        if isinstance(self._leadership.phase, Reconciling):
            self._ended_early = True
        else:
            self._work.command_ended()

    def _tell_of_the_end(self) -> None:
        """The command had ended before it was known whether it is taken up: now its end can be handled."""
        if self._ended_early:
            self._ended_early = False
            self._notices.put(Wake(CHILD_ENDED))

    def _revoked(self, revoke: Revoke) -> None:
        phase = self._leadership.phase
        if isinstance(phase, Standby) or revoke.session_id != phase.leader.session_id:
            return
        self._leadership.record_end("not-taken-up" if isinstance(phase, Reconciling) else "revoked")
        self._leadership.end_phase()
        if self._command.runs:
            self._leadership.stop_command(revoke.until)
            self._tell_of_the_end()
        else:
            self._work.give_back()

    def _asked_to_hand_over(self, successor: str) -> None:
        phase = self._leadership.phase
        if not isinstance(phase, Standby):
            cause = "resigned" if successor in ("", ANYBODY) else f"switchover-to-{successor}"[:64]
            self._leadership.phase = Ending(phase.leader, successor)
            self._leadership.step_down(cause, "An operator asked to hand over.")

    def _refused(self) -> None:
        """Another process has this one's name: only a person can mend that."""
        if self._leadership.stands_by and self._leadership.exit_code is None:
            self._leadership.exit_code = WRONG_USAGE
            self._leadership.stop_command()

    def _told_to_stop(self, signal_name: str) -> None:
        self._leadership.step_down("stopped", f"The sidecar was told to stop ({signal_name}).")
        if self._leadership.stands_by:  # no revocation will come, because nothing is granted
            self._leadership.stop_command()
