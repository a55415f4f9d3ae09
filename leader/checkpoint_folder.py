"""The directory of a job's checkpoints, as its leader changes it: each call has a deadline, and an outcome."""

from collections.abc import Iterator

from leader.checkpoint_list import CheckpointList, folder, names, parse
from leader.errors import Fenced
from leader.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, NotFound
from store.outcome import Outcome

ATTEMPTS = 4
"""Tries of one change whose outcome stays unknown, each within the call time-out."""

CALL = "checkpoint"
"""What a change is called in messages and metrics."""


class CheckpointFolder:
    """Below one leader directory; once that is another leader's, nothing can be changed here."""

    def __init__(self, files: BoundedFiles, job: str, directory: LeaderDirectory, call_timeout: float) -> None:
        """Touch nothing yet; ``call_timeout`` is in seconds."""
        self.job = job
        self.directory = directory
        self._files = files
        self.path = folder(job, directory)
        self._timeout = call_timeout

    def read(self) -> CheckpointList:
        """List what is there.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
            Unreadable: there is a name that is neither a checkpoint's nor the counter's.
        """
        try:
            found = self._files.call("checkpoints", lambda files: names(files, self.job, self.directory), self._timeout)
        except NotFound:
            raise Fenced(
                f"Epoch {self.directory.epoch} of job {self.job!r} is over: another leader has taken its place."
            ) from None
        return parse(found, self.job, self.directory)

    def rename(self, source: str, target: str) -> Outcome[None]:
        """Rename an entry, once."""
        old, new = f"{self.path}/{source}", f"{self.path}/{target}"
        return self._files.outcome(CALL, lambda files: files.rename(old, new), self._timeout)

    def make(self, name: str) -> Outcome[None]:
        """Make an entry, below a directory that has to be there."""
        return self._files.outcome(CALL, lambda files: files.make_directory(f"{self.path}/{name}"), self._timeout)

    def delete(self, name: str) -> Outcome[None]:
        """Delete an entry."""
        return self._files.outcome(CALL, lambda files: files.delete(f"{self.path}/{name}"), self._timeout)

    def judge(self, outcome: Outcome[None], *, last: bool) -> None:
        """Raise unless another try makes sense: somebody else moved the name, or nobody knows what happened.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the change was refused, or this was the last try.
        """
        retry = outcome.unknown or isinstance(outcome.error, NotFound | AlreadyExists)
        if not retry or last:
            self.read()  # says so if we were fenced
            outcome.result()


def attempts() -> Iterator[bool]:
    """One item an attempt; whether it is the last."""
    return (number == ATTEMPTS for number in range(1, ATTEMPTS + 1))
