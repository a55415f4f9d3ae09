"""Deadline file: tells the processes that a sidecar supervises how long it leads. Five numbers, memory-mapped.

The driver reads whether it still leads, and the guard reads when the driver must be dead. A read takes no system call.
It works even while the sidecar is frozen, which is the purpose of the file. Damaged content means no leadership.

There is a place for each of two records, and a counter whose parity says which one counts. A record is written to the
other place, then the counter changes. So a writer that is interrupted in between, as happens on a busy machine, leaves
what it said before.
"""

import errno
import mmap
import os
import struct
import threading
from pathlib import Path

from store.clock import now

_LAYOUT = struct.Struct("<Qdddd")
_RECORD = struct.Struct("<dd")
FARTHEST_S = 1e7  # longest time from now that a deadline can lie: over a hundred days, ten times as long as any lease

ATTEMPTS = 1000
"""After this many reads, each disturbed by a new record, the file counts as damaged: the process does not lead."""


class DeadlineWriter:
    """The sidecar's end."""

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        """Create the file, which grants nothing yet; or resume that of a dead process, and leave what it says."""
        self.path = path
        self._lock = threading.Lock()
        self._maps = [_mapped(path, os.O_RDWR | (0 if resume else os.O_CREAT | os.O_TRUNC))]
        self._count = _LAYOUT.unpack_from(self._maps[0])[0]
        if not resume:
            self.write(float("-inf"), float("-inf"))

    def make(self, path: Path) -> None:
        """Make the file again if it is gone, or is to be there; those that have mapped the old one still read it."""
        if path.exists():
            return
        with self._lock:
            made = _mapped(path.with_name(f"{path.name}.staged"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            made[:] = self._maps[-1][:]
            path.with_name(f"{path.name}.staged").rename(path)
            self._maps.append(made)
            self.path = path

    def forget(self) -> None:
        """Forget the files that are gone: they have no readers left."""
        with self._lock:
            del self._maps[:-1]

    def write(self, leads_until: float, holds_until: float) -> None:
        """Publish until when the sidecar leads, and until when no other can, in seconds of the boot clock."""
        with self._lock:
            self._count += 1
            for each in self._maps:
                _RECORD.pack_into(each, _place(self._count), leads_until, holds_until)
                struct.pack_into("<Q", each, 0, self._count)

    def close(self) -> None:
        """Remove the file; a reader that has it mapped still reads what was written last."""
        for each in self._maps:
            each.close()
        self.path.unlink(missing_ok=True)


class DeadlineReader:
    """A supervised process's end."""

    def __init__(self, path: Path) -> None:
        """Map the file; raises ``OSError`` if there is none, or it has another size."""
        with path.open("rb") as file:
            _check_size(file.fileno(), path)
            self._map = mmap.mmap(file.fileno(), _LAYOUT.size, access=mmap.ACCESS_READ)

    def read(self) -> tuple[float, float]:
        """Return the two deadlines that :meth:`DeadlineWriter.write` published."""
        for _ in range(ATTEMPTS):
            count = _LAYOUT.unpack_from(self._map)[0]
            leads_until, holds_until = _RECORD.unpack_from(self._map, _place(count))
            if _LAYOUT.unpack_from(self._map)[0] == count:  # else the next but one may have been written over it
                end = now() + FARTHEST_S
                if leads_until <= end and holds_until <= end:  # false for a NaN
                    return leads_until, holds_until
                break
        return float("-inf"), float("-inf")

    def is_leader(self) -> bool:
        """Whether the sidecar leads now."""
        return now() < self.read()[0]


def _place(count: int) -> int:
    """Return where the record is that counts at this state of the counter."""
    return 8 + count % 2 * _RECORD.size


def _mapped(path: Path, flags: int) -> mmap.mmap:
    descriptor = os.open(path, flags, 0o600)
    try:
        if flags & os.O_CREAT:
            os.posix_fallocate(descriptor, 0, _LAYOUT.size)  # a page that a full disk cannot give would be a SIGBUS
        else:
            _check_size(descriptor, path)
        return mmap.mmap(descriptor, _LAYOUT.size)
    finally:
        os.close(descriptor)


def _check_size(descriptor: int, path: Path) -> None:
    size = os.fstat(descriptor).st_size
    if size != _LAYOUT.size:
        wrong = "short" if size < _LAYOUT.size else "long"
        raise OSError(errno.EINVAL, f"The deadline file is too {wrong}", str(path))
