"""Observed: the values of a function over time."""

import threading
from collections.abc import Callable
from typing import Self

from ha.errors import LeaderError, StoreError
from tests.limits import joined


class Observed:
    """Polls a function on its own thread while the block lasts, and once at its end; keeps every value that is new."""

    def __init__(self, question: Callable[[], str], every: float = 0.02) -> None:
        self.values: list[str] = []
        self._question = question
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observed")

    def __enter__(self) -> Self:
        self._look()  # on a busy machine the thread's first look may come late
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        joined(self._thread)

    def _run(self) -> None:
        ends = False
        while not ends:
            ends = self._stop.wait(self._every)
            self._look()

    def _look(self) -> None:
        try:
            value = self._question()
        except (LeaderError, StoreError):  # an error is no value
            return
        if self.values[-1:] != [value]:
            self.values.append(value)
