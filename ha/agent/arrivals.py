"""Arrivals: wakes up threads that wait for a new snapshot, when the kernel reports that a file came into its place.

Nothing depends on it. Where the kernel reports nothing (another system, no descriptor left, a directory that is made
later), a watch finds the snapshot at its next look.
"""

import os
import select
import struct
import threading
from contextlib import suppress
from pathlib import Path

from ha.config.snapshot_dir import LEADER
from store.lazy_imports import will_import

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
