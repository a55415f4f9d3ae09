"""SingleFlight: when several threads have the same question, one asks the stores and the others share its result."""

import threading
from collections.abc import Callable
from typing import TypeVar

from leader.errors import NoLeader, Unreachable
from store.clock import Clock

T = TypeVar("T")


class StillAsking(Unreachable):
    """Another thread's question has not ended in time."""


class Flight:
    """One question to the stores, and how it ended."""

    __slots__ = ("answered", "deadline", "error", "over", "started")

    def __init__(self, started: float, deadline: float) -> None:
        self.started = started
        self.deadline = deadline
        self.over: threading.Event | None = None  # made by the first thread that waits: as a rule there is none
        self.answered = False
        self.error: NoLeader | Unreachable | None = None


class SingleFlight:
    """Lets one thread at a time ask about one job."""

    def __init__(self, job: str, clock: Clock) -> None:
        self._job = job
        self._clock = clock
        self._lock = threading.Lock()
        self.flight: Flight | None = None

    def run(self, ask: Callable[[float], T], found: Callable[[], T], timeout: float) -> T:
        """Ask, or wait for another thread's question and return what ``found`` says then, perhaps something newer."""
        # It raises the error of this thread's question, or of one that began no earlier and had as much time.
        started = began = self._clock.now()
        deadline = started + timeout
        while True:
            with self._lock:
                other = self.flight
                if other is None or other.deadline > deadline:  # that one may take longer than there is time
                    own = self.flight = Flight(began, deadline)
                    break
                over = other.over = other.over or threading.Event()
            if not self._clock.wait(over, max(0.0, deadline - self._clock.now())):
                raise StillAsking(
                    f"No store said within {round(timeout, 3):g} s who leads job {self._job!r}: another thread is "
                    "waiting."
                )
            if other.answered:
                return found()
            if (error := _shared_error(other, started, deadline)) is not None:
                raise type(error)(str(error))
            began = self._clock.now()
        try:
            answer = ask(deadline - began)
        except (NoLeader, Unreachable) as error:
            own.error = type(error)(str(error))  # a copy for the others: a traceback belongs to one thread
            raise
        else:
            own.answered = True
            return answer
        finally:
            with self._lock:
                if self.flight is own:
                    self.flight = None
                waited_for = own.over
            if waited_for is not None:
                waited_for.set()

    def forked(self) -> None:
        """Reset in a forked child, where no other thread's question will ever end, and any lock may be held."""
        self._lock, self.flight = threading.Lock(), None


def _shared_error(other: Flight, started: float, deadline: float) -> NoLeader | Unreachable | None:
    """Return how another question ended, if it began no earlier and its silence lasted as long."""
    error = other.error
    if error is None or other.started < started:
        return None
    return error if isinstance(error, NoLeader) or other.deadline >= deadline else None
