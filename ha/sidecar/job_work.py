"""JobWork: what a sidecar does while it leads: its command is started and watched, and what follows when it ends."""

import logging
import random
from dataclasses import replace

from ha.daemon.process import ContendingProcess
from ha.metrics.contending import CommandCounters
from ha.sidecar.command import Command
from ha.sidecar.command_starts import CommandStarts
from ha.sidecar.engine_watch import EngineWatch
from ha.sidecar.escalation import Escalation
from ha.sidecar.executor_hosts import ExecutorHosts
from ha.sidecar.failures import JOB_FAILED, CommandFailures, Decision, end_of_command
from ha.sidecar.hangs import HangWatch
from ha.sidecar.job_leadership import JobLeadership
from ha.sidecar.job_status import NOTE_S, SHORT_NOTE_S, JobStatusUpdater
from ha.sidecar.newest_program import NewestProgram
from ha.sidecar.operator_work import OperatorWork
from ha.sidecar.phase import Ending, Leading, Reconciling, Standby
from ha.sidecar.probes import ProbeOf
from ha.sidecar.savepoint_work import Restore
from ha.sidecar.savepoints import Savepoints
from ha.spark.checkpoint_publisher import SidecarPublisher
from leader.layout.names import LeaderDirectory
from leader.timing import NEVER
from store.clock import now

_log = logging.getLogger("ha")


