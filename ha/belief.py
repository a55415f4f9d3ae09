"""The belief of a sidecar, shared with the processes it supervises: a memory-mapped file of three numbers.

The driver asks it whether it still leads, the guard when the driver must be dead. Reading takes no system call, and
works while the sidecar is frozen: that is what it is for. What no sidecar wrote means no leadership.
"""

import errno
import mmap
import os
import struct
from pathlib import Path

from store.clock import now

_LAYOUT = struct.Struct("<Qdd")
FARTHEST = 1e7
"""Seconds from now, over a hundred days: no lease is granted for a tenth of that, so a later time is none of ours."""

ATTEMPTS = 1000
"""Reads that may meet a half-written record before the reader takes it for damaged, which means: no leadership."""


class BeliefWriter:
    """The sidecar's end. A counter that is odd while the numbers change lets readers notice a half-written record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.ftruncate(descriptor, _LAYOUT.size)
            self._map = mmap.mmap(descriptor, _LAYOUT.size)
        finally:
            os.close(descriptor)
        self._count = 0
        self.write(float("-inf"), float("-inf"))

    def write(self, leads_until: float, holds_until: float) -> None:
        """Publish both times, in boot-clock seconds."""
        self._count += 2
        struct.pack_into("<Q", self._map, 0, self._count - 1)
        struct.pack_into("<dd", self._map, 8, leads_until, holds_until)
        struct.pack_into("<Q", self._map, 0, self._count)

    def close(self) -> None:
        """Remove the file; who has it mapped reads on what was written last."""
        self._map.close()
        self.path.unlink(missing_ok=True)


class BeliefReader:
    """The other end."""

    def __init__(self, path: Path) -> None:
        """Map the file.

        Raises:
            OSError: it is not there, or no belief: too short or too long.
        """
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != _LAYOUT.size:
                wrong = "short" if size < _LAYOUT.size else "long"
                raise OSError(errno.EINVAL, f"The belief is too {wrong}", str(path))
            self._map = mmap.mmap(file.fileno(), _LAYOUT.size, access=mmap.ACCESS_READ)

    def read(self) -> tuple[float, float]:
        """Return until when the sidecar leads and until when nobody else can, in boot-clock seconds."""
        for _ in range(ATTEMPTS):
            count, leads_until, holds_until = _LAYOUT.unpack_from(self._map)
            if count % 2 == 0 and _LAYOUT.unpack_from(self._map)[0] == count:
                end = now() + FARTHEST
                if leads_until <= end and holds_until <= end:  # which no NaN is
                    return leads_until, holds_until
                break
        return float("-inf"), float("-inf")

    def is_leader(self) -> bool:
        """Whether the sidecar leads now."""
        return now() < self.read()[0]
