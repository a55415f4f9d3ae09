"""Events: a stream that says when a job changes, for pages and scripts that show it (server-sent events).

    event: job        data: the job at a glance, as at ``/api/v1/jobs/{job}``; first for every job, then for each change
    event: gone       data: {"job": its name}
    event: jobs       data: {"count": how many jobs there are, "files", "zookeeper": the settings that say where}; after
                      the first look, and when the number changes
    event: changed    data: {"job": its name, "parts": which of its resources have changed}; in the stream of one job
    event: trouble    data: a sentence: the stores do not answer, or the job is gone
    event: mended     data: null; they answer again

The stores are asked while somebody listens, and once for all who do.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ha.api.operations import AGAIN_S, PREFIX, Operation
from ha.api.process import ApiStores
from ha.api.reads import Reads, Shared
from ha.listening.connections import most_connections
from ha.listening.problems import problem
from ha.listening.shares import EventStream, Share, Shares
from ha.views.jobs import JobSummary, summary
from ha.views.leases import Leases
from leader.errors import InvalidName, LeaderError
from leader.job.admin import JobAdmin
from leader.layout.names import CHECKPOINTS, EXCEPTIONS, GRAPH, HISTORY, check_job
from store.clock import now
from store.errors import StoreError

T = TypeVar("T")

Content = Callable[[Share], AsyncIterator[bytes]]

TICK_S = 1.0  # seconds between two looks for news; what is shared asks the stores less often
COMMENT_EVERY_S = 15.0  # seconds after which a silent stream sends a comment, so that no proxy cuts it off

MOST = 64
"""Streams at the same time, but at most a quarter of the server's connections. A further one ends the oldest stream of
the host and token that have the most, or is told to come again if it would then have as many itself."""

THREADS = 4
"""Streams that look at the same time. Others wait without a thread, so that probes always find one."""

PARTS = {"queries": GRAPH, "exceptions": EXCEPTIONS, "history": HISTORY, "checkpoints": CHECKPOINTS}
"""The resources of a job, and the folder that each is made from."""

Look = tuple[JobSummary, dict[str, int]]
"""A job at a glance, and for each of its parts a number that changes when the part does."""


class Events:
    """All streams; their own parts run in the server's event loop."""

    def __init__(self, stores: ApiStores, reads: Reads) -> None:
        """Begin with none."""
        self._stores, self._reads = stores, reads
        self._shares = Shares()
        self._closed = False
        self._turn = asyncio.Semaphore(THREADS)
        self._watched: dict[str, list[Any]] = {}
        """For each job that is watched, how many streams do, and what they share."""

    def close(self) -> None:
        """End all streams, within a tick; from any thread."""
        self._closed = True

    def operations(self) -> list[Operation]:
        """Return the streams."""
        return [
            Operation(f"{PREFIX}/events", self._all, "A stream of changes of all jobs.", None),
            Operation(
                f"{PREFIX}/jobs/{{job}}/events", self._one, "A stream of changes of one job.", None, refusals=(400,)
            ),
        ]

    async def _all(self, request: Request) -> Response:
        return self._answer(request, self._of_all)

    async def _one(self, request: Request) -> Response:
        try:
            return self._answer(request, partial(self._of, check_job(request.path_params["job"])))
        except InvalidName as error:
            return problem(400, str(error))

    def _answer(self, request: Request, content: Content) -> Response:
        share = None if self._closed else self._shares.take(request, min(MOST, most_connections() // 4))
        if share is None:
            return problem(503, "Too many listen: come again.", {"Retry-After": AGAIN_S})
        return EventStream(content(share), self._shares, share)

    async def _of_all(self, share: Share) -> AsyncIterator[bytes]:
        told: dict[str, JobSummary] = {}
        counted, where = -1, self._stores.settings.stores

        def news(found: list[JobSummary]) -> Iterable[bytes]:
            nonlocal counted
            present = {each.job: each for each in found}
            for job in sorted(told.keys() - present.keys()):
                del told[job]
                yield _event("gone", {"job": job})
            for job, each in present.items():
                if told.get(job) != each:
                    told[job] = each
                    yield _event("job", each)
            if counted != len(present):
                counted = len(present)
                yield _event("jobs", {"count": counted, "files": where.files, "zookeeper": where.zookeeper})

        async for each in self._stream(share, self._reads.jobs, news):
            yield each

    async def _of(self, job: str, share: Share) -> AsyncIterator[bytes]:
        told: list[Look] = []

        def news(found: Look) -> Iterable[bytes]:
            before = told.pop() if told else None
            told.append(found)
            if before is None or before[0] != found[0]:
                yield _event("job", found[0])
            parts = [name for name, mark in found[1].items() if before is None or before[1][name] != mark]
            if parts:
                yield _event("changed", {"job": job, "parts": parts})

        stores = self._stores
        shared = Shared(lambda: look(stores.admin(), job, stores.leases()))
        watched = self._watched.setdefault(job, [0, shared])
        watched[0] += 1
        try:
            async for each in self._stream(share, watched[1], news):
                yield each
        finally:
            watched[0] -= 1
            if not watched[0]:
                del self._watched[job]

    async def _stream(
        self, share: Share, shared: Shared[T], news: Callable[[T], Iterable[bytes]]
    ) -> AsyncIterator[bytes]:
        said, silent_since = "", now()
        while not (self._closed or share.over):
            try:
                found = await self._latest(shared)
                parts, trouble_said = list(news(found)), ""
            except (LeaderError, StoreError, TimeoutError) as error:
                parts, trouble_said = [], str(error) or "No store answers in time."
            if trouble_said and trouble_said != said:
                parts = [_event("trouble", trouble_said)]
            elif said and not trouble_said:
                parts.append(_event("mended", None))
            said = trouble_said
            if not parts and now() - silent_since >= COMMENT_EVERY_S:
                parts = [b": still here\n\n"]
            if parts:
                silent_since = now()
                yield b"".join(parts)
            await asyncio.sleep(TICK_S)

    async def _latest(self, shared: Shared[T]) -> T:
        known = shared.known()
        if known is not None:
            return known
        async with self._turn:
            return await run_in_threadpool(shared.value)


def look(admin: JobAdmin, job: str, leases: Leases) -> Look:
    """Look at a job: five lists more than :func:`ha.views.jobs.summary` takes, and no file is read."""
    directory = admin.directory(job)
    marks = {
        name: zlib.crc32("\n".join(sorted(each.name for each in directory.list(folder))).encode())
        for name, folder in PARTS.items()
    }
    return summary(admin, job, leases), marks


def _event(name: str, data: Any) -> bytes:
    # JSON of msgspec has no line break in it, whatever a name contains.
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
