"""Requests: POST for what operators ask of a job's leader, and GET for how far that has come.

Asking twice with one id is asking once, so a client that was not answered asks again. The answer comes at once: the
leader carries the request out meanwhile.
"""

import asyncio
import re
from typing import Annotated, Literal

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from ha.api.operations import JSON, PREFIX, Operation, encoded, trouble
from ha.api.process import ApiStores
from ha.listening.problems import problem
from ha.views.requests import ask, find
from leader.job.requests import Request

MOST_BYTES = 4_000
"""Of a body."""

THREADS = 4
"""Requests that are made at the same time; others wait."""

_FREE = re.compile(r"[^A-Za-z0-9.-]")


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request in the body of a POST. The id of an earlier request returns that one and asks for nothing new.

    The arguments are texts. savepoint takes ``to`` and ``timeout``, stop-with-savepoint ``drain`` as well,
    restart-from takes ``from`` and ``discard_newer``, and restart-query takes ``query``.
    """

    verb: Literal[
        "stop",
        "cancel",
        "restart",
        "pause",
        "resume",
        "savepoint",
        "stop-with-savepoint",
        "restart-from",
        "restart-query",
    ]
    id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")] | None = None
    reason: Annotated[str, msgspec.Meta(pattern=r"^[ -~]{0,56}\Z")] = ""
    """Of a pause, for people; as many characters as fit into the name of an entry, however they are escaped there."""
    arguments: dict[str, str] = {}


_decoder = msgspec.json.Decoder(Asked)


def operations(stores: ApiStores) -> list[Operation]:
    """Return what operators may ask for."""
    turn = asyncio.Semaphore(THREADS)
    path = f"{PREFIX}/jobs/{{job}}/requests"

    async def post(request: HttpRequest) -> Response:
        try:
            asked = _decoder.decode(await read_body(request))
            async with turn:
                return await run_in_threadpool(_ask, stores, request, asked)
        except msgspec.MsgspecError as error:
            return problem(400, f"The body cannot be used: {error}.")
        except Exception as error:
            found = trouble(error)
            if found is None:
                raise
            return found

    def get(request: HttpRequest) -> Request:
        found = find(stores.admin(), request.path_params["job"], request.path_params["id"])
        if found is None:
            raise HTTPException(404, f"Job {request.path_params['job']!r} has no such request (any more).")
        return found

    return [
        Operation(
            path,
            post,
            "Ask the job's leader to stop, cancel or restart it, to restart a query, or to take a savepoint; or pause "
            "and resume it, which needs no leader.",
            Request,
            status=202,
            refusals=(400, 404, 409, 413, 415, 500),
            body=Asked,
            method="POST",
        ),
        Operation(f"{path}/{{id}}", get, "How far a request has come.", Request, refusals=(400, 404, 409, 500)),
    ]


def _ask(stores: ApiStores, request: HttpRequest, asked: Asked) -> Response:
    job = request.path_params["job"]
    made = ask(stores.admin(), job, asked.verb, asked.id, asker(request), asked.reason, arguments=asked.arguments)
    return encoded(made, 202, {"Location": f"{PREFIX}/jobs/{job}/requests/{made.id}"})


def asker(request: HttpRequest) -> str:
    """Who asks, for people."""
    client = _FREE.sub("-", request.client.host) if request.client else "somebody"
    return f"http-from-{client}"[:64]


async def read_body(request: HttpRequest) -> bytes:
    """Read a body of JSON, of bounded length.

    Raises:
        HTTPException: it is something else, or too long.
    """
    said = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if said != JSON:
        raise HTTPException(415, f"Send the body as {JSON}.")
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > MOST_BYTES:
            raise HTTPException(413, f"The body has more than {MOST_BYTES:,} bytes.", {"Connection": "close"})
    return bytes(found)