class JobWork:
    """The work of one job, for its sidecar, on whose thread its methods are called.

    Attributes:
        starts: of the command.
        operators: what they ask for.
    """

    def __init__(
        self,
        process: ContendingProcess,
        job: str,
        programs: NewestProgram,
        command: Command,
        status: JobStatusUpdater,
        leadership: JobLeadership,
        savepoints: Savepoints,
        probe: ProbeOf | None,
        publisher: SidecarPublisher | None,
        restore: Restore | None,
    ) -> None:
        """Do nothing yet.

        Args:
            process: its settings, stores and metrics are used.
            job: the job's name.
            programs: which program each start takes.
            command: is started and ended.
            status: the job's, in the store.
            leadership: the sidecar's.
            savepoints: the job's.
            probe: asks whether the command does its work; None for no liveness probe.
            publisher: publishes the checkpoints of a program that does not do so itself; None if it does.
            restore: a savepoint that the job starts from; None for none.
        """
        settings, stores = process.settings, process.stores
        self._settings, self._job = settings, job
        self._command, self._status, self._leadership, self._savepoints = command, status, leadership, savepoints
        self._publisher, self._restore = publisher, restore
        self._escalation = Escalation(status, job, settings.failover_max_attempts)
        self._counters = CommandCounters(process.metrics.registry, job)
        self._failures = CommandFailures(job, status, self._escalation, self._counters)
        self._engine = EngineWatch(job, command, self._failures, self._counters)
        self._hangs = HangWatch(settings, command, probe)
        hosts = ExecutorHosts(stores, job, status)
        self.starts = CommandStarts(
            settings, job, programs, leadership, status, command, self._hangs, self._failures, hosts
        )
        self.operators = OperatorWork(
            leadership, status, self._escalation, command, self.starts, savepoints, hosts, self._ended
        )

    def begin(self, leader: LeaderDirectory) -> None:
        """Begin a leadership, if the job's failures allow that: its command is started, or will be."""
        phase = self._leading(leader)
        self._begin(leader)
        pause = self._escalation.pause(leader)
        if pause is None:
            self._leadership.exit_code = JOB_FAILED
            self._leadership.step_down("gave-up", "The job has FAILED.")
        elif pause:
            self._status.fail(leader)
            self._leadership.start_in(phase, pause)
        elif self._restore is not None:
            self._savepoints.start_from(self._restore, self._started_from)
        else:
            self.starts.grant(leader)
        self.operators.look()  # those for former epochs are answered, and one may have come just before

    def take_up(self, leader: LeaderDirectory) -> None:
        """Go on with the leadership of a dead sidecar, and with its command."""
        self._leading(leader)

        def take_up() -> None:
            self._begin(leader)
            self.starts.taken_up(leader)
            self._engine.begin()

        self._status.reconcile(leader, take_up)
        self.operators.look()  # the dead one may have accepted some that it has not answered

    def _leading(self, leader: LeaderDirectory) -> Leading:
        self._leadership.phase = phase = Leading(leader, self._settings.restart_strategy(random.random))
        return phase

    def _begin(self, leader: LeaderDirectory) -> None:
        self.operators.begin(leader)
        if self._publisher is not None:
            self._publisher.begin(leader)

    def _started_from(self, error: str) -> None:
        """The job's checkpoints are those of the savepoint that it starts from; or it cannot start."""
        phase = self._leadership.phase
        if not isinstance(phase, Leading):
            return
        if not error:
            self.starts.grant(phase.leader)
            return
        _log.error("%s: it cannot start from the savepoint: %s", self._job, error)
        self._leadership.exit_code = 1
        self._end_of_work("not-started", "The job could not be started from the savepoint.")

    # --- by the clock

    @property
    def due(self) -> float:
        """When :meth:`act_by_the_clock` has something to do, in seconds of the clock."""
        return min(self._command.kill_at, self._start_at)

    @property
    def _start_at(self) -> float:
        phase = self._leadership.phase
        return NEVER if isinstance(phase, Ending | Reconciling) else phase.start_at

    def act_by_the_clock(self) -> None:
        """Do what is due: look for hangs and for requests, kill a command that is late, start it again."""
        self._watch_for_hangs()
        self.operators.act_by_the_clock()
        self._command.kill_late()
        if now() >= self._start_at:
            self._start_again()

    def _start_again(self) -> None:
        phase = self._leadership.phase
        if isinstance(phase, Standby):
            self._leadership.phase = Standby()
            self.starts.warm_up()
        elif isinstance(phase, Leading) and self._leadership.may_run:
            self._leadership.phase = replace(phase, start_at=NEVER)
            self._counters.restarted()
            self._status.restart(phase.leader)
            self.starts.grant(phase.leader)
            self._escalation.tries(phase.leader)
            self.operators.started_again()
        else:  # this process was paused meanwhile; the notice of the end is on its way
            cause = "revoked" if self._leadership.exit_code is None else "stopped"
            self._end_of_work(cause, "The leadership was over before the command could be started again.")

    def _watch_for_hangs(self) -> None:
        """Kill a command that hangs, and give the leadership back: another host may do better."""
        phase = self._leadership.phase
        if not isinstance(phase, Leading):
            self._hangs.end()
            return
        self._engine.look(phase.leader)
        if self._command.runs:
            self._escalation.lasts(phase.leader, self.starts.seconds)
        if (hang := self._hangs.look()) is not None:
            _log.error("%s: %s The command is killed, and the leadership given back.", self._job, hang.said)
            dump = self._command.thread_dumps(hang.beat)  # within seconds; the dead have no stacks
            self._command.terminate(now())
            self._command.kill_late()  # at once: the store may be slow, and what hangs may write when it wakes up
            told = self._failures.tell(phase.leader, hang.cause, hang.said, dump)
            if self._leadership.may_run:
                counted = self._failures.counted(phase.leader, hang.cause, self.starts.seconds)
                self._leadership.exit_code = counted.exit_code
            self._leadership.record_end(hang.cause)
            self._leadership.end_phase()
            told.join(NOTE_S)  # the lease is given back after this, and then nothing can be kept any more

    # --- the end of the command, and of the leadership

    def command_ended(self) -> None:
        """The command has ended, for whatever reason."""
        self.operators.command_ended()
        jvm_ended, remedy, gave_up = self._command.jvm_ended, self._command.remedy, self._command.engine.gave_up
        code, finished = self._command.end()
        _log.log(logging.WARNING if code else logging.INFO, "%s: the command has ended with %d.", self._job, code)
        phase = self._leadership.phase
        if isinstance(phase, Standby):
            self.starts.warm_up_later()
            return
        replaces = self.starts.take_replaces()
        if isinstance(phase, Leading) and self._leadership.may_run and self.operators.goes_on(phase, replaces=replaces):
            return
        assert not isinstance(phase, Reconciling), "the sidecar tells of its end later"
        finished = finished or self.operators.ends_the_job
        self._ended(phase, code, finished=finished, jvm_ended=jvm_ended, remedy=remedy, gave_up=gave_up)

    def _ended(
        self,
        phase: Leading | Ending,
        code: int = 0,
        *,
        finished: bool = True,
        jvm_ended: bool = False,
        remedy: str = "",
        gave_up: bool = False,
    ) -> None:
        if finished:
            if self._publisher is not None:
                self._publisher.finish()
            recorded = self._status.finish(phase.leader)
            if recorded:
                self._leadership.exit_code = 0
            self.operators.job_ended(recorded=recorded)
        cause = "jvm-ended" if jvm_ended else end_of_command(code, finished=finished)
        decision = Decision()
        if code and isinstance(phase, Leading):
            told = self._failures.tell(phase.leader, cause, f"The command has ended with {code}: see its output.")
            if self._leadership.may_run:
                decision = self._failures.after(phase, cause, self.starts.seconds, remedy, gave_up=gave_up)
            if decision.delay is None:
                told.join(SHORT_NOTE_S)
        if decision.delay is not None and isinstance(phase, Leading):
            self._leadership.start_in(phase, decision.delay)
            return
        if decision.exit_code is not None:
            self._leadership.exit_code = decision.exit_code
        self._end_of_work(cause, f"The command has ended with {code}.")

    def _end_of_work(self, cause: str, reason: str) -> None:
        self._leadership.step_down(cause, reason)
        self.give_back()

    def give_back(self) -> None:
        """Give the lease back: the leadership is over, and no command runs."""
        self.operators.end()
        if self._publisher is not None:
            self._publisher.end()
        self._leadership.give_back()
        self.starts.warm_up()
