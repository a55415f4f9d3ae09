"""The spare descriptor: one that the process keeps, for the moment when the system gives it no other.

A flood of connections or a leak in the program can use up all descriptors. What must be done even then, and needs one
for a moment, borrows this one.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NONE = -1


class SpareDescriptor:
    """A descriptor that is given back to the system while it is borrowed; one borrower at a time, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._descriptor = _NONE

    def keep(self) -> None:
        """Keep one from now on; if there is none left, the next call tries again."""
        with self._lock:
            self._take()

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        """Free one descriptor for the block, which must have closed what it opened when it ends."""
        # Another thread may take the freed descriptor first. Then the block fails as it would have without.
        with self._lock:
            if self._descriptor != _NONE:
                os.close(self._descriptor)
                self._descriptor = _NONE
            try:
                yield
            finally:
                self._take()

    def _take(self) -> None:
        if self._descriptor == _NONE:
            with suppress(OSError):
                self._descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def after_fork(self) -> None:
        """Make a new lock: in a forked child no thread would release the old one."""
        self._lock = threading.Lock()


SPARE = SpareDescriptor()  # the one of this process

os.register_at_fork(after_in_child=SPARE.after_fork)
