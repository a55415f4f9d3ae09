"""RunDirectory: where a sidecar keeps the files that it shares with its command. It is made again when it is gone.

    <temporary directory>/hybrid-ha-run-XXXXXXXX/    0700

A standby may wait for months, and hosts remove temporary files that nobody has used for days. So the directory is
looked at before each use. The sidecar and the guard of its command lock it: systemd-tmpfiles leaves a locked directory
alone, and the next sidecar of this user knows by the lock which directories are those of dead sidecars.
"""

import errno
import fcntl
import logging
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from ha.config.snapshot_dir import trusted
from ha.hook.query_rules import FILE
from ha.sidecar.command.offspring import end_marked
from ha.sidecar.command.orphan import DEADLINE
from store.clock import now

PREFIX = "hybrid-ha-run-"

TOUCH_EVERY_S = 3600.0  # other cleaners go by the times of files: each is touched so often
_NAME = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")
_log = logging.getLogger("ha")


class RunDirectory:
    """One directory, which only this user can enter."""

    def __init__(self, path: Path | None = None) -> None:
        """Make it, and remove those of dead sidecars; ``path`` is that of a dead one whose command is taken up."""
        self._lock = -1
        self._touch_at = now() + TOUCH_EVERY_S
        self.path = path or _new()
        self.make()
        _remove_left()

    @property
    def descriptor(self) -> int:
        """The lock: an open descriptor of it keeps the directory from being removed."""
        return self._lock

    def make(self, *, used: bool = True) -> None:
        """Make it again if it is gone: under its name, or, if that is not ``used``, under another one if need be."""
        # OSError: it cannot be made, or another user has taken the name.
        while not self._stands():
            if self._lock >= 0:
                _log.warning("The directory %s is gone: it is made again.", self.path)
                os.close(self._lock)
                self._lock = -1
            with suppress(FileExistsError):
                self.path.mkdir(0o700, parents=True)
            try:
                self._lock = _locked(self.path, fcntl.LOCK_SH)
            except PermissionError:
                if used:
                    raise
                self.path = _new()

    def touch(self) -> None:
        """Keep all that is in it young, if it is time for that."""
        if now() < self._touch_at:
            return
        self._touch_at = now() + TOUCH_EVERY_S
        for folder, _, files in os.walk(self.path):
            for name in (".", *files):
                with suppress(OSError):
                    os.utime(Path(folder, name), follow_symlinks=False)

    def close(self) -> None:
        """Remove it, with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _stands(self) -> bool:
        try:
            return self._lock >= 0 and os.path.samestat(os.fstat(self._lock), self.path.lstat())
        except OSError:
            return False


class RunFiles:
    """The files that a sidecar shares with one run of its command; none of them has to exist."""

    def __init__(self, directory: Path, number: int) -> None:
        """Name the files of a run; runs are numbered from 1."""
        self._directory, self._number = directory, number
        self.belief = directory / DEADLINE  # how long the leadership lasts; the same for all runs
        self.grant = self._of_run("grant")  # tells a warm run of its grant
        self.heartbeat = self._of_run("heartbeat")  # newest sign of life of the program
        self.python_stacks = Path(f"{self.heartbeat}.python")  # of the program's threads, once asked for
        self.report = self._of_run("queries")  # what the program reports of its queries
        self.unguarded = Path(f"{self.report}{FILE}")  # its queries that no takeover continues
        self.engine = self._of_run("engine")  # state of the engine
        self.settle = self._of_run("settle")  # asks the program to end in order
        self.restart = self._of_run("restart-query")  # asks it to start a query again
        self.output = self._of_run("output")  # leads to the log of what the command has written
        self.program = self._of_run("program")  # working directory of a stored program
        self.spark = self._of_run("spark")  # configuration directory of Spark

    def _of_run(self, what: str) -> Path:
        return self._directory / f"{what}-{self._number}"


def _new() -> Path:
    Path(tempfile.gettempdir()).mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=PREFIX))


def _locked(path: Path, how: int) -> int:
    """Open a directory and lock it. One on a file system without locks is shared as it is, and never removed."""
    # BlockingIOError: another process has locked it. PermissionError: another user could write there.
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not trusted(os.fstat(descriptor)):
            raise PermissionError(errno.EPERM, "Another user owns it, or could write in it", str(path))
        fcntl.flock(descriptor, how)
    except OSError as error:
        if how == fcntl.LOCK_SH and not isinstance(error, PermissionError):
            return descriptor
        os.close(descriptor)
        raise
    return descriptor


def _remove_left() -> None:
    """Remove the directories of this user's killed sidecars, and end what their commands have left behind."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # its sidecar or its guard lives, or it belongs to another user
            if _NAME.fullmatch(path.name) and path.lstat().st_uid == os.geteuid():
                lock = _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
                end_marked(path)
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)
