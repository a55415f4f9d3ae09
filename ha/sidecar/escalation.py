"""Escalation: a job whose commands keep failing, on whatever host, is tried less and less often, and at last no more.

Each leadership that ends because its command has failed is counted behind the fence. So the next leader, whoever that
is, knows of it, and waits before it starts its own command. It waits the whole pause by its own clock: wall clocks of
two hosts are not compared. The count is tried until the lease ends: without the store the lease could not be given
back either. See decisions 42 and 63.
"""

import logging
import socket

from ha.sidecar.job_status import JobStatusUpdater
from leader.errors import NotLeader, Unreadable
from leader.job.failed_attempts import LONGEST_PAUSE_S, SHORTEST_PAUSE_S, Attempts, FailedAttempts
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from store.errors import StoreError

_log = logging.getLogger("ha")


class Escalation:
    """Counts the failures of one job for its sidecar."""

    def __init__(self, status: JobStatusUpdater, job: str, most: int) -> None:
        """Prepare; ``most`` failures in a row end the job."""
        self._status, self._job, self._most = status, job, most
        self._waits = False
        """Whether the present leader waits because of the failures."""
        self._remembers = True
        """Whether there may be failures that a command which runs for long makes matter no more."""
        self._lasts_at = LONGEST_PAUSE_S

    def pause(self, leader: LeaderDirectory) -> float | None:
        """Return the seconds that a new leader waits before it starts its command; None if the job has FAILED.

        That is so if the last leader was lost between its count and the end of the job.
        """
        self._waits = False
        attempts = [Attempts()]

        def load(directory: FencedDirectory) -> None:
            attempts[0] = FailedAttempts(directory).load()

        try:
            if not self._status.keep_trying(leader, "find out how often the job has failed", load):
                return SHORTEST_PAUSE_S  # the lease is over, which the sidecar finds before a start that has waited
        except Unreadable as error:
            _log.warning("%s: it is not known how often the job has failed: %s", self._job, error)
        (found,) = attempts
        self._remembers, self._lasts_at = found.failures > 0, LONGEST_PAUSE_S
        if found.used >= self._most:
            return None if self._give_up(leader, found) else SHORTEST_PAUSE_S
        if found.pause:
            _log.warning(
                "%s: its command has failed %d times in a row without a completed batch, the last time on %s (%s): "
                "the next try is in %.0f s. `ha restart %s` tries at once.%s",
                self._job, found.failures, found.host, found.cause, found.pause, self._job, _mends(found.remedy),
            )  # fmt: skip
            self._waits = True
            self._tell(leader, found.pause)
        return found.pause

    def tries(self, leader: LeaderDirectory) -> None:
        """The command has been started: if the leader has waited before, it waits no more."""
        if self._waits:
            self._tell(leader, 0.0)
            self._waits = False
        self._lasts_at = LONGEST_PAUSE_S

    def lasts(self, leader: LeaderDirectory, seconds: float) -> None:
        """The command has run for so many seconds: once that is long, failures before it do not matter.

        It is written down while the command runs, because a leader that dies with its host writes nothing.
        """
        if self._remembers and seconds >= self._lasts_at:
            self._lasts_at = seconds + LONGEST_PAUSE_S  # if the store does not answer
            self.forget(leader)

    def _tell(self, leader: LeaderDirectory, seconds: float) -> None:
        """Tell everybody how long the leader waits: one try, because it is only shown."""
        try:
            FailedAttempts(self._status.directory(leader)).wait(seconds)
        except (StoreError, NotLeader) as error:
            _log.warning("%s: `ha list` does not show when it is tried again: %s", self._job, error)

    def failed(self, leader: LeaderDirectory, cause: str, seconds: float, remedy: str = "") -> bool:
        """Count a failure that ends a leadership; returns False if it was the last one, and the job has FAILED.

        Args:
            leader: the leadership.
            cause: how the command has ended, in one word.
            seconds: for how long it has run.
            remedy: what to do about it, if no restart mends it: then it uses up no attempt.
        """
        attempts = FailedAttempts(self._status.directory(leader))  # one for all tries, so that it counts once
        found = [Attempts()]

        def add(_: FencedDirectory) -> None:
            found[0] = attempts.add(cause, socket.gethostname(), seconds, remedy)

        try:
            counted = self._status.keep_trying(leader, "count its failure", add)
        except Unreadable as error:
            _log.warning("%s: its failure is not counted: %s", self._job, error)
            counted = False
        if remedy:
            _log.error(
                "%s: the command has failed (%s), and a restart alone helps little.%s", self._job, cause, _mends(remedy)
            )
        if not counted or remedy or found[0].used < self._most:
            return True
        return not self._give_up(leader, found[0])

    def _give_up(self, leader: LeaderDirectory, found: Attempts) -> bool:
        """End the job; returns whether that was done."""
        said = f"The command has failed {found.failures} times in a row without a completed batch; at last: "
        return self._status.give_up(leader, f"{said}{found.cause}.")

    def forget(self, leader: LeaderDirectory) -> None:
        """Begin anew, as an operator asks: one try."""
        self._waits = False
        try:
            FailedAttempts(self._status.directory(leader)).forget()
            self._remembers = False
        except (StoreError, NotLeader) as error:
            _log.warning("%s: its failures are not forgotten: %s", self._job, error)


def _mends(remedy: str) -> str:
    return f" No restart mends this: {remedy}." if remedy else ""
