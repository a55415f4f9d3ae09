"""FailedAttempts: how often in a row a job's command has failed without progress, whoever led it. Behind the fence.

One versioned file, ``graph/attempts``, which is written after a failure, and when a leader begins to wait because of
it; at no other time. It moves with the leader directory, so a change of leader forgets no failure. Progress is a
completed batch of any query.
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
        hopeless: how many of them no restart could mend; they use up no attempts.
        remedy: what to do about the last one, because no restart mends it; empty if one may.
        waits: seconds from when this was stored until the next try; 0 if no leader has begun to wait.
    """

    failures: int = 0
    cause: str = ""
    host: str = ""
    batches: dict[str, int] = {}
    hopeless: int = 0
    remedy: str = ""
    waits: float = 0.0

    @property
    def used(self) -> int:
        """Attempts that are used up."""
        return self.failures - self.hopeless

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
        return self.shown()[0]

    def shown(self) -> tuple[Attempts, int]:
        """Return them, and when the next try is: in milliseconds since 1970 by the store's wall clock, for display.

        That is 0 if no leader waits.
        """
        found = self._files.load(_ATTEMPTS)
        try:
            if found is None:
                return Attempts(), 0
            attempts = msgspec.json.decode(found.data, type=Attempts)
        except msgspec.MsgspecError as error:
            raise Unreadable(
                f"The failures of job {self._directory.job!r} in a row cannot be read, because another version of this "
                f"package or a program has written them: {error}."
            ) from error
        return attempts, found.at_ms + round(attempts.waits * 1000) if attempts.waits else 0

    def wait(self, attempts: Attempts, seconds: float) -> None:
        """Note for how long the present leader waits, so that others can say when the next try is; 0: it tries now."""
        self._put(msgspec.structs.replace(attempts, waits=seconds))

    def add(self, cause: str, host: str, seconds: float, remedy: str = "") -> Attempts:
        """Count a failure, unless there was progress; return the failures in a row.

        Args:
            cause: how the command has ended, in one word.
            host: of this process.
            seconds: for how long the command has run.
            remedy: what to do about it, if no restart mends it.
        """
        if seconds >= LONGEST_PAUSE_S:
            self.forget()
            return Attempts()
        before = self.load()
        batches = Checkpoints(self._directory).state().queries
        if batches != before.batches:
            before = Attempts()
        hopeless = before.hopeless + bool(remedy)
        after = Attempts(before.failures + 1, cause, host, batches, hopeless, remedy)
        self._put(after)
        return after

    def _put(self, attempts: Attempts) -> None:
        self._files.put(_ATTEMPTS, msgspec.json.encode(attempts))

    def forget(self) -> None:
        """Begin anew."""
        self._files.remove(_ATTEMPTS)
