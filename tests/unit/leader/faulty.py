"""FaultyFiles: a real directory behind a network that loses answers and executes changes late."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from store.bounded import BoundedFiles
from store.errors import ConnectionLost, DeadlineExceeded, NotWritable, StoreError
from store.files import Entry
from store.local import LocalFiles
from tests.patience import PATIENCE_S

OK, LOST, LATE, DROPPED, REFUSED = "ok", "lost", "late", "dropped", "refused"
"""Fates of a change: as it should be; done, but the answer is lost; not done yet; never done; refused."""


class FaultyFiles(LocalFiles):
    """Every change takes the next fate from ``fates``; :meth:`catch_up` executes the late ones."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, durable=False)
        self.fates: deque[str] = deque()
        self.late: deque[Callable[[], None]] = deque()
        self.unreachable = False
        self.before_list: Callable[[str], object] = bool
        self.before_change: Callable[[], None] | None = None
        self._lock = threading.RLock()

    def list(self, path: str) -> list[Entry]:
        self.before_list(path)
        if self.unreachable:
            raise ConnectionLost("No answer.")
        return super().list(path)

    def rename(self, source: str, destination: str) -> None:
        self._meet(lambda: LocalFiles.rename(self, source, destination))

    def make_directory(self, path: str) -> None:
        self._meet(lambda: LocalFiles.make_directory(self, path))

    def catch_up(self) -> None:
        """Execute the late changes; nobody hears of a refusal then."""
        while self.late:
            with suppress(StoreError):
                self.late.popleft()()

    def _meet(self, change: Callable[[], None]) -> None:
        if self.unreachable:
            raise ConnectionLost("No answer.")
        if self.before_change is not None:
            meanwhile, self.before_change = self.before_change, None
            meanwhile()
        with self._lock:
            fate = self.fates.popleft() if self.fates else OK
        match fate:
            case "late":
                self.late.append(change)
                raise DeadlineExceeded("No answer in time.")
            case "dropped":
                raise DeadlineExceeded("No answer in time.")
            case "refused":
                raise NotWritable("Safe mode.")
            case _:
                change()
        if fate == LOST:
            raise ConnectionLost("The answer went missing.")


class Place:
    """A root directory with a driver for the test's own arrangements and a faulty one for the code under test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.direct = LocalFiles(root, durable=False)
        self.faulty = FaultyFiles(root)
        self.files = BoundedFiles(lambda: self.faulty, uri=f"file://{root}")

    def names(self, path: str) -> list[str]:
        return sorted(entry.name for entry in self.direct.list(path))


def opened(root: Path) -> Iterator[Place]:
    """Yield a place and close it afterwards; for fixtures."""
    place = Place(root)
    yield place
    place.files.close()


def hanging(began: threading.Event, until: threading.Event) -> Callable[[str], None]:
    """Return what a list does first that hangs; for ``before_list``."""

    def hang(_: str) -> None:
        began.set()
        until.wait(PATIENCE_S)

    return hang


def in_threads(count: int, work: Callable[[int], Any], seconds: float = PATIENCE_S) -> list[Any]:
    """Do the work in that many threads at once; return each thread's result or error."""
    results: list[Any] = [None] * count
    barrier = threading.Barrier(count, timeout=seconds)

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = work(number)
        except Exception as error:  # noqa: BLE001  # the test looks at it
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive()
    return results
