"""Ticking: a clock that advances only while somebody waits, by the time waited."""

import threading

from store.clock import now


class Ticking:
    """Starts at the present time of the boot clock; an event that is set ends a wait at once."""

    def __init__(self) -> None:
        self.at = self.began = now()

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if not event.is_set():
            self.at += seconds
        return event.is_set()


class Hand(Ticking):
    def __init__(self) -> None:
        self.at = self.began = 1000.0

    def wait(self, event: threading.Event, seconds: float) -> bool:
        raise AssertionError(f"nobody waits here, for {event}, {seconds} s")
