"""Heartbeat: a driver writes a small file again and again, each time after its JVM has answered; the sidecar watches.

A listener of Spark sees neither a Python nor a JVM that is frozen. If either does not answer, the file stays as it is.
The first beat begins the watch, and the removal of the file ends it. It says which processes to ask for their stacks.
The others are written over it: a driver that beats is not killed for a disk that is full. One that is read half-written
is none, and the silence begins anew.
"""

import faulthandler
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path
from typing import Self

import msgspec

from ha.program.files import read, replace

LONGEST_LOOK_S = 2.0
"""The sidecar looks more often than this. A longer time between two looks was a pause of its own, and does not count:
the driver may have been paused with it, as a whole machine is."""

LONGEST_INTERVAL_S = 10.0  # between two beats: Flink's ``heartbeat.interval``
ROOM = 128  # bytes of the file
BEATS = 5  # beats that a time-out has room for, so that one late beat does no harm


class Beat(msgspec.Struct, frozen=True):
    """One beat."""

    count: int  # one higher with each beat
    python: int = 0  # process id of the driver's Python; 0 if it is not known
    jvm: int = 0  # process id of its JVM; 0 if it is not known


def newest(path: Path) -> Beat | None:
    """Return the newest beat; None if there is none."""
    return read(path, Beat)


class Watch:
    """Decides whether a driver hangs, from what is seen of its beats. Pure: the caller gives the time."""

    def __init__(self, timeout: float) -> None:
        """Watch nothing yet; after ``timeout`` seconds without a beat the driver hangs; 0 means never."""
        self._timeout = timeout
        self._last: Beat | None = None
        self._looked = 0.0
        self.silence = 0.0

    def hangs(self, at: float, beat: Beat | None) -> bool:
        """Note the newest beat, None if the driver is not watched; returns whether the driver hangs."""
        passed, self._looked = at - self._looked, at
        if beat is None or beat != self._last:
            self._last, self.silence = beat, 0.0
        elif passed <= LONGEST_LOOK_S:
            self.silence += passed
        return beat is not None and 0 < self._timeout <= self.silence


class Heartbeat:
    """Beats while its block lasts."""

    def __init__(self, path: Path, timeout: float, jvm: int, answer: Callable[[], object]) -> None:
        """Prepare; ``timeout`` is the sidecar's, in seconds; ``answer`` returns once the JVM has answered."""
        self._path = path
        self._interval = min(LONGEST_INTERVAL_S, timeout / BEATS)
        self._jvm = jvm
        self._answer = answer
        self._file: BufferedRandom | None = None
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._beat, name="ha-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        if signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL:
            with suppress(OSError):  # a disk that is full: there are no stacks, should it hang
                self._stacks = Path(f"{self._path}.python").open("wb")  # open as long as the process
                faulthandler.register(signal.SIGUSR2, file=self._stacks, all_threads=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closing.set()
            self._path.unlink(missing_ok=True)  # what follows the block is not watched
            if self._file is not None:
                self._file.close()

    def _beat(self) -> None:
        count = 0
        while not self._closing.is_set():
            with suppress(Exception):  # py4j's: a JVM that refuses the call has not answered
                self._answer()
                count += 1
                with self._lock:
                    if not self._closing.is_set():
                        self._write(msgspec.json.encode(Beat(count, os.getpid(), self._jvm)).ljust(ROOM))
            self._closing.wait(self._interval)

    def _write(self, beat: bytes) -> None:
        if self._file is not None:
            if os.fstat(self._file.fileno()).st_nlink:
                os.pwrite(self._file.fileno(), beat, 0)
                return
            self._file.close()  # its directory is made again when it is gone
            self._file = None
        replace(self._path, beat)
        self._file = self._path.open("r+b")
