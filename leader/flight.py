"""One at a time: of several threads that look for the same thing, one does, and the others take what it has found."""

import threading
from collections.abc import Callable
from typing import TypeVar

from leader.errors import NoLeader, Unreachable
from store.clock import Clock

T = TypeVar("T")


class Flight:
    """One look at the stores, whose end other threads wait for."""

    __slots__ = ("answered", "deadline", "error", "over", "started")

    def __init__(self, started: float, deadline: float) -> None:
        self.started = started
        self.deadline = deadline
        self.over: threading.Event | None = None
        """Made by the first thread that waits: as a rule there is none."""
        self.answered = False
        self.error: NoLeader | Unreachable | None = None


class SingleFlight:
    """Has one thread look; for one job."""

    def __init__(self, job: str, clock: Clock) -> None:
        self._job = job
        self._clock = clock
        self._lock = threading.Lock()
        self.flight: Flight | None = None

    def run(self, look: Callable[[float], T], found: Callable[[], T], timeout: float) -> T:
        """Look, or wait for another thread's look.

        Args:
            look: does it, within so many seconds.
            found: what is known after another thread's look; by now it may be newer than what that has found.
            timeout: seconds.

        Raises:
            NoLeader, Unreachable: from the look, or another's that began no earlier and was given as much time.
        """
        started = began = self._clock.now()
        deadline = started + timeout
        while True:
            with self._lock:
                other = self.flight
                if other is None:
                    own = self.flight = Flight(began, deadline)
                    break
                over = other.over = other.over or threading.Event()
            if not self._clock.wait(over, max(0.0, deadline - self._clock.now())):
                raise Unreachable(
                    f"No store said within {round(timeout, 3):g} s who leads job {self._job!r}: another thread is "
                    "waiting."
                )
            if other.answered:
                return found()
            error = other.error
            if (
                error is not None
                and other.started >= started
                and (isinstance(error, NoLeader) or other.deadline >= deadline)
            ):
                raise type(error)(str(error))
            began = self._clock.now()
        try:
            answer = look(deadline - began)
        except (NoLeader, Unreachable) as error:
            own.error = type(error)(str(error))  # the others' own: a traceback is one thread's
            raise
        else:
            own.answered = True
            return answer
        finally:
            with self._lock:
                self.flight = None
                waited_for = own.over
            if waited_for is not None:
                waited_for.set()

    def forked(self) -> None:
        """No other thread's look will ever end in this process, and any lock may be held."""
        self._lock, self.flight = threading.Lock(), None
