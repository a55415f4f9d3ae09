"""Snapshot files: their format, a checksum and JSON that people can read, and the one agent of a host that writes them.

A file counts only as an agent wrote it: half a file, a changed byte, another format, job, cluster or boot void it.
"""

import errno
import fcntl
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from types import MappingProxyType

import msgspec

from ha.config.snapshot_dir import AGENT, LEADER, LOCK, WANTED, OpenDirectory, SnapshotDirectory, open_directory
from leader.errors import InvalidName
from leader.layout import names
from leader.layout.information import MAX_RECORD_BYTES, MAX_VERSION, LeaderInformation, check_endpoints
from leader.layout.names import check_job
from leader.lookup.answers import Snapshot
from leader.timing import LONGEST

FORMAT = 1  # readers ignore fields that they do not know, and snapshots of another format

MAX_SNAPSHOT_BYTES = MAX_RECORD_BYTES + 4096
"""Longer files are not parsed. The longest record fits, with all that is said about it."""

_CHECKSUM = 9  # bytes of the checksum: eight hexadecimal digits and a line break

MARKS_AT_ONCE = 1000  # entries of the directory that one scan reads; the next scan reads the others

_STAGED = ".staged-"
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Origin(msgspec.Struct, frozen=True):
    """Whose snapshots count: those of an agent that asks the same stores, in the same boot of the same host."""

    cluster: str  # see :class:`ha.config.snapshot_dir.SnapshotDirectory`
    boot: str  # see :class:`ha.config.snapshot_dir.SnapshotDirectory`


class _Wire(msgspec.Struct, frozen=True):
    format: int
    cluster: str
    boot: str
    job: str
    epoch: int
    session_id: str
    version: int
    endpoints: dict[str, str] | None
    at: float
    good_until: float
    verified: bool
    audit: float


class _Beat(msgspec.Struct, frozen=True):
    format: int
    cluster: str
    boot: str
    pid: int
    good_until: float
    http: str


_decoder = msgspec.json.Decoder(_Wire)
_beat_decoder = msgspec.json.Decoder(_Beat)


def encode(snapshot: Snapshot, origin: Origin, audit: float) -> bytes:
    """Return a snapshot as bytes; ``audit`` is the time in seconds within which the agent corrects what is stale."""
    information = snapshot.information
    return _sealed(
        msgspec.json.encode(
            _Wire(
                FORMAT,
                origin.cluster,
                origin.boot,
                snapshot.job,
                snapshot.epoch,
                snapshot.session_id,
                information.version if information is not None else 0,
                dict(sorted(information.endpoints.items())) if information is not None else None,
                snapshot.at,
                snapshot.good_until,
                snapshot.verified,
                audit,
            )
        )
    )


def decode(data: bytes, job: str, origin: Origin, audit: float) -> Snapshot | None:
    """Return the snapshot; None unless it is of this job and origin, and corrected within ``audit`` seconds."""
    body = _unsealed(data)
    if body is None:
        return None
    try:
        wire = _decoder.decode(body)
        endpoints = check_endpoints(wire.endpoints) if wire.endpoints is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidName):
        return None
    ours = (wire.format, wire.cluster, wire.boot, wire.job) == (FORMAT, origin.cluster, origin.boot, job)
    if not ours or not _makes_sense(wire) or wire.audit > audit:
        return None
    information = None
    if endpoints is not None:
        information = LeaderInformation(job, wire.epoch, wire.session_id, MappingProxyType(endpoints), wire.version)
    return Snapshot(job, wire.epoch, wire.session_id, information, wire.at, wire.good_until, wire.verified)


def _makes_sense(wire: _Wire) -> bool:
    """Whether an agent can have written these values; a comparison with a NaN is false."""
    in_time = 0 < wire.audit <= LONGEST and 0 <= wire.at <= wire.good_until <= wire.at + wire.audit
    if wire.epoch == 0:
        return in_time and wire.session_id == "" and wire.endpoints is None
    leads = wire.endpoints is None or 0 < wire.version <= MAX_VERSION
    return in_time and leads and 0 < wire.epoch <= names.MAX_EPOCH and names.is_session_id(wire.session_id)


def encode_beat(origin: Origin, pid: int, good_until: float, http: str) -> bytes:
    """Return the bytes that say until when there is an agent, and where its HTTP API answers."""
    return _sealed(msgspec.json.encode(_Beat(FORMAT, origin.cluster, origin.boot, pid, good_until, http)))


def decode_beat(data: bytes, origin: Origin) -> float:
    """Return until when there is an agent, in boot-clock seconds; minus infinity if the bytes do not say."""
    body = _unsealed(data)
    if body is not None:
        try:
            beat = _beat_decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return float("-inf")
        if (beat.format, beat.cluster, beat.boot) == (FORMAT, origin.cluster, origin.boot):
            return beat.good_until
    return float("-inf")


def _sealed(body: bytes) -> bytes:
    return b"%08x\n%b\n" % (zlib.crc32(body), body)


def _unsealed(data: bytes) -> bytes | None:
    body = data[_CHECKSUM:-1]
    return body if len(data) <= MAX_SNAPSHOT_BYTES and _sealed(body) == data else None


class SnapshotWriter:
    """Of a host's agents of one cluster, the one that holds the lock writes, and reads the marks.

    The lock is an ``flock``, held until :meth:`close`: it is free the moment its holder is dead. While its holder is
    frozen there is no writer, all snapshots run out, and lookups go to the stores.
    The methods raise OSError if the directory cannot be used.
    """

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
