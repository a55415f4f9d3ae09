"""CommandStarts: when and how a sidecar's command is started: to warm up, with a grant, in its newest version."""

import logging
import random

from ha.config.command_settings import WARM
from ha.config.restart_strategy import INFINITE, ExponentialDelay
from ha.config.settings import Settings
from ha.sidecar.command import Command
from ha.sidecar.executor_hosts import ExecutorHosts
from ha.sidecar.failures import CommandFailures
from ha.sidecar.hangs import HangWatch
from ha.sidecar.job_leadership import JobLeadership
from ha.sidecar.job_status import NOTE_S, JobStatusUpdater
from ha.sidecar.newest_program import NewestProgram
from ha.sidecar.phase import Standby
from leader.errors import LeaderError
from leader.layout.names import LeaderDirectory
from store.clock import now

WARM_UP_AGAIN = (1.0, 60.0, 1.5, 0.1, 3600.0, INFINITE)
"""Delays after which a warm command that ended before its grant is started again: Flink's exponential defaults."""

_log = logging.getLogger("ha")


class CommandStarts:
    """The starts of one job's command."""

    def __init__(
        self,
        settings: Settings,
        job: str,
        programs: NewestProgram,
        leadership: JobLeadership,
        status: JobStatusUpdater,
        command: Command,
        hangs: HangWatch,
        failures: CommandFailures,
        hosts: ExecutorHosts,
    ) -> None:
        """Start nothing yet."""
        self._settings, self._job, self._programs = settings, job, programs
        self._leadership, self._status = leadership, status
        self._command, self._hangs, self._failures, self._hosts = command, hangs, failures, hosts
        self._warm_up_again = ExponentialDelay(*WARM_UP_AGAIN, random.random)
        self._granted_at = now()
        self._replaces = False

    @property
    def seconds(self) -> float:
        """The time since the command was last started with a grant, or told of one."""
        return now() - self._granted_at

    def warm_up(self) -> None:
        """Start a warm standby's command."""
        if self._settings.standby == WARM and self._leadership.exit_code is None:
            try:
                self._start(None)
            except LeaderError as error:
                _log.warning("%s: the command does not warm up: %s", self._job, error)
                self._leadership.phase = Standby(now() + self._settings.long_ttl)

    def warm_up_later(self) -> None:
        """Have a command that has ended before its grant started again."""
        if self._leadership.exit_code is None:
            delay = self._warm_up_again.failed(now()) or self._settings.long_ttl
            _log.warning("%s: the command ended before its grant; it is started again in %.1f s.", self._job, delay)
            self._leadership.phase = Standby(now() + delay)

    def grant(self, leader: LeaderDirectory) -> None:
        """Grant the job to the command; the leadership ends if that cannot be."""
        try:
            if self._granted(leader):
                self._hangs.begin(self._status.directory(leader))
        except LeaderError as error:
            _log.error("%s: the command is not started: %s", self._job, error)
            self._failures.tell(leader, "not-started", f"{error}").join(NOTE_S)
            counted = self._failures.counted(leader, "not-started", 0.0, "store the program again, or mend this host")
            self._leadership.exit_code = counted.exit_code
            self._leadership.step_down("not-started", "The command could not be started.")
        except OSError as error:  # on a host where no file can be written a driver cannot work either
            self._leadership.step_down("not-started", f"The command could not be told that it leads: {error.strerror}.")

    def taken_up(self, leader: LeaderDirectory) -> None:
        """The command runs already, under the leadership that goes on."""
        self._granted_at = now()
        self._hangs.begin(self._status.directory(leader))

    def _granted(self, leader: LeaderDirectory) -> bool:
        """Start the command, or tell the warm one; returns False if a newer version has to replace that first."""
        self._granted_at = now()
        if not self._command.runs:
            self._start(leader)
        elif self._programs.newest(self._command.program) == self._command.program:
            self._command.grant(leader)
        else:
            _log.info("%s: a newer program was stored: the warm command is replaced.", self._job)
            self._replaces = True
            self._leadership.stop_command(now())
            return False
        return True

    def take_replaces(self) -> bool:
        """Return whether the command that has ended was to be started again in a newer version."""
        replaces, self._replaces = self._replaces, False
        return replaces

    def take_newest(self) -> LeaderError | None:
        """Fetch the newest version while the present one runs; returns why it cannot be run."""
        try:
            self._programs.newest(self._command.program)
        except LeaderError as error:
            return error
        return None

    def _start(self, leader: LeaderDirectory | None) -> None:
        self._command.program = self._programs.newest(self._command.program)
        self._command.start(leader, self._hosts.excluded(leader))
