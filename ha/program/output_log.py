"""Output logs: what the runs of a command have written to standard output and error, in files of bounded size.

    <state directory>/hybrid-ha/logs/<job>/<pid>-<run>-<hex>.log      0600, in folders with 0700
    <state directory>/hybrid-ha/logs/<job>/<pid>-<run>-<hex>.log.1    the part before it

The guard of a run writes them, by a :class:`Tee`. The sidecar keeps the last lines of a run that has failed with the
failure, and ``ha job logs`` shows them all. Text is kept as it comes, with whatever secrets a program prints.
"""

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

PART_BYTES = 8 << 20  # of each of the two files of a run
RUNS = 5  # that are kept of a job on a host
LINES, LAST_BYTES = 50, 4_000  # of a run that has failed, at most

CHUNK = 1 << 16
STRAGGLERS_S = 0.5  # for what the command has written before its end; a process that cannot be ended keeps a pipe open


def folder(job: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the logs of a job are on this host."""
    state = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "hybrid-ha", "logs", job)


def new(job: str, run: int, link: Path) -> Path:
    """Begin the log of a run, to which ``link`` leads, and remove those of old runs; returns its path."""
    # Where the state directory cannot be written, the log is ``link`` itself, and goes with it.
    link.unlink(missing_ok=True)
    try:
        (place := folder(job)).mkdir(0o700, parents=True, exist_ok=True)
        for old in runs(job)[: 1 - RUNS]:
            for part in parts(old):
                part.unlink(missing_ok=True)
        path = place / f"{os.getpid()}-{run}-{os.urandom(4).hex()}.log"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        link.symlink_to(path)
    except (OSError, RuntimeError):  # also without any home
        return link
    return path


def runs(job: str) -> list[Path]:
    """Return the logs of a job's runs on this host; the one that was written last is the last."""
    found = []
    with suppress(OSError, RuntimeError):
        for path in folder(job).glob("*.log"):
            with suppress(OSError):  # another sidecar has just removed it
                found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def parts(path: Path) -> list[Path]:
    """Return the files of a run's log, oldest first."""
    return [each for each in (before(path), path) if each.exists()]


def before(path: Path) -> Path:
    """Return the part before the present one."""
    return path.with_name(f"{path.name}.1")


def last_lines(path: Path) -> str:
    """Return the last lines of a run; empty if it has written nothing, or if its log is gone."""
    try:
        with Path(os.path.realpath(path)).open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - LAST_BYTES))
            read = file.read(LAST_BYTES).decode(errors="replace")
    except OSError:
        return ""
    whole = read.partition("\n")[2] if end > LAST_BYTES and "\n" in read[:-1] else read
    return "\n".join(whole.rstrip().splitlines()[-LINES:])


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
