"""Rate limits for questions to HDFS, so that many readers on many hosts cost the NameNode few lists.

The limits are token buckets (J. Turner, "New directions in communications", 1986). Unused tokens are saved up to a
limit, so a reader learns of something new at once, and only a reader that keeps asking has to wait.
"""

import random
import threading

from store.clock import Clock

JOB_BURST = 4  # lists of one job in a row
JOB_PAUSE_S = 2.4  # seconds until the next list after a burst; together 29 lists in a minute, fewer than one in 2 s
NEWS_SHARE = 1 / 6  # the pause is this share of the time since the last news
PROCESS_RATE, PROCESS_BURST = 20.0, 100.0  # lists a second, and lists in a row, of all jobs of one process

VERIFICATION_RATE, VERIFICATION_BURST = 100.0, 1000.0
"""The same for records of ZooKeeper that HDFS has yet to confirm: a first look at many jobs must not wait."""

LEAST_ASKED = 3  # HDFS is asked at least this often in an audit interval about a job that ZooKeeper does not know
SPREAD_S = 2.4  # seconds over which readers spread a question to HDFS that they would otherwise ask together


class Jitter:
    """Random durations, so that hosts that hear the same news together do not act together."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def around(self, seconds: float) -> float:
        """Return ``seconds``, give or take a fifth."""
        return seconds * self._rng.uniform(0.8, 1.2)

    def within(self, seconds: float) -> float:
        """Return a duration between 0 and ``seconds``."""
        return self._rng.uniform(0.0, seconds)


class TokenBucket:
    """Allows ``rate`` actions a second, and ``burst`` actions in a row. Its users hold a lock."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self._burst = burst
        self._tokens = burst
        self._filled_at: float | None = None

    def wait(self, now: float) -> float:
        """Return the seconds until there is a token; 0 if there is one now."""
        self._fill(now)
        return max(0.0, (1 - self._tokens) / self.rate)

    def take(self, now: float) -> None:
        """Take a token."""
        self._fill(now)
        self._tokens -= 1

    def drain(self, now: float) -> None:
        """Drop all saved tokens."""
        self._fill(now)
        self._tokens = min(0.0, self._tokens)

    def give_back(self) -> None:
        """Return a token that was taken in vain."""
        self._tokens = min(self._burst, self._tokens + 1)

    def _fill(self, now: float) -> None:
        passed = max(0.0, now - self._filled_at) if self._filled_at is not None else 0.0
        self._filled_at = now
        self._tokens = min(self._burst, self._tokens + passed * self.rate)


class JobRateLimit:
    """The limit of one job: HDFS is asked at growing intervals while it says the same."""

    def __init__(self, longest_pause: float) -> None:
        """Begin with the whole burst; later at most ``longest_pause`` seconds lie between two questions."""
        self._longest = longest_pause
        self._shortest = min(JOB_PAUSE_S, longest_pause)
        self._bucket = TokenBucket(1 / self._shortest, JOB_BURST)
        self._news_at: float | None = None
        self._not_before = float("-inf")

    def wait(self, now: float) -> float:
        """Return the seconds until HDFS may be asked; 0 if it may be asked now."""
        return max(self._bucket.wait(now), self._not_before - now)

    def take(self, now: float) -> None:
        """Count a question that is asked now."""
        self._bucket.take(now)

    def answered(self, now: float, *, news: bool) -> None:
        """Adapt the rate after an answer; ``news`` if it was new, or if there is no leader yet."""
        # Saved tokens are for news. Otherwise all hosts that lost ZooKeeper together would each ask four times at once.
        if news or self._news_at is None:
            self._news_at = now
        if not news:
            self._bucket.drain(now)
        pause = min(self._longest, max(self._shortest, (now - self._news_at) * NEWS_SHARE))
        self._bucket.rate = 1 / pause

    def failed(self, not_before: float = float("-inf")) -> None:
        """Give the token back after a question without an answer, and back off until that boot-clock time."""
        self._bucket.give_back()
        self._not_before = not_before

    def hold(self, until: float) -> None:
        """Do not ask before that boot-clock time: the view is new enough."""
        self._not_before = until


class HdfsRateLimit:
    """Decides when one process may ask HDFS: each question needs a token of its job and one of the process."""

    def __init__(
        self,
        clock: Clock,  # the host's boot clock, unless in a simulation
        longest_pause: float,  # seconds; see `JobRateLimit`
        *,
        rate: float = PROCESS_RATE,  # questions a second of all jobs together
        burst: float = PROCESS_BURST,  # questions in a row of all jobs together
        unlimited: bool = False,  # for a local directory, where no NameNode can be asked too often
    ) -> None:
        self._clock = clock
        self._longest_pause = longest_pause
        self._unlimited = unlimited
        self._process = TokenBucket(rate, burst)
        self._lock = threading.Lock()

    def of_job(self) -> JobRateLimit:
        """Return the limit of one more job."""
        return JobRateLimit(self._longest_pause)

    def wait(self, job: JobRateLimit) -> float:
        """Return the seconds until HDFS may be asked about this job; takes nothing."""
        if self._unlimited:
            return 0.0
        with self._lock:
            now = self._clock.now()
            return max(job.wait(now), self._process.wait(now))

    def try_acquire(self, job: JobRateLimit) -> bool:
        """Take the tokens for a question that is asked now; returns False, and takes none, if one is missing."""
        if self._unlimited:
            return True
        with self._lock:
            now = self._clock.now()
            if max(job.wait(now), self._process.wait(now)) > 0:
                return False
            job.take(now)
            self._process.take(now)
            return True

    def forked(self) -> None:
        """Make a new lock in a forked child: a thread that does not exist here may hold the old one."""
        self._lock = threading.Lock()


class AuditSchedule:
    """The times of background comparisons of HDFS with ZooKeeper. Its user holds a lock.

    The first audit comes soon after the first answer, if that could not be compared with anything. The next comes at a
    random time, so that hosts that began together do not ask together. From then on one comes every ``interval``.
    """

    def __init__(self, interval: float, jitter: Jitter) -> None:
        self._interval = interval
        self._jitter = jitter
        self._due_at = float("-inf")
        self._planned = 0

    def wait(self, now: float) -> float:
        """Return the seconds until an audit is due; negative if it is overdue."""
        return self._due_at - now

    def begin(self, now: float) -> bool:
        """Plan the next audit if one is due; returns whether to make one now."""
        if now < self._due_at:
            return False
        match self._planned:
            case 0:
                self._due_at = now + self._jitter.within(min(SPREAD_S, self._interval))
            case _:
                self._plan_after(now)
        self._planned += 1
        return self._planned > 1

    def count(self, asked_at: float) -> None:
        """Count a lookup that asked HDFS itself. Otherwise all hosts would audit together when ZooKeeper is back."""
        if self._planned <= 1 or self._due_at <= asked_at:
            self._plan_after(asked_at)
        self._planned = max(self._planned, 2)

    def hasten(self, when: float) -> None:
        """Make the first look after that time audit, at the latest."""
        self._due_at = min(self._due_at, when) if self._planned else when
        self._planned = max(self._planned, 1)

    def _plan_after(self, now: float) -> None:
        if self._planned <= 1:
            self._due_at = now + self._interval - self._jitter.within(self._interval / 2)
        else:
            self._due_at += self._interval * (1 + (now - self._due_at) // self._interval)
