"""Escalation: a job whose commands keep failing, on whatever host, is tried less and less often, and at last no more.

Each leadership that ends because its command has failed is counted behind the fence. So the next leader, whoever that
is, knows of it, and waits before it starts its own command. It waits the whole pause by its own clock: wall clocks of
two hosts are not compared. See decision 42.
"""

import logging
import socket

from ha.sidecar.job_status import JobStatusUpdater
from leader.errors import NotLeader, Unreadable
from leader.job.failed_attempts import FailedAttempts
from leader.layout.names import LeaderDirectory
from store.errors import StoreError

_log = logging.getLogger("ha")


class Escalation:
    """Counts the failures of one job for its sidecar. Each method is one try: without the store, nothing is counted."""

    def __init__(self, status: JobStatusUpdater, job: str, most: int) -> None:
        """Prepare; ``most`` failures in a row end the job."""
        self._status, self._job, self._most = status, job, most
        self._waits = False
        """Whether the present leader waits because of the failures."""

    def pause(self, leader: LeaderDirectory) -> float:
        """Return the seconds that a new leader waits before it starts its command."""
        self._waits = False
        attempts = FailedAttempts(self._status.directory(leader))
        try:
            found = attempts.load()
        except (StoreError, NotLeader, Unreadable) as error:
            _log.warning("%s: it is not known how often the job has failed: %s", self._job, error)
            return 0.0
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
        attempts = FailedAttempts(self._status.directory(leader))
        try:
            found = attempts.add(cause, socket.gethostname(), seconds, remedy)
        except (StoreError, NotLeader, Unreadable) as error:
            _log.warning("%s: its failure is not counted: %s", self._job, error)
            return True
        if remedy:
            _log.error(
                "%s: the command has failed (%s), and a restart alone helps little.%s", self._job, cause, _mends(remedy)
            )
        if remedy or found.used < self._most:
            return True
        said = f"The command has failed {found.failures} times in a row without a completed batch; at last: {cause}."
        if not self._status.give_up(leader, said):
            return True
        self.forget(leader)  # who runs the job again begins anew
        return False

    def forget(self, leader: LeaderDirectory) -> None:
        """Begin anew, as an operator asks."""
        self._waits = False
        try:
            FailedAttempts(self._status.directory(leader)).forget()
        except (StoreError, NotLeader) as error:
            _log.warning("%s: its failures are not forgotten: %s", self._job, error)


def _mends(remedy: str) -> str:
    return f" No restart mends this: {remedy}." if remedy else ""
