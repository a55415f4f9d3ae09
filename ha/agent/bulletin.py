"""Tells whoever waits for news of a job that there may be some; they look for themselves what it is."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Bulletin:
    """Who waits for which job; any thread may use it."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[Callable[[], None]]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def follow(self, job: str, news: Callable[[], None]) -> Iterator[None]:
        """Have ``news`` called after every look at the job, on whatever thread; it must not block."""
        with self._lock:
            self._waiting.setdefault(job, set()).add(news)
        try:
            yield
        finally:
            with self._lock:
                self._waiting[job].discard(news)
                if not self._waiting[job]:
                    del self._waiting[job]

    def tell(self, job: str) -> None:
        """There may be news of this job."""
        with self._lock:
            waiting = list(self._waiting.get(job, ()))
        for news in waiting:
            news()

    @property
    def jobs(self) -> list[str]:
        """The jobs that somebody waits for."""
        with self._lock:
            return list(self._waiting)
