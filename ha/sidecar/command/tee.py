"""Tee: passes on what a command writes, as it comes, and keeps the newest of it in a file of bounded size."""

import os
import threading
from contextlib import suppress
from pathlib import Path

from ha.program.output_log import PART_BYTES, before

CHUNK = 1 << 16
STRAGGLERS_S = 0.5  # for what the command has written before its end; a process that cannot be ended keeps a pipe open


class Tee:
    """Two pipes, for standard output and error of a command, and the threads that empty them.

    A reader of this process's own output that is slow slows the command down, as if it wrote there itself. One that is
    gone, and a disk that is full, do not.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, which may be a link to it. OSError if no pipe can be made."""
        self._path = Path(os.path.realpath(path))
        self._lock = threading.Lock()
        self._file = -1
        self._room = 0
        self._open()
        pipes = [os.pipe(), os.pipe()]
        self.output, self.error = (end for _, end in pipes)
        self._threads: list[threading.Thread] = []
        self._waiting = [
            threading.Thread(target=self._copy, args=(source, target), name="ha-tee", daemon=True)
            for (source, _), target in zip(pipes, (1, 2), strict=True)
        ]

    def start(self) -> None:
        """Begin to copy: the command has its ends of the pipes."""
        os.close(self.output)
        os.close(self.error)
        self.begin()

    def begin(self) -> None:
        """Start the threads that are not there yet, if the host has some: till then the command waits as it writes."""
        with suppress(RuntimeError):
            while self._waiting:
                self._waiting[-1].start()
                self._threads.append(self._waiting.pop())

    def finish(self) -> None:
        """Wait until everything is copied; the command has ended."""
        self.begin()
        for each in self._threads:
            each.join(STRAGGLERS_S)

    def keep(self, data: bytes) -> None:
        """Write to the file alone."""
        with self._lock, suppress(OSError):
            if self._room < len(data):
                self._path.replace(before(self._path))
                self._open()
            if self._file >= 0:
                os.write(self._file, data)
                self._room -= len(data)

    def _open(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        with suppress(OSError):
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._room = PART_BYTES - os.fstat(self._file).st_size

    def _copy(self, source: int, target: int) -> None:
        begun = b""  # a line of which the end is to come: the other stream must not be written into it
        while data := os.read(source, CHUNK):
            lines, end, rest = data.rpartition(b"\n")
            if end or len(begun) > CHUNK:
                self.keep(begun + lines + end)
                begun = b""
            begun += rest
            with suppress(OSError):
                left = memoryview(data)
                while left:
                    left = left[os.write(target, left) :]
        self.keep(begun)
