"""Leaders: returns the leader of a job to clients in any language, at once or when it changes: a long-poll.

The answers are those of this host's agent, so they ask no store. While no store answers, nothing is said.
"""

import asyncio
import json
import math
import zlib
from contextlib import suppress
from typing import Self

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ha.agent.agent import Agent
from ha.api.operations import PREFIX, Operation, encoded
from ha.listening.connections import most_connections
from ha.listening.problems import problem
from ha.listening.shares import Share, Shares
from ha.views.records import LeaderView, leader_view
from leader.errors import InvalidName
from leader.layout.names import check_job
from leader.lookup.answers import Answer
from store.clock import now

MAX_REQUESTS = 256
"""Requests that wait at the same time, but at most half of the server's connections: see :mod:`ha.listening.shares`."""

LONGEST_WAIT_S = 60.0  # seconds that a request may ask for
USUAL_WAIT_S = 30.0  # seconds that a request waits by default
NO_LEADER = "none"  # the version without a leader


class LeaderAnswer(msgspec.Struct, frozen=True):
    """The leader of a job; null without one. The version changes with the leader and with its endpoints."""

    job: str
    version: str
    leader: LeaderView | None


def version_of(answer: Answer | None) -> str:
    """Return a word that changes when the leader or its endpoints do."""
    if answer is None:
        return NO_LEADER
    said = json.dumps([answer.session_id, sorted(answer.endpoints.items())])
    return f"{answer.epoch}-{zlib.crc32(said.encode()):08x}"


class Leaders:
    """The requests that wait; all of it runs in the server's event loop."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._shares = Shares()
        self._closed = False

    def operations(self) -> list[Operation]:
        """Return what can be asked."""
        return [
            Operation(
                f"{PREFIX}/jobs/{{job}}/leader",
                self._leader,
                "Who leads a job: as soon as it is known, and another version than `since` if that is given.",
                LeaderAnswer,
                refusals=(400,),
                query=("since", "wait"),
            )
        ]

    def close(self) -> None:
        """End all requests that wait; from any thread."""
        self._closed = True
        for job in self._agent.subscriptions.jobs:
            self._agent.subscriptions.notify(job)

    async def _leader(self, request: Request) -> Response:
        wait = _seconds(request.query_params.get("wait", str(USUAL_WAIT_S)))
        if wait is None:
            return problem(400, f"wait must be a number of seconds from 0 to {LONGEST_WAIT_S:g}.")
        share = self._share(request)
        if isinstance(share, Response):
            return share
        try:
            return await self._next(request.path_params["job"], request.query_params.get("since", ""), wait)
        finally:
            self._shares.leave(share)

    def _share(self, request: Request) -> Share | Response:
        """Return the share of a request that waits, or a refusal."""
        try:
            job = check_job(request.path_params["job"])
        except InvalidName as error:
            return problem(400, str(error))
        wanted = not self._closed and self._agent.warmer.want(job)
        share = self._shares.take(request, min(MAX_REQUESTS, most_connections() // 2)) if wanted else None
        return problem(503, "Too many ask; come again.", {"Retry-After": "1"}) if share is None else share

    async def _next(self, job: str, since: str, wait: float) -> Response:
        end = now() + wait
        with _News(self._agent, job) as news:
            while True:
                look = self._agent.latest(job)
                over = now() >= end or self._closed
                if look is not None and (over or version_of(look.answer) != since):
                    return encoded(
                        LeaderAnswer(
                            job, version_of(look.answer), None if look.answer is None else leader_view(look.answer)
                        )
                    )
                if over:
                    return problem(503, f"No store says who leads job {job!r}.")
                await news.come(end - now())


class _News:
    """Wakes a coroutine when there may be news of a job."""

    def __init__(self, agent: Agent, job: str) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._subscription = agent.subscriptions.subscribe(job, self._wake)

    def __enter__(self) -> Self:
        self._subscription.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._subscription.__exit__(None, None, None)

    async def come(self, seconds: float) -> None:
        """Wait for news, for at most that long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), max(0.0, seconds))
            self._event.clear()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: no request waits any more
            self._loop.call_soon_threadsafe(self._event.set)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= LONGEST_WAIT_S else None
