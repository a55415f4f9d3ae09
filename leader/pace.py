"""How often a reader may ask HDFS: so that many of them, on many hosts, cost the NameNode a bounded number of lists.

Both are token buckets (J. Turner, "New directions in communications", 1986): what is not used is saved, up to a limit,
so that something new is looked at at once, and only who asks on and on has to wait. No I/O, and no lock: callers have
one.
"""

BURST = 4
"""Lists of one job in a row."""

PAUSE = 2.4
"""Seconds until there is another one. With the burst it is 29 in a minute: fewer than one in 2 s."""

BACK_OFF = 1 / 6
"""The pause is that share of the time since something was new."""


class Bucket:
    """Lets something be done ``rate`` times a second, and ``burst`` times in a row."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self._burst = burst
        self._tokens = burst
        self._at: float | None = None

    def due(self, now: float) -> float:
        """Seconds from now until it may be done: 0 if it may be now."""
        self._fill(now)
        return max(0.0, (1 - self._tokens) / self.rate)

    def take(self, now: float) -> None:
        """It is done now."""
        self._fill(now)
        self._tokens -= 1

    def spend(self, now: float) -> None:
        """Keep nothing of what was saved."""
        self._fill(now)
        self._tokens = min(0.0, self._tokens)

    def give_back(self) -> None:
        """It was not done after all."""
        self._tokens = min(self._burst, self._tokens + 1)

    def _fill(self, now: float) -> None:
        passed = max(0.0, now - self._at) if self._at is not None else 0.0
        self._at = now
        self._tokens = min(self._burst, self._tokens + passed * self.rate)


class Pace:
    """How often HDFS is asked about one job: less and less often while it says the same."""

    def __init__(self, longest: float) -> None:
        """Begin with the whole burst.

        Args:
            longest: seconds between two questions at most, once the burst is used up.
        """
        self._longest = longest
        self._shortest = min(PAUSE, longest)
        self._bucket = Bucket(1 / self._shortest, BURST)
        self._news_at: float | None = None
        self._not_before = float("-inf")

    def due(self, now: float) -> float:
        """Seconds from now until HDFS may be asked: 0 if it may be now."""
        return max(self._bucket.due(now), self._not_before - now)

    def asked(self, now: float) -> None:
        """It is asked now."""
        self._bucket.take(now)

    def answered(self, now: float, *, news: bool) -> None:
        """It has answered; ``news`` if it said something new, or that nobody leads: somebody will soon.

        What was saved is for news. Else all hosts that lost ZooKeeper together would each ask four times at once.
        """
        if news or self._news_at is None:
            self._news_at = now
        if not news:
            self._bucket.spend(now)
        pause = min(self._longest, max(self._shortest, (now - self._news_at) * BACK_OFF))
        self._bucket.rate = 1 / pause

    def failed(self, not_before: float) -> None:
        """It has not answered, and is not asked again before that boot-clock time."""
        self._bucket.give_back()
        self._not_before = not_before

    def hold(self, until: float) -> None:
        """Do not ask before that boot-clock time: what is known is new enough."""
        self._not_before = until
