"""LetterBudget: how many dead letters are tolerated, counted as by Flink's restart strategy ``failure-rate``. Pure."""

from collections import deque

from leader.errors import InvalidSettings


class LetterBudget:
    """Tolerates dead letters as long as no interval has more than its maximum."""

    def __init__(self, max_failures_per_interval: int, failure_rate_interval: float) -> None:
        """Begin without a dead letter."""
        # max_failures_per_interval: dead letters that are tolerated; 0 tolerates none.
        # failure_rate_interval: seconds.
        # InvalidSettings: one of them is out of range.
        if max_failures_per_interval < 0:
            raise InvalidSettings(f"max_failures_per_interval is {max_failures_per_interval}: it must be at least 0.")
        if not 0 < failure_rate_interval < float("inf"):
            raise InvalidSettings(f"failure_rate_interval is {failure_rate_interval:g} s: it must be more than 0.")
        self._most, self._interval = max_failures_per_interval, failure_rate_interval
        self._spent: deque[tuple[float, int]] = deque()

    def left(self, at: float) -> int:
        """Return how many more are tolerated now."""
        while self._spent and at - self._spent[0][0] > self._interval:
            self._spent.popleft()
        return self._most - sum(count for _, count in self._spent)

    def spend(self, count: int, at: float) -> None:
        """Take note of dead letters that were published."""
        if count:
            self._spent.append((at, count))
