"""Failures: what follows when a sidecar's command has failed, and what is told of it.

The restart strategy says whether the command is started again within its leadership. If not, the leadership ends, and
the failure is counted for all contenders (ha/sidecar/escalation.py).
"""

import logging
import signal
from dataclasses import dataclass
from threading import Thread

from ha.config.restart_strategy import NoRestart
from ha.metrics.contending import CommandCounters
from ha.sidecar.escalation import Escalation
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.phase import Leading
from leader.layout.names import LeaderDirectory
from store.clock import now

BY_SIGNAL = 128
"""Added to the number of the signal that has ended a command."""

JOB_FAILED = 1
"""The exit code of a sidecar that has given the job up."""

_log = logging.getLogger("ha")


@dataclass(frozen=True, slots=True)
class Decision:
    """The consequence of a failure.

    Attributes:
        delay: seconds until the command is started again; None if the leadership ends.
        exit_code: of the sidecar; None if it goes on to contend.
    """

    delay: float | None = None
    exit_code: int | None = None


class CommandFailures:
    """The failures of one job's command, as its sidecar sees them."""

    def __init__(self, job: str, status: JobStatusUpdater, escalation: Escalation, counters: CommandCounters) -> None:
        """Prepare; nothing has failed yet."""
        self._job, self._status, self._escalation, self._counters = job, status, escalation, counters

    def tell(self, leader: LeaderDirectory, cause: str, said: str, dump: str = "") -> Thread:
        """Count a failure for the metrics and keep it among the job's exceptions.

        Args:
            leader: the leadership in which it happened.
            cause: one word.
            said: one sentence.
            dump: stacks of the command's processes.

        Returns:
            the thread that writes it down, which a caller may wait for.
        """
        self._counters.failed()
        return self._status.add_exception(leader, cause, said, dump)

    def after(self, phase: Leading, cause: str, seconds: float, remedy: str = "", *, gave_up: bool = False) -> Decision:
        """Decide what follows the end of a command that was to run on, and has run for so many seconds.

        A failure that no restart mends is no matter of the restart strategy; ``remedy`` says what is to be done. Nor is
        one after which the command's engine ``gave_up``: it has used that strategy itself.
        """
        if remedy:
            return self.counted(phase.leader, cause, seconds, remedy)
        delay = None if gave_up else phase.strategy.failed(now())
        if delay is None:
            if gave_up or not isinstance(phase.strategy, NoRestart):
                _log.warning("%s: the restart strategy gives up here; another contender may try.", self._job)
            return self.counted(phase.leader, cause, seconds)
        if not self._status.fail(phase.leader):
            _log.info("%s: its program has ended the job: the command is not started again.", self._job)
            return Decision(exit_code=0)
        _log.info("%s: the command is started again in %.1f s; the leadership stays.", self._job, delay)
        return Decision(delay)

    def counted(self, leader: LeaderDirectory, cause: str, seconds: float, remedy: str = "") -> Decision:
        """Count a failure that ends the leadership; after the last one the sidecar ends as well."""
        goes_on = self._escalation.failed(leader, cause, seconds, remedy)
        return Decision(exit_code=None if goes_on else JOB_FAILED)


def end_of_command(code: int, *, finished: bool) -> str:
    """Return in one word how a command has ended."""
    if code == 0:
        return "finished" if finished else "exit-0"
    number = code - BY_SIGNAL
    return f"signal-{number}" if 0 < number < signal.NSIG else f"exit-{code}"
