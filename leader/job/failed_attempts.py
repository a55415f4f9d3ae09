"""FailedAttempts: how often in a row a job's command has failed without progress, whoever led it. Behind the fence.

One versioned file, ``graph/attempts``, which is written after a failure and at no other time. It moves with the leader
directory, so a change of leader forgets no failure. Progress is a completed batch of any query.
"""

import msgspec

from leader.errors import Unreadable
from leader.job.checkpoints import Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.job.versioned_files import VersionedFiles
from leader.layout.names import GRAPH

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
"""Between two tries. A command that has run for the longest pause is not failing at its start: that is progress too."""

_ATTEMPTS = "attempts"


class Attempts(msgspec.Struct, frozen=True):
    """Failures in a row.

    Attributes:
        failures: their number.
        cause: how the last one has ended, in one word.
        host: where that was.
        batches: newest completed batch of each query at the last one.
    """

    failures: int = 0
    cause: str = ""
    host: str = ""
    batches: dict[str, int] = {}

    @property
    def pause(self) -> float:
        """Seconds before the next try: none after the first failure, then 1, 2, 4 and so on to 300."""
        if self.failures <= 1:
            return 0.0
        return min(LONGEST_PAUSE_S, SHORTEST_PAUSE_S * 2.0 ** min(self.failures - 2, 20))


class FailedAttempts:
    """The failures of one job; only its leader changes them.

    Every method raises :class:`leader.errors.Fenced` once another leader has taken over,
    :class:`leader.errors.Unreadable` if another version of this package has written them, and
    :class:`store.errors.StoreError` if the store refuses the call or its outcome stays unknown.
    """

    def __init__(self, directory: FencedDirectory) -> None:
        """Connect to nothing yet."""
        self._directory = directory
        self._files = VersionedFiles(directory, GRAPH, "a file of the graph")

    def load(self) -> Attempts:
        """Return the failures so far."""
        found = self._files.load(_ATTEMPTS)
        try:
            return msgspec.json.decode(found.data, type=Attempts) if found is not None else Attempts()
        except msgspec.MsgspecError as error:
            raise Unreadable(
                f"The failures of job {self._directory.job!r} in a row cannot be read, because another version of this "
                f"package or a program has written them: {error}."
            ) from error

    def add(self, cause: str, host: str, seconds: float) -> Attempts:
        """Count a failure, unless there was progress; return the failures in a row.

        Args:
            cause: how the command has ended, in one word.
            host: of this process.
            seconds: for how long the command has run.
        """
        if seconds >= LONGEST_PAUSE_S:
            self.forget()
            return Attempts()
        before = self.load()
        batches = Checkpoints(self._directory).state().queries
        failures = before.failures + 1 if batches == before.batches else 1
        after = Attempts(failures, cause, host, batches)
        self._files.put(_ATTEMPTS, msgspec.json.encode(after))
        return after

    def forget(self) -> None:
        """Begin anew."""
        self._files.remove(_ATTEMPTS)
