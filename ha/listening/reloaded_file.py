"""A file that is re-read when it changes."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

Mark = tuple[int, int, int]  # tells two versions of a file apart: inode, size, time of the last change


class ChangingFiles(Generic[T]):
    """The joint content of some small files on this host; any thread may read it."""

    def __init__(self, paths: tuple[str, ...], load: Callable[[], T]) -> None:
        """Load the files; ``load`` raises ``OSError`` or ``ValueError`` if they cannot be read."""
        self._paths, self._load = paths, load
        self._lock = threading.Lock()
        self._marks = self._look()
        self._value = load()

    def value(self) -> T:
        """Return what they say now. If they have changed and cannot be read, ``load`` raises again at each call."""
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
