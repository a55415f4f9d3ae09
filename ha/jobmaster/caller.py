"""The caller: sends requests to a job's master within a time-out, and tells one of three outcomes.

    answered    the leader of the session id that was sent has answered while it led
    refused     no master has executed the call, and none will: no leader accepted it in time
    unknown     a master may have executed the call; it is sent again only if the user says that twice does no harm

An attempt that was refused, or that reached no master, is always repeated. First its session id is reported, so that
HDFS is asked who leads. No retry library: workers should not pay for its import, and the stores' answers decide.
"""

import random
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from ha.jobmaster.call_errors import CallRefused, CallUnknown, Lost, NotExecuted
from ha.jobmaster.exchange import Reply, Request, exchange
from ha.jobmaster.master import MASTER_TIMEOUT_S, JobMaster, NoEndpoint, master_of
from ha.jobmaster.security import Security, security_of
from leader.errors import NoLeader, Unreachable
from leader.lookup.answers import Answer
from store.clock import BOOT_CLOCK, Clock

T = TypeVar("T")

FINDER_TIMEOUT_S = 2.0  # seconds of a call for one lookup; as long as other lookups have, which may wait for this one
ATTEMPT_PAUSE_S = 0.1  # seconds, on average, between two attempts at the same leader
REPORT_EVERY_S = 1.0  # seconds after which a leader that goes on refusing is reported again


class Finder(Protocol):
    """Finds the leader: a :class:`ha.Client`, or the client of a Python worker."""

    def leader(self, job: str, timeout: float) -> Answer:
        """Return who leads."""

    def report(self, job: str, session_id: str, timeout: float) -> Answer:
        """Report that this leader refused; return who leads, as HDFS says."""


class Caller:
    """Calls the leader of one job, from any thread; every call has its own connection."""

    def __init__(
        self,
        finder: Finder,
        job: str,
        endpoint: str = "jobmaster",
        clock: Clock = BOOT_CLOCK,
        security: Security | None = None,
    ) -> None:
        """Start without connections.

        Args:
            finder: finds the leader, such as ``ha.connect()``; not closed by the caller.
            job: name of the job.
            endpoint: which of the leader's addresses; it must be ``host:port``, ``http://host:port/prefix`` or
                ``https://host:port/prefix``.
            clock: the host's boot clock, unless in a test.
            security: of TLS and tokens; default: what the settings of a :class:`ha.Client` say, for others none.
        """
        self._finder = finder
        self._job = job
        self._endpoint = endpoint
        self._clock = clock
        self._security = security or security_of(getattr(finder, "settings", None))

    def http(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float = MASTER_TIMEOUT_S,
        idempotent: bool = False,
    ) -> Reply:
        """Send an HTTP request with the leader's session id, and return the leader's answer.

        Args:
            method: such as ``POST``.
            path: with the query, escaped as in a URL.
            body: empty for none.
            headers: further ones.
            timeout: seconds for the whole call.
            idempotent: whether executing it twice does no harm: then it is sent again when an answer was lost.

        Raises:
            CallRefused: no master has executed it, and none will.
            CallUnknown: a master may have executed it.
            InvalidName: the job or the leader's address is not one.
            ValueError: the method, path or a header cannot be sent.
        """
        request = Request(method, path, body, headers or {})
        if self._security.token and any(each.lower() == "authorization" for each in request.headers):
            raise ValueError("The header 'Authorization' cannot be sent: jobmaster_token has its place.")
        return self._call(
            lambda master, deadline: exchange(master, request, deadline, self._security), timeout, idempotent=idempotent
        )

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
                f"It is not known whether the master of job {self._job!r} has executed the call: {cause}. "
                "Ask it, or call again if twice does no harm."
            )
        raise CallRefused(f"No master of job {self._job!r} has executed the call within {timeout:g} s: {cause}.")


class _Search:
    """Chooses the leader for the next attempt."""

    def __init__(self, finder: Finder, job: str, deadline: float, clock: Clock) -> None:
        self._finder = finder
        self._job = job
        self._deadline = deadline
        self._clock = clock
        self._tried = ""
        self._report_at = float("-inf")

    def over(self) -> bool:
        """Whether the time is over."""
        return self._clock.now() >= self._deadline

    def next(self) -> Answer:
        """Return who leads. The leader of the last attempt is reported first, and gets a moment if it still leads."""
        now = self._clock.now()
        timeout = min(FINDER_TIMEOUT_S, self._deadline - now)
        if not self._tried or now < self._report_at:
            answer = self._finder.leader(self._job, timeout)
        else:
            self._report_at = now + REPORT_EVERY_S
            answer = self._finder.report(self._job, self._tried, timeout)
        if answer.session_id == self._tried:
            self.pause()
        else:
            self._tried, self._report_at = answer.session_id, float("-inf")
        return answer

    def pause(self) -> None:
        """Wait a moment, but not beyond the deadline."""
        pause = ATTEMPT_PAUSE_S * random.uniform(0.5, 1.5)  # noqa: S311  # spreads callers, hides nothing
        self._clock.sleep(max(0.0, min(pause, self._deadline - self._clock.now())))
