"""FailureCount: the failures of one job, counted behind the fence for whoever leads it next: decisions 42 and 63.

A leader that finds some waits before it starts its command: the whole pause by its own clock, because wall clocks of
two hosts are not compared. Writing a failure is retried until the lease ends: without the store the lease could not be
given back either.
"""

import logging
import socket

from ha.sidecar.job_status import JobStatusUpdater
from leader.errors import NotLeader, Unreadable
from leader.job.failed_attempts import SHORTEST_PAUSE_S, Attempts, FailedAttempts
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from store.errors import StoreError

_log = logging.getLogger("ha")


class FailureCount:
    """Counts the failures of one job for its sidecar. Every method may wait for the store."""

    def __init__(self, status: JobStatusUpdater, job: str, most: int) -> None:
        """Prepare; ``most`` failures in a row end the job."""
        self._status, self._job, self._most = status, job, most

    def pause(self, leader: LeaderDirectory) -> tuple[float | None, bool]:
        """Return the seconds that a new leader waits before it starts its command, and whether there are failures."""
        # None if the job has FAILED: the last leader was lost between its count and the end of the job.
        attempts = [Attempts()]

        def load(directory: FencedDirectory) -> None:
            attempts[0] = FailedAttempts(directory).load()

        try:
            if not self._status.keep_trying(leader, "find out how often the job has failed", load):
                return SHORTEST_PAUSE_S, True  # the lease is over, which is found before a start that has waited
        except Unreadable as error:
            _log.warning("%s: it is not known how often the job has failed: %s", self._job, error)
        (found,) = attempts
        if found.used >= self._most:
            return (None if self._give_up(leader, found) else SHORTEST_PAUSE_S), True
        if found.pause:
            _log.warning(
                "%s: its command has failed %d times in a row without a completed batch, the last time on %s (%s): "
                "the next try is in %.0f s. `ha job restart %s` tries at once.%s",
                self._job, found.failures, found.host, found.cause, found.pause, self._job, _mends(found.remedy),
            )  # fmt: skip
            self.show_wait(leader, found.pause)
        return found.pause, found.failures > 0

    def show_wait(self, leader: LeaderDirectory, seconds: float) -> None:
        """Show how long the leader waits, 0 for no longer: one try, because it is only shown."""
        try:
            FailedAttempts(self._status.directory(leader)).wait(seconds)
        except (StoreError, NotLeader) as error:
            _log.warning("%s: `ha job list` does not show when it is tried again: %s", self._job, error)

    def add(self, leader: LeaderDirectory, cause: str, seconds: float, remedy: str = "") -> bool:
        """Count a failure that ends a leadership; returns whether it was the last one, and the job has FAILED."""
        # The cause is one word for the end of the command, which has run for so many seconds; the remedy is what to do
        # if no restart mends it: then it uses up no attempt.
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
        return counted and not remedy and found[0].used >= self._most and self._give_up(leader, found[0])

    def _give_up(self, leader: LeaderDirectory, found: Attempts) -> bool:
        said = f"The command has failed {found.failures} times in a row without a completed batch; at last: "
        return self._status.give_up(leader, f"{said}{found.cause}.")

    def forget(self, leader: LeaderDirectory) -> bool:
        """Reset the count, in one try; returns whether that was done."""
        try:
            FailedAttempts(self._status.directory(leader)).forget()
        except (StoreError, NotLeader) as error:
            _log.warning("%s: its failures are not forgotten: %s", self._job, error)
            return False
        return True


def _mends(remedy: str) -> str:
    return f" No restart mends this: {remedy}." if remedy else ""
