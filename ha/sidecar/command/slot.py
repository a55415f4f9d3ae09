"""Slot: a place of this host where a sidecar leaves what its successor needs to take up the command.

    <shared memory>/hybrid-ha-<user>/sidecars-<cluster>/<job>~<number>/    0700
        lock     held by the sidecar for life: the kernel drops it when the process dies, and never while it is paused
        left     what the sidecar leaves: a file that is replaced as a whole
        door     0600: the socket at which the guard of its command waits once the sidecar is gone

Two sidecars of a job have different slots. A new one takes the slot of one that is dead, so two never share a guard.
"""

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from ha.config.snapshot_dir import SnapshotDirectory, cluster_of, open_directory, own_base
from ha.program import files
from leader.job.programs import Program
from leader.layout.contact import ContactAddress
from leader.layout.names import LeaderDirectory
from store.zookeeper.address import Address

LOCK, LEFT, DOOR = "lock", "left", "door"

MOST = 1000  # slots of one job; no host runs so many of its sidecars
BACKLOG = 8

CONNECT_WITHIN_S = 1.0  # it is at once, unless as many others have connected and wait
FORMAT = 1  # of the file; another one is not read


class RunOrder(msgspec.Struct, frozen=True):
    """The order that a sidecar was given: only a sidecar with the same one takes the command up."""

    program: Program  # command, variables, files and number
    spark: bool = False  # whether Spark's own configuration tells the command where its checkpoints are
    place: str = ""  # the directory in which the sidecar was started
    savepoint: str = ""  # the one that the job began from; empty for none
    engine: bool = False  # whether the program runs under an engine


class Left(msgspec.Struct, frozen=True):
    """The note that a sidecar leaves to its successor."""

    leader: LeaderDirectory  # the leadership under which the command runs
    run: RunOrder  # what it was told to run
    directory: str  # path of the files that it shares with its command
    starts: int  # number of the present run of the command
    # path of the file by which a warm command was granted the job; empty for a command that was started with a grant
    grant: str = ""
    # where the process listens, and the word with which it greets; None if it does not
    contact: ContactAddress | None = None
    taken_up: int = 0  # how often the command was taken up
    format: int = FORMAT


class Slot:
    """One slot, whose lock this process holds."""

    def __init__(self, path: Path, lock: int) -> None:
        """Use :func:`take`."""
        self.path, self._lock = path, lock

    def leave(self, left: Left) -> None:
        """Write what a successor needs, complete at once."""
        files.write(self.path / LEFT, left)

    def left(self) -> Left | None:
        """Return what a dead sidecar has left; None if nothing, or if it cannot be read."""
        found = files.read(self.path / LEFT, Left)
        return found if found is not None and found.format == FORMAT else None

    def forget(self) -> None:
        """Forget what was left."""
        (self.path / LEFT).unlink(missing_ok=True)

    def open_door(self) -> socket.socket:
        """Make the socket for the guard of the next command; those that connect wait until they are accepted."""
        door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with suppress(FileNotFoundError):
                (self.path / DOOR).unlink()
            with _short(self.path) as short:
                door.bind(str(short / DOOR))
            (self.path / DOOR).chmod(0o600)
            door.listen(BACKLOG)
        except OSError:
            door.close()
            raise
        return door

    def connect(self) -> socket.socket | None:
        """Connect to the guard that waits there; None if there is none."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(CONNECT_WITHIN_S)
        try:
            with _short(self.path) as short:
                connection.connect(str(short / DOOR))
        except OSError:
            connection.close()
            return None
        return connection

    def close(self) -> None:
        """Leave nothing, and give the slot back."""
        for name in (LEFT, DOOR, LOCK):
            with suppress(OSError):
                (self.path / name).unlink()
        with suppress(OSError):
            self.path.rmdir()
        os.close(self._lock)

    def give_back(self) -> None:
        """Leave it as it is."""
        os.close(self._lock)


@contextmanager
def _short(path: Path) -> Iterator[Path]:
    """Open a directory under a path that is short enough for the address of a socket, whatever it is called."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def place_of(jobs: str, zookeeper: Address | None) -> SnapshotDirectory:
    """Return the directory of the slots of this user's sidecars that use these stores."""
    return SnapshotDirectory(own_base(), f"sidecars-{cluster_of(jobs, zookeeper)}", "", 0o700)


def take(place: SnapshotDirectory, job: str) -> tuple[Slot, socket.socket | None]:
    """Take a slot of the job, and connect to the guard that waits there, if there is one that does."""
    # OSError: another user could write there, or it cannot be made.
    open_directory(place, make=True)
    numbers = (each.name.rpartition("~")[2] for each in place.path.glob(f"{job}~*"))
    known = sorted(int(each) for each in numbers if each.isdecimal())
    free: Slot | None = None
    for number in known:
        if (slot := _locked(place.path / f"{job}~{number}")) is None:
            continue
        if (connection := slot.connect()) is not None:
            if free is not None:
                free.give_back()
            return slot, connection
        if free is None:
            free = slot
        else:
            slot.give_back()
    if free is not None:
        return free, None
    made = (_locked(place.path / f"{job}~{number}") for number in range(MOST) if number not in known)
    free = next(filter(None, made), None)
    if free is None:
        raise OSError(errno.EAGAIN, "There is no free slot", str(place.path))
    return free, None


def _locked(path: Path) -> Slot | None:
    """Lock a slot, which is made if it is not there; None if another process has it, or removes it just now."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), (path / LOCK).stat()):
            return Slot(path, lock)
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return None
