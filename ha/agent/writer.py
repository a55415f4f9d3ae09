"""The snapshot writer: of a host's agents of one cluster, the one that holds the lock writes, and reads the marks.

The lock is an ``flock``: it is free the moment its holder is dead. While its holder is frozen there is no writer, all
snapshots run out, and lookups go to the stores.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from ha.agent.snapshots import MAX_SNAPSHOT_BYTES, Origin, encode, encode_beat
from ha.config.snapshot_dir import AGENT, LEADER, LOCK, WANTED, OpenDirectory, SnapshotDirectory, open_directory
from leader.errors import InvalidName
from leader.layout.names import check_job
from leader.lookup.answers import Snapshot

MARKS_AT_ONCE = 1000  # entries of the directory that one scan reads; the next scan reads the others

_STAGED = ".staged-"
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SnapshotWriter:
    """Holds the lock until :meth:`close`. Its methods raise OSError if the directory cannot be used."""

    def __init__(self, place: SnapshotDirectory, audit: float) -> None:
        """Make the directory if it is missing, and take the lock."""
        # `place`: where the snapshots lie. `audit`: seconds within which this agent corrects what is stale; readers are
        # told.
        # BlockingIOError: another agent has the lock. OSError: the directory cannot be made or written, or other users
        # may write it.
        self._origin = Origin(place.cluster, place.boot)
        self._audit = audit
        self._path = place.path
        self._directory: OpenDirectory = open_directory(place, make=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
        self._lock = os.open(LOCK, flags, 0o600, dir_fd=self._directory.descriptor)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._check()
            self._tidy()
        except BaseException:
            os.close(self._lock)
            raise

    def write(self, snapshot: Snapshot) -> None:
        """Replace the job's snapshot."""
        data = encode(snapshot, self._origin, self._audit)
        if len(data) <= MAX_SNAPSHOT_BYTES:
            self._replace(LEADER + snapshot.job, data)
        else:
            self.remove(snapshot.job)

    def remove(self, job: str) -> None:
        """Remove the job's snapshot."""
        with suppress(FileNotFoundError):
            os.unlink(LEADER + job, dir_fd=self._directory.descriptor)

    def beat(self, good_until: float, http: str) -> None:
        """Write that there is an agent until ``good_until``, in boot-clock seconds."""
        self._check()
        self._replace(AGENT, encode_beat(self._origin, os.getpid(), good_until, http))

    def wanted(self) -> Iterator[str]:
        """Remove the marks that other processes have left, and yield their jobs."""
        for name in self._names():
            if name.startswith(WANTED):
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._directory.descriptor)
                with suppress(InvalidName):
                    yield check_job(name.removeprefix(WANTED))

    def close(self) -> None:
        """Remove everything that this agent has written, and release the lock."""
        with suppress(OSError):
            self._tidy()
        os.close(self._lock)

    def _check(self) -> None:
        """Raise if other agents would find another lock than this one: then two agents could write."""
        directory = self._directory.descriptor
        lock = os.stat(LOCK, dir_fd=directory, follow_symlinks=False)
        same = os.path.samestat(lock, os.fstat(self._lock))
        if not same or not os.path.samestat(self._path.stat(), os.fstat(directory)):
            raise FileNotFoundError(errno.ENOENT, "The directory of snapshots was removed")

    def _tidy(self) -> None:
        """Remove what an earlier agent has left, which may have known more jobs, or died while it wrote."""
        for name in self._names():
            if name == AGENT or name.startswith((LEADER, _STAGED)):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=self._directory.descriptor)

    def _names(self) -> list[str]:
        with os.scandir(self._directory.descriptor) as entries:
            return [entry.name for entry in islice(entries, MARKS_AT_ONCE)]

    def _replace(self, name: str, data: bytes) -> None:
        at, staged = self._directory.descriptor, _STAGED + name
        with suppress(FileNotFoundError):
            os.unlink(staged, dir_fd=at)
        descriptor = os.open(staged, _WRITE, 0o644, dir_fd=at)
        try:
            os.fchmod(descriptor, 0o644)  # whatever the umask: the directory says who may read it
            if os.write(descriptor, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)
        # Not flushed to disk: after a crash of the host no snapshot of before it counts.
        os.replace(staged, name, src_dir_fd=at, dst_dir_fd=at)
