"""Calls to a job's master that end in time, reach the leader that they were meant for, and say what became of them.

    answered    the leader of the session id that was sent has answered while it led
    refused     nobody has executed it, and nobody will: no leader accepted it in time
    unknown     somebody may have executed it; it is not sent again, unless the caller says that twice does no harm

An attempt that was refused, or that reached nobody, is always tried again: first HDFS is asked who leads, by a report
of the session id that failed. No retry library: workers should not pay for its import, and what to do next depends on
the stores' answers.
"""

import random
import socket
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from ha.jobmaster.errors import CallRefused, CallUnknown, Lost, NotExecuted
from ha.jobmaster.exchange import Reply, Request, exchange
from ha.jobmaster.line import open_line
from ha.jobmaster.master import JobMaster, NoEndpoint, master_of
from leader.answers import Answer
from leader.errors import NoLeader, Unreachable
from store.clock import BOOT_CLOCK, Clock

T = TypeVar("T")

TIMEOUT = 10.0
"""Seconds for a call, all attempts and lookups included; enough for a failover after a crash."""

LOOKUP_TIMEOUT = 2.0
"""Seconds of it for one lookup; as long as other lookups have that may wait for this one."""

PAUSE = 0.1
"""Seconds, on average, between two attempts at the same leader."""

REPORT_AGAIN = 1.0
"""Seconds after which a leader that goes on refusing is reported again."""


class Finder(Protocol):
    """Who leads: a :class:`ha.Client`, or what a Python worker knows."""

    def leader(self, job: str, timeout: float) -> Answer:
        """Return who leads."""

    def report(self, job: str, session_id: str, timeout: float) -> Answer:
        """That leader refused; return who leads, asked of HDFS."""


class Caller:
    """Calls the leader of one job, from any thread; every call has a connection of its own."""

    def __init__(self, finder: Finder, job: str, endpoint: str = "jobmaster", clock: Clock = BOOT_CLOCK) -> None:
        """Call nobody yet.

        Args:
            finder: knows who leads, such as ``ha.connect()``; closed by whoever made it.
            job: the job's name.
            endpoint: which of the leader's addresses; it must be ``host:port`` or ``http://host:port/prefix``.
            clock: the host's boot clock, unless in a test.
        """
        self._finder = finder
        self._job = job
        self._endpoint = endpoint
        self._clock = clock

    def http(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float = TIMEOUT,
        idempotent: bool = False,
    ) -> Reply:
        """Send an HTTP request with the leader's session id, and return the leader's answer.

        Args:
            method: such as ``POST``.
            path: with the query, escaped as in a URL.
            body: empty for none.
            headers: further ones.
            timeout: seconds for all of it.
            idempotent: whether to execute it twice does no harm: then it is sent again when an answer was lost.

        Raises:
            CallRefused: nobody has executed it, and nobody will.
            CallUnknown: somebody may have executed it.
            InvalidName: the job or the leader's address is not one.
            ValueError: the method, path or a header cannot be sent.
        """
        request = Request(method, path, body, headers or {})
        return self._call(lambda master, deadline: exchange(master, request, deadline), timeout, idempotent=idempotent)

    def connect(self, *, timeout: float = TIMEOUT) -> socket.socket:
        """Return a TCP connection that the leader has accepted by :func:`ha.jobmaster.admit`; yours to close.

        Args:
            timeout: seconds for all of it, and afterwards for each operation on the connection.

        Raises:
            CallRefused: no leader accepted in time.
            InvalidName: the job or the leader's address is not one.
        """
        return self._call(lambda master, deadline: open_line(master, deadline, timeout), timeout, idempotent=True)

    def _call(self, attempt: Callable[[JobMaster, float], T], timeout: float, *, idempotent: bool) -> T:
        deadline = self._clock.now() + timeout
        search = _Search(self._finder, self._job, deadline, self._clock)
        doubt, cause = False, "there was no time"
        while not search.over():
            try:
                answer = search.next()
                if search.over():
                    break
                return attempt(master_of(answer, self._endpoint), deadline)
            except NotExecuted as error:
                cause = f"{error}"
                if error.in_vain:
                    break
            except Lost as error:
                doubt, cause = True, f"{error}"
                if not idempotent:
                    break
            except (NoLeader, NoEndpoint, Unreachable) as error:
                cause = f"{error}".rstrip(".")
                search.pause()
        if doubt:
            raise CallUnknown(
                f"Whether the master of job {self._job!r} has executed the call is not known: {cause}. Ask it, or call "
                "again if twice does no harm."
            )
        raise CallRefused(f"No master of job {self._job!r} has executed the call within {timeout:g} s: {cause}.")


class _Search:
    """Whom to try next, if whoever was tried last did not accept."""

    def __init__(self, finder: Finder, job: str, deadline: float, clock: Clock) -> None:
        self._finder = finder
        self._job = job
        self._deadline = deadline
        self._clock = clock
        self._tried = ""
        self._report_at = float("-inf")

    def over(self) -> bool:
        """Whether the time is."""
        return self._clock.now() >= self._deadline

    def next(self) -> Answer:
        """Return who leads; who was tried last is reported first, and given a moment if it leads still."""
        now = self._clock.now()
        timeout = min(LOOKUP_TIMEOUT, self._deadline - now)
        if not self._tried or now < self._report_at:
            answer = self._finder.leader(self._job, timeout)
        else:
            self._report_at = now + REPORT_AGAIN
            answer = self._finder.report(self._job, self._tried, timeout)
        if answer.session_id == self._tried:
            self.pause()
        else:
            self._tried, self._report_at = answer.session_id, float("-inf")
        return answer

    def pause(self) -> None:
        """Wait a moment, and not beyond the deadline."""
        pause = PAUSE * random.uniform(0.5, 1.5)  # noqa: S311  # spreads callers, hides nothing
        self._clock.sleep(max(0.0, min(pause, self._deadline - self._clock.now())))
