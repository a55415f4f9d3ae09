"""Calls of many jobs on one store: a few at a time, and the urgent ones first. No I/O.

A store call has a deadline, and a lease counts from when its renewal was decided. If a thousand jobs called at once,
most calls would be over before they were begun, renewals among them. So they wait here until it is their turn. Each job
has one call under way or waiting: what waits is bounded by the number of jobs.

Who has come furthest goes first. So of a thousand leases to be seized a few are under way at a time, and each takeover,
once begun, is carried through.
"""

import heapq
from collections.abc import Callable
from enum import IntEnum
from itertools import count
from typing import TypeVar

T = TypeVar("T")


class Urgency(IntEnum):
    """What a call is for; the lowest is the most urgent."""

    HOLD = 0
    """The job's lease is held: its time to live is running out."""
    SEIZE = 1
    """A lease is to be seized, whose time to live counts already."""
    LOOK = 2
    """Whatever a standby does besides."""


class Turns:
    """At most so many calls at a time; the others wait, in the order of their urgency, then of their coming."""

    def __init__(self, at_once: int) -> None:
        """Let nobody wait yet; ``at_once`` is how many calls may be under way."""
        self._free = at_once
        self._numbers = count()
        self._waiting: list[tuple[Urgency, int, Callable[[], None]]] = []

    def take(self, urgency: Urgency, call: Callable[[Callable[[T], None]], None], answer: Callable[[T], None]) -> None:
        """Make a call as soon as it is its turn.

        Args:
            urgency: what it is for.
            call: makes it, and has what it is given called exactly once with the answer, not before it returns.
            answer: is called with that answer; what it asks for in turn may go before all that waits.
        """

        def answered(value: T) -> None:
            self._free += 1
            try:
                answer(value)
            finally:
                self._go_on()

        heapq.heappush(self._waiting, (urgency, next(self._numbers), lambda: call(answered)))
        self._go_on()

    def _go_on(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            heapq.heappop(self._waiting)[2]()
