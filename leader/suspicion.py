"""Whether the process that holds a lease is still there: one open connection to it, and what its end means. No I/O.

A process that dies lets go of its connections, and its host refuses the next one: that takes milliseconds, and its
ZooKeeper session lives on for seconds. Only this counts, in this order, for one process:

1. it has greeted on this very address, as the process that it is;
2. that connection broke: an end or a reset, which a process that dies sends, and much else does too;
3. soon after, its host refuses a connection, or another process greets there: nobody of that name listens any more.

Silence means nothing, however long: a process that is paused is silent, so is one that is cut off. A refusal by a host
that has never shown the process means nothing either: the address may lead somewhere else.
"""

from collections.abc import Callable

from leader import whereabouts
from leader.environment import Exchange, Sign, Timer
from leader.whereabouts import Whereabouts

Gone = Callable[[str], None]
"""Is told the token whose process is gone."""

FIRST_RETRY = 0.02
"""Seconds until the first call after a connection broke; at each further one twice as long."""

SLOWEST_RETRY = 30.0
"""Seconds between two calls to somebody who does not answer, at most."""

STEADY = 1.0
"""Seconds that a connection has to last before its end is called back quickly: who hangs up at once is not hurried."""


class Watch:
    """A connection to one process, made again and again; says once that the process is gone, and ends with that."""

    def __init__(
        self,
        exchange: Exchange,
        where: Whereabouts,
        window: float,
        jitter: Callable[[], float],
        gone: Callable[[], None],
    ) -> None:
        """Call.

        Args:
            exchange: connects.
            where: the process.
            window: seconds after a connection broke in which a refusal counts, because addresses move from host to
                host; and after which another one is made beside a connection that holds, because that may be broken
                at the other end only, also before it was greeted on. Whichever is greeted on last is kept.
            jitter: gives a random number from 0 to 1, so that the standbys of a process do not call all at once.
            gone: called at most once.
        """
        self._exchange, self._where, self._window = exchange, where, window
        self._jitter, self._gone = jitter, gone
        self._line: _Call | None = None
        self._renewal: _Call | None = None
        self._timer: Timer | None = None
        self._met = False
        self._heard_at = float("-inf")
        self._broke_at: float | None = None
        self._tries = 0
        self._call()

    def close(self) -> None:
        """Hang up; nothing is said any more."""
        for each in (self._line, self._renewal):
            if each is not None:
                each.close()
        self._line = self._renewal = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _call(self) -> None:
        self._line = _Call(self._exchange, self._where, self._heard)
        self._in(self._window, self._renew)

    def _renew(self) -> None:
        if self._renewal is not None:
            self._renewal.close()
        self._renewal = _Call(self._exchange, self._where, self._heard)
        self._in(self._window, self._renew)

    def _heard(self, call: "_Call", sign: Sign) -> None:
        now = self._exchange.now()
        if call is self._renewal:
            self._renewal = None
            if sign is Sign.ITSELF and self._line is not None:
                self._lasted(now)
                self._line.close()
                self._line = call
        elif sign is not Sign.ITSELF:
            self._ended(sign, now)
            return
        if sign is Sign.ITSELF:
            self._met, self._heard_at, self._broke_at = True, now, None

    def _ended(self, sign: Sign, now: float) -> None:
        self.close()
        if self._met and self._broke_at is None:
            self._broke_at = now
            self._lasted(now)
        elif sign in (Sign.REFUSED, Sign.ANOTHER) and self._broke_at is not None:
            if now - self._broke_at <= self._window:
                self._gone()
                return
            self._met, self._broke_at = False, None
        self._in(min(SLOWEST_RETRY, FIRST_RETRY * 2.0**self._tries), self._call)
        self._tries = min(self._tries + 1, 30)

    def _lasted(self, now: float) -> None:
        """A connection ends, or makes room for its renewal: the next one is called back quickly, if it was steady."""
        if now - self._heard_at >= STEADY:
            self._tries = 0

    def _in(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        seconds *= 0.5 + self._jitter()
        self._timer = self._exchange.call_at(self._exchange.now() + seconds, then)


class _Call:
    """One connection, which says of itself what is learnt by it."""

    def __init__(self, exchange: Exchange, where: Whereabouts, heard: Callable[["_Call", Sign], None]) -> None:
        self._line = exchange.call(where, lambda sign: heard(self, sign))

    def close(self) -> None:
        self._line.close()


class Suspicion:
    """One watch for each process, whatever the number of jobs that it leads."""

    def __init__(self, exchange: Exchange, window: float, jitter: Callable[[], float]) -> None:
        """Watch nobody yet; see :class:`Watch` for the arguments."""
        self._exchange, self._window, self._jitter = exchange, window, jitter
        self._watches: dict[str, Watch] = {}
        self._followers: dict[str, list[Gone]] = {}

    def follow(self, token: str, about: bytes, gone: Gone) -> None:
        """Tell from now on if the process that the token attests is gone; never, if it does not say where it is.

        Who comes once it is gone is not told: somebody who is granted a lease after that is not gone at all.

        Args:
            token: names the node that attests.
            about: the node's data.
            gone: is told, on the exchange's thread, and never before this returns.
        """
        followers = self._followers.setdefault(token, [])
        where = whereabouts.decode(about)
        if not followers and where is not None:
            tell = lambda: self._tell(token)  # noqa: E731  # the token's, for as long as the watch lasts
            self._watches[token] = Watch(self._exchange, where, self._window, self._jitter, tell)
        followers.append(gone)

    def leave(self, token: str, gone: Gone) -> None:
        """Tell no more; the connection is closed when nobody follows."""
        followers = self._followers[token]
        followers.remove(gone)
        if not followers:
            del self._followers[token]
            if (watch := self._watches.pop(token, None)) is not None:
                watch.close()

    def _tell(self, token: str) -> None:
        for gone in list(self._followers[token]):
            gone(token)
