"""Life: waits until a command that was started again lives, and says so if it has failed instead."""

from contextlib import suppress

from leader.errors import LeaderError, NotLeader
from leader.job.admin import JobAdmin
from leader.job.exceptions import JobException
from leader.layout.checkpoint import CheckpointEntry
from leader.layout.names import CHECKPOINTS
from store.clock import BOOT_CLOCK, now
from store.errors import StoreError

LIVES_S = 2.0  # a command that runs for so long has been started as it should

LOOK_S = 0.5


class Life:
    """The life of the next command of a job; what it had failed of before does not count."""

    def __init__(self, admin: JobAdmin, job: str) -> None:
        """Note the failures that are known; note them again while nothing is known to be started."""
        self._admin, self._job = admin, job
        self.before = self.failures()

    def failures(self) -> list[JobException]:
        """Return the failures that are known."""
        return self._admin.exceptions(self._job)

    def wait(self, end: float, *, batch: bool, epoch: int = 0) -> None:
        """Wait until the command of that epoch has lived for a while, or has completed a batch before ``end``."""
        # LeaderError: it has failed, or completes no batch in time; it runs on then.
        newest, lives = self._newest(), now() + LIVES_S
        while now() < (end if batch else lives):
            BOOT_CLOCK.sleep(LOOK_S)
            with suppress(StoreError, NotLeader):  # the next look says
                failed = [each for each in self.failures() if each not in self.before and each.epoch >= epoch]
                if failed:
                    said = f"The new command of job {self._job!r} has failed: {failed[-1].message}"
                    raise LeaderError(f"{said}: see `ha job exceptions {self._job}`.")
                if batch and self._newest() > newest:
                    return
        if batch:
            raise LeaderError(f"The new command of job {self._job!r} runs, and has completed no batch in time.")

    def _newest(self) -> int:
        entries = self._admin.directory(self._job).list(CHECKPOINTS)
        found = (CheckpointEntry.parse(entry.name) for entry in entries)
        return max((each.checkpoint.id for each in found if each is not None), default=0)
