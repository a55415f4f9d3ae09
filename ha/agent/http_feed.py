"""The HTTP feed: tells processes in any language of new leaders, by long-poll and as server-sent events.

``GET /v1/jobs/{job}/changes?since=VERSION&wait=SECONDS`` answers as soon as the version is another one, or the time is
over. ``GET /v1/jobs/{job}/events`` never ends. While no store answers, neither says anything.
"""

import asyncio
import json
import math
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Self

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ha.agent.agent import Agent
from ha.listening.limits import most_connections
from ha.listening.problems import problem
from leader.errors import InvalidName
from leader.layout.names import check_job
from leader.lookup.answers import Answer, Look
from store.clock import now

MAX_REQUESTS = 256
"""Long-polls and streams at the same time, but at most half of the server's connections; further ones are told to come
again."""

LONGEST_WAIT_S = 60.0
"""Seconds that a long-poll may ask for."""

USUAL_WAIT_S = 30.0
"""Seconds that a long-poll waits by default."""

COMMENT_EVERY_S = 15.0
"""Seconds after which a silent stream sends a comment, so that no proxy cuts it off."""

NO_LEADER = "none"
"""The version while nobody leads."""


def fields(answer: Answer) -> dict[str, Any]:
    """Return an answer as the fields of a JSON object."""
    return {
        "job": answer.job,
        "epoch": answer.epoch,
        "session_id": answer.session_id,
        "endpoints": dict(answer.endpoints),
        "source": answer.source.value,
        "age_ms": round(answer.age * 1000),
        "verified": answer.verified,
    }


def version_of(answer: Answer | None) -> str:
    """Return a word that changes when the leader or its endpoints do."""
    if answer is None:
        return NO_LEADER
    said = json.dumps([answer.session_id, sorted(answer.endpoints.items())])
    return f"{answer.epoch}-{zlib.crc32(said.encode()):08x}"


class Feed:
    """The routes, and the requests that wait; all of it runs in the server's event loop."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._waiting = 0
        self._closed = False
        self.routes = [
            Route("/v1/jobs/{job}/changes", self._changes),
            Route("/v1/jobs/{job}/events", self._events),
        ]

    def close(self) -> None:
        """End all requests that wait; from any thread."""
        self._closed = True
        for job in self._agent.subscriptions.jobs:
            self._agent.subscriptions.notify(job)

    async def _changes(self, request: Request) -> Response:
        wait = _seconds(request.query_params.get("wait", str(USUAL_WAIT_S)))
        if wait is None:
            return problem(400, f"wait must be a number of seconds from 0 to {LONGEST_WAIT_S:g}.")
        refusal = self._refusal(request.path_params["job"])
        if refusal is not None:
            return refusal
        self._waiting += 1
        try:
            return await self._next(request.path_params["job"], request.query_params.get("since", ""), wait)
        finally:
            self._waiting -= 1

    async def _events(self, request: Request) -> Response:
        job = request.path_params["job"]
        refusal = self._refusal(job)
        return refusal if refusal is not None else _Stream(self, self._stream(job))

    def _refusal(self, job: str) -> Response | None:
        try:
            check_job(job)
        except InvalidName as error:
            return problem(400, str(error))
        most = min(MAX_REQUESTS, most_connections() // 2)
        if self._closed or self._waiting >= most or not self._agent.warmer.want(job):
            return problem(503, "Too many ask; come again.", {"Retry-After": "1"})
        return None

    async def _next(self, job: str, since: str, wait: float) -> Response:
        end = now() + wait
        with _News(self._agent, job) as news:
            while True:
                look = self._agent.latest(job)
                over = now() >= end or self._closed
                if look is not None and (over or version_of(look.answer) != since):
                    leader = fields(look.answer) if look.answer is not None else None
                    return JSONResponse({"job": job, "version": version_of(look.answer), "leader": leader})
                if over:
                    return problem(503, f"No store says who leads job {job!r}.")
                await news.come(end - now())

    async def _stream(self, job: str) -> AsyncIterator[bytes]:
        told = ""
        with _News(self._agent, job) as news:
            while not self._closed:
                look = self._agent.latest(job)
                if look is not None and version_of(look.answer) != told:
                    told = version_of(look.answer)
                    yield _event(look, told)
                if not await news.come(COMMENT_EVERY_S):
                    yield b": still here\n\n"
                if not self._agent.warmer.want(job):
                    return


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

    async def come(self, seconds: float) -> bool:
        """Wait for news, for at most that long; returns whether there may be some."""
        try:
            await asyncio.wait_for(self._event.wait(), max(0.0, seconds))
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: no request waits any more
            self._loop.call_soon_threadsafe(self._event.set)


class _Stream(StreamingResponse):
    """Counts as a waiting request until it ends, whether or not its client reads anything."""

    def __init__(self, feed: Feed, content: AsyncIterator[bytes]) -> None:
        super().__init__(content, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._feed._waiting += 1  # noqa: SLF001  # one class in two
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed._waiting -= 1  # noqa: SLF001  # likewise


def _event(look: Look, version: str) -> bytes:
    if look.answer is None:
        return f"event: nobody\nid: {version}\ndata: null\n\n".encode()
    # JSON in ASCII has no line break in it, whatever an address contains.
    return f"event: leader\nid: {version}\ndata: {json.dumps(fields(look.answer))}\n\n".encode()


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= LONGEST_WAIT_S else None
