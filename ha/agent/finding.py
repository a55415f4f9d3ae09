"""The reading end: finds what the host's agent was told, in microseconds, and asks it for what is not there yet."""

import os
import stat

from ha.agent.place import AGENT, LEADER, WANTED, Directory, Place, open_directory, trusted
from ha.agent.wire import MAX_SNAPSHOT_BYTES, Origin, decode, decode_beat
from leader.snapshot import Snapshot
from store.clock import BOOT_CLOCK, Clock

OPEN_AGAIN = 1.0
"""Seconds after which a directory that is not there, or has nothing to go by, is looked for again."""

WANTED_EVERY = 60.0
"""Seconds after which a process says again that it asks for a job; the agent forgets jobs that nobody asks for."""

ASK_AGAIN = 1.0
"""Seconds after which an agent is asked again for a job that it has not answered for."""

NOT_AGAIN_FOR = 10.0
"""Seconds for which its answer is not waited for again."""

LOOK_AGAIN = 0.005
"""Seconds between two looks for a snapshot that the agent was asked for."""

REMEMBERED = 1024
"""Jobs of which something is remembered; with more all of it is forgotten, which costs some microseconds a job."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_MARK = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class _Remembered:
    """What is remembered of a job: bytes and the snapshot that they are, and when to say or ask what again."""

    __slots__ = ("ask_again", "in_vain_until", "read", "wanted_again")

    def __init__(self) -> None:
        self.read: tuple[bytes, Snapshot | None] = (b"", None)
        self.wanted_again = float("-inf")
        self.ask_again = float("-inf")
        self.in_vain_until = float("-inf")


class SnapshotFinder:
    """A :class:`leader.snapshot.Snapshots`; any thread may use it, and a forked child. It has no lock and no thread."""

    def __init__(self, place: Place, audit: float, clock: Clock = BOOT_CLOCK) -> None:
        """Open nothing yet.

        Args:
            place: where the snapshots lie.
            audit: seconds within which a stale answer must be corrected: an agent that takes longer is not listened to.
            clock: the host's boot clock, unless in a test.
        """
        self._place = place
        self._origin = Origin(place.cluster, place.boot)
        self._audit = audit
        self._clock = clock
        self._directory: Directory | None = None
        self._open_again = float("-inf")
        self._jobs: dict[str, _Remembered] = {}

    def find(self, job: str) -> Snapshot | None:
        """See :meth:`leader.snapshot.Snapshots.find`."""
        remembered = self._jobs.get(job) or self._remember(job)
        data = self._read(LEADER + job)
        if data is None:
            self._look_elsewhere()
            return None
        known, snapshot = remembered.read
        if data != known:
            snapshot = decode(data, job, self._origin, self._audit)
            remembered.read = (data, snapshot)
        now = self._clock.now()
        if snapshot is None or not snapshot.at <= now < snapshot.good_until:
            self._look_elsewhere()
            return None
        if now >= remembered.wanted_again:
            self._want(job, remembered)
        return snapshot

    def ask(self, job: str, timeout: float) -> Snapshot | None:
        """See :meth:`leader.snapshot.Snapshots.ask`."""
        remembered = self._jobs.get(job) or self._remember(job)
        now = self._clock.now()
        end = now + timeout
        if now < remembered.ask_again:
            return None
        remembered.ask_again = now + ASK_AGAIN
        if not self._agent_is_there():
            return None
        self._want(job, remembered)
        if now < remembered.in_vain_until:
            return None
        while (rest := end - self._clock.now()) > 0:
            self._clock.sleep(min(LOOK_AGAIN, rest))
            snapshot = self.find(job)
            if snapshot is not None:
                return snapshot
        remembered.in_vain_until = self._clock.now() + NOT_AGAIN_FOR
        return None

    def _remember(self, job: str) -> _Remembered:
        if len(self._jobs) >= REMEMBERED:
            self._jobs.clear()
        return self._jobs.setdefault(job, _Remembered())

    def _agent_is_there(self) -> bool:
        data = self._read(AGENT)
        return data is not None and self._clock.now() < decode_beat(data, self._origin)

    def _want(self, job: str, remembered: _Remembered) -> None:
        """Leave a mark for the agent, which takes it away."""
        remembered.wanted_again = self._clock.now() + WANTED_EVERY
        directory = self._directory
        if directory is not None:
            leave_mark(directory, job)

    def _read(self, name: str) -> bytes | None:
        directory = self._directory or self._open()
        if directory is None:
            return None
        try:
            descriptor = os.open(name, _READ, dir_fd=directory.descriptor)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            if not trusted(status) or not stat.S_ISREG(status.st_mode):
                return None
            return os.read(descriptor, MAX_SNAPSHOT_BYTES + 1)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def _open(self) -> Directory | None:
        now = self._clock.now()
        if now < self._open_again:
            return None
        self._open_again = now + OPEN_AGAIN
        try:
            directory = open_directory(self._place)
        except OSError:
            return None
        self._directory = directory
        return directory

    def _look_elsewhere(self) -> None:
        """There is nothing to go by: perhaps the directory was removed, and there is another one by now."""
        if self._clock.now() >= self._open_again:
            self._directory = None


def leave_mark(directory: Directory, job: str) -> bool:
    """Tell the agent that somebody asks for this job; returns whether it could be said."""
    try:
        os.close(os.open(WANTED + job, _MARK, 0o600, dir_fd=directory.descriptor))
    except OSError:
        return False
    return True
