"""A file that may change: its content, read anew when it is another one than before."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

Mark = tuple[int, int, int]
"""Tells two versions of a file apart: inode, size, time of the last change."""


class ChangingFiles(Generic[T]):
    """The joint content of some small files on this host; any thread may read it."""

    def __init__(self, paths: tuple[str, ...], load: Callable[[], T]) -> None:
        """Load it.

        Args:
            paths: of the files whose changes count.
            load: reads them; raises ``OSError`` or ``ValueError`` if that is not possible.

        Raises:
            OSError, ValueError: they cannot be read now.
        """
        self._paths, self._load = paths, load
        self._lock = threading.Lock()
        self._marks = self._look()
        self._value = load()

    def value(self) -> T:
        """Return what they say now.

        Raises:
            OSError, ValueError: they have changed and cannot be read; the next call tries again.
        """
        with self._lock:
            marks = self._look()
            if marks != self._marks:
                self._value = self._load()
                self._marks = marks
            return self._value

    def last(self) -> T:
        """Return what they said when they could be read last."""
        return self._value

    def _look(self) -> tuple[Mark, ...]:
        found = [Path(each).stat() for each in self._paths]
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)
