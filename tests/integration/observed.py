"""What a value was over time."""

import threading
from collections.abc import Callable
from typing import Self

from ha.errors import LeaderError, StoreError


class Observed:
    """Asks from a thread of its own while the block lasts, and keeps every value that differs from the one before."""

    def __init__(self, question: Callable[[], str], every: float = 0.02) -> None:
        self.values: list[str] = []
        self._question = question
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observed")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                value = self._question()
            except (LeaderError, StoreError):  # no answer is no value
                continue
            if self.values[-1:] != [value]:
                self.values.append(value)
