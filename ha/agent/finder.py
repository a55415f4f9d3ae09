"""The snapshot finder: reads the agent's snapshots within microseconds, and asks the agent for those it lacks."""

import os
import select
import stat
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ha.agent.snapshots import MAX_SNAPSHOT_BYTES, Origin, decode, decode_beat
from ha.config.snapshot_dir import AGENT, LEADER, WANTED, OpenDirectory, SnapshotDirectory, open_directory, trusted
from leader.lookup.answers import Snapshot
from store.clock import BOOT_CLOCK, Clock
from store.lazy_imports import will_import

OPEN_AGAIN = 1.0  # seconds after which a directory that is missing, or holds nothing usable, is opened again
WANTED_EVERY = 60.0  # seconds after which a process marks a job as wanted again; the agent forgets jobs without marks
ASK_AGAIN = 1.0  # seconds after which the agent is asked again for a job that it wrote no snapshot for
NO_WAIT_FOR = 10.0  # seconds without another wait after the agent wrote no snapshot in time
TIME_ENOUGH = 0.1  # seconds after which an agent that wrote no snapshot is said to write none in time
LOOK_EVERY = 0.005  # seconds between two looks for a snapshot that somebody waits for

MAX_REMEMBERED = 1024
"""Jobs that are remembered. One more, and all are forgotten; that costs some microseconds a job."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_MARK = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(slots=True, eq=False)
class _Remembered:
    """The memory of one job: the last bytes with their snapshot, and when to mark it and ask for it again."""

    read: tuple[bytes, Snapshot | None] = (b"", None)
    wanted_again: float = float("-inf")
    ask_again: float = float("-inf")
    no_wait_until: float = float("-inf")


class SnapshotFinder:
    """Finds snapshots, for any thread and for a forked child. It has no lock, and no thread unless somebody watches."""

    def __init__(self, place: SnapshotDirectory, audit: float, clock: Clock = BOOT_CLOCK) -> None:
        """Open nothing yet."""
        # `place`: where the snapshots lie. `audit`: seconds within which a stale answer must be corrected; slower
        # agents are ignored. `clock`: the host's boot clock, unless in a test.
        self._place = place
        self._origin = Origin(place.cluster, place.boot)
        self._audit = audit
        self._clock = clock
        self._directory: OpenDirectory | None = None
        self._open_again = float("-inf")
        self._jobs: dict[str, _Remembered] = {}
        self._arrivals = Arrivals(place.path)

    def find(self, job: str) -> Snapshot | None:
        """See :meth:`leader.lookup.answers.Snapshots.find`."""
        remembered = self._jobs.get(job) or self._remember(job)
        data = self._read(LEADER + job)
        if data is None:
            self._reopen_soon()
            return None
        known, snapshot = remembered.read
        if data != known:
            snapshot = decode(data, job, self._origin, self._audit)
            remembered.read = (data, snapshot)
        now = self._clock.now()
        if snapshot is None or not snapshot.at <= now < snapshot.good_until:
            self._reopen_soon()
            return None
        if now >= remembered.wanted_again:
            self._want(job, remembered)
        return snapshot

    def ask(self, job: str, timeout: float) -> Snapshot | None:
        """See :meth:`leader.lookup.answers.Snapshots.ask`."""
        remembered = self._jobs.get(job) or self._remember(job)
        now = self._clock.now()
        end = now + timeout
        if now < remembered.ask_again:
            return None
        remembered.ask_again = now + ASK_AGAIN
        if not self._agent_is_there():
            return None
        self._want(job, remembered)
        if now < remembered.no_wait_until:
            return None
        while (rest := end - self._clock.now()) > 0:
            self._clock.sleep(min(LOOK_EVERY, rest))
            snapshot = self.find(job)
            if snapshot is not None:
                return snapshot
        if end - now >= TIME_ENOUGH:
            remembered.no_wait_until = self._clock.now() + NO_WAIT_FOR
        return None

    def subscribe(self, job: str, changed: threading.Event) -> None:
        """See :meth:`leader.lookup.answers.Snapshots.subscribe`."""
        self._arrivals.subscribe(job, changed)

    def unsubscribe(self, job: str, changed: threading.Event) -> None:
        """See :meth:`leader.lookup.answers.Snapshots.unsubscribe`."""
        self._arrivals.unsubscribe(job, changed)

    def _remember(self, job: str) -> _Remembered:
        if len(self._jobs) >= MAX_REMEMBERED:
            self._jobs.clear()
        return self._jobs.setdefault(job, _Remembered())

    def _agent_is_there(self) -> bool:
        data = self._read(AGENT)
        return data is not None and self._clock.now() < decode_beat(data, self._origin)

    def _want(self, job: str, remembered: _Remembered) -> None:
        """Leave a mark, which the agent removes."""
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

    def _open(self) -> OpenDirectory | None:
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

    def _reopen_soon(self) -> None:
        """Open the directory again, since nothing in it is usable: it may have been replaced by another one."""
        if self._clock.now() >= self._open_again:
            self._directory = None


def leave_mark(directory: OpenDirectory, job: str) -> bool:
    """Mark a job as wanted, for the agent; returns whether the mark could be left."""
    try:
        os.close(os.open(WANTED + job, _MARK, 0o600, dir_fd=directory.descriptor))
    except OSError:
        return False
    return True


IN_MOVED_TO, IN_MOVE_SELF, IN_DELETE_SELF, IN_ONLYDIR = 0x80, 0x800, 0x400, 0x01000000
IN_NONBLOCK, IN_CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
_EVENT = struct.Struct("iIII")

AGAIN_S = 1.0  # seconds between two tries to watch a directory; also between two looks whether anybody still waits

MOST_BYTES = 65_536


class Arrivals:
    """The snapshots that are replaced in one directory, for any thread and for a forked child.

    While anybody waits, one thread reads what the kernel reports.
    """

    def __init__(self, directory: Path) -> None:
        """Watch nothing yet; the directory need not exist."""
        self._directory = directory
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: dict[str, list[threading.Event]] = {}
        self._runs = False

    def subscribe(self, job: str, changed: threading.Event) -> None:
        """Set the event from now on whenever the job's snapshot is replaced."""
        if self._process != os.getpid():  # a forked child has none of its parent's threads
            self._process, self._lock, self._waiting, self._runs = os.getpid(), threading.Lock(), {}, False
        with self._lock:
            self._waiting.setdefault(job, []).append(changed)
            if not self._runs:
                with suppress(RuntimeError):  # no thread can be had: the next one that waits tries again
                    threading.Thread(target=self._run, name="ha-arrivals", daemon=True).start()
                    self._runs = True

    def unsubscribe(self, job: str, changed: threading.Event) -> None:
        """Undo :meth:`subscribe`."""
        with self._lock:
            left = [each for each in self._waiting.get(job, []) if each is not changed]
            if left:
                self._waiting[job] = left
            else:
                self._waiting.pop(job, None)

    def _run(self) -> None:
        while True:
            watched = watch(self._directory)
            try:
                while self._wanted() and self._report(watched):
                    pass
            finally:
                if watched >= 0:
                    os.close(watched)
            with self._lock:
                if not self._waiting:
                    self._runs = False
                    return

    def _wanted(self) -> bool:
        with self._lock:
            return bool(self._waiting)

    def _report(self, watched: int) -> bool:
        """Wait for news and pass them on; returns whether the directory is still the one that is watched."""
        poll = select.poll()
        if watched >= 0:
            poll.register(watched, select.POLLIN)
        if not poll.poll(AGAIN_S * 1000):
            return watched >= 0
        moved, goes_on = names(os.read(watched, MOST_BYTES))
        with self._lock:
            for name in moved:
                for changed in self._waiting.get(name.removeprefix(LEADER), ()) if name.startswith(LEADER) else ():
                    changed.set()
        return goes_on


def watch(directory: Path) -> int:
    """Return a descriptor from which the kernel's reports of a directory are read; -1 if there are none."""
    will_import("ctypes")
    import ctypes  # noqa: PLC0415  # a lookup needs it not

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        return -1
    descriptor = int(libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC))
    mask = IN_MOVED_TO | IN_MOVE_SELF | IN_DELETE_SELF | IN_ONLYDIR
    if descriptor >= 0 and libc.inotify_add_watch(descriptor, os.fsencode(directory), mask) < 0:
        os.close(descriptor)
        return -1
    return descriptor


def names(reports: bytes) -> tuple[list[str], bool]:
    """Return the files that were moved into their places, and whether the directory itself is still in its own."""
    moved, goes_on, at = [], True, 0
    while at < len(reports):
        _, mask, _, length = _EVENT.unpack_from(reports, at)
        at += _EVENT.size
        if mask & IN_MOVED_TO:
            moved.append(os.fsdecode(reports[at : at + length].rstrip(b"\0")))
        else:  # it was removed or replaced, or the kernel has lost some reports
            goes_on = False
        at += length
    return moved, goes_on
