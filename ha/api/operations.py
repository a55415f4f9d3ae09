"""Operations: the list of all that the HTTP API offers; routes and the OpenAPI document are made from it.

Handlers take a request and return a struct, or raise what the rest of the package raises. Here errors become problem
documents, and a bound is kept: so many handlers at a time wait for stores.
"""

import asyncio
import inspect
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ha.listening.problems import MEDIA_TYPE, Problem, problem
from leader.errors import InvalidName, NoLeader, NotLeader, Unreachable, Unreadable
from store.errors import Conflict, Invalid, PermissionDenied, StoreError

PREFIX = "/api/v1"
JSON = "application/json"
MOST_WAITING = 8
"""Handlers that may wait for stores at a time; further ones are told to come again. Probes do not count."""

AGAIN_S = "1"

_PARAMETERS = {
    "job": ("path", "Name of the job.", r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"),
    "query": ("path", "Name of the query.", r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"),
    "host": ("path", "Name of the host's contenders.", r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
    "id": ("path", "Id of the request.", r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
}
_QUERY = {
    "job": ("query", "One of the jobs of this process; needed if it has several.", _PARAMETERS["job"][2]),
    "since": ("query", "The version that is known: the answer waits for another one.", ""),
    "wait": (
        "query",
        "Longest time to wait in seconds, from 0 to 60; 30 if it is not given.",
        r"^([0-5]?[0-9](\.[0-9]+)?|60)$",
    ),
}

Handler = Callable[[Request], Any]


class Operation(msgspec.Struct, frozen=True):
    """One operation."""

    path: str  # with the names of its parameters in braces
    handler: Handler  # answers. Plain functions run on a thread, and what is no :class:`Response` is sent as JSON
    summary: str  # one sentence
    answer: Any  # type of the answer; None for a stream of events
    status: int = 200  # of the answer
    refusals: tuple[int, ...] = ()  # further statuses, with problem documents
    body: Any = None  # type of the request's body; None if there is none
    method: str = "GET"  # of HTTP. GET answers HEAD as well
    probe: bool = False  # it asks this process alone, and needs no token
    query: tuple[str, ...] = ()  # names of the parameters in the query


def routes(operations: Iterable[Operation]) -> list[Route]:
    """Return the routes of these operations."""
    waiting = threading.BoundedSemaphore(MOST_WAITING)
    return [
        Route(
            each.path,
            each.handler if inspect.iscoroutinefunction(each.handler) else partial(_answered, each, waiting),
            methods=[each.method],
        )
        for each in operations
    ]


def encoded(answer: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer as JSON."""
    return Response(msgspec.json.encode(answer), status, {"Cache-Control": "no-store", **(headers or {})}, JSON)


def _answered(operation: Operation, waiting: threading.BoundedSemaphore, request: Request) -> Response:
    if not operation.probe and not waiting.acquire(blocking=False):
        return problem(503, "Too many ask at the same time: come again.", {"Retry-After": AGAIN_S})
    try:
        answer = operation.handler(request)
    except Exception as error:  # noqa: BLE001  # it is raised again if it is a mistake of ours
        return trouble(error)
    finally:
        if not operation.probe:
            waiting.release()
    return answer if isinstance(answer, Response) else encoded(answer, operation.status)


def trouble(error: Exception) -> Response:
    """Return the problem document for an error; one that is a mistake of ours is raised again."""
    if isinstance(error, HTTPException):
        return problem(error.status_code, error.detail, error.headers)
    status = next((status for kinds, status in _STATUSES if isinstance(error, kinds)), None)
    if status is None:
        raise error
    again = {"Retry-After": AGAIN_S} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return problem(status, str(error) or "No answer in time.", again)


_STATUSES: tuple[tuple[tuple[type[Exception], ...], int], ...] = (
    ((InvalidName,), 400),
    ((NoLeader,), 404),
    ((Conflict, NotLeader), 409),
    ((Invalid, PermissionDenied, Unreadable), 500),
    ((StoreError, Unreachable, TimeoutError), 503),
)


# --- the OpenAPI document


def document(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """Return the OpenAPI document of these operations; their types become its schemas."""
    listed = list(operations)
    answers, bodies = ([each.answer for each in listed if each.answer], [each.body for each in listed if each.body])
    types = list(dict.fromkeys([Problem, *answers, *bodies]))  # in one order
    shown, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(types, shown, strict=True))
    paths: dict[str, Any] = {}
    for each in listed:
        paths.setdefault(each.path, {})[each.method.lower()] = _described(each, schemas)
        if each.probe:
            paths[each.path]["head"] = _described(each, schemas, head=True)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hybrid HA", "version": version},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _described(operation: Operation, schemas: Mapping[Any, Any], *, head: bool = False) -> dict[str, Any]:
    media = "text/event-stream" if operation.answer is None else JSON
    schema = schemas[operation.answer] if operation.answer is not None else {"type": "string"}
    success: dict[str, Any] = {"description": "The answer."}
    failure: dict[str, Any] = {"description": "It was not done; the detail says why."}
    if not head:
        success["content"] = {media: {"schema": schema}}
        failure["content"] = {MEDIA_TYPE: {"schema": schemas[Problem]}}
    refusals = {*operation.refusals, *(() if operation.probe else (401, 403)), 421, 503}
    described: dict[str, Any] = {
        "operationId": f"{'head' if head else operation.method.lower()}{operation.path}",
        "summary": operation.summary,
        "parameters": _parameters(operation),
        "responses": {str(operation.status): success, **{str(each): failure for each in sorted(refusals)}},
    }
    if not operation.probe:
        described["security"] = [{"token": []}] if operation.method != "GET" else [{}, {"token": []}]
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": schemas[operation.body]}}}
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    named = {name: said for name, said in _PARAMETERS.items() if f"{{{name}}}" in operation.path}
    named |= {name: _QUERY[name] for name in operation.query}
    return [
        {
            "name": name,
            "in": place,
            "required": place == "path",
            "description": text,
            "schema": {"type": "string", "pattern": pattern},
        }
        for name, (place, text, pattern) in named.items()
    ]


MOST_BYTES = 32_000  # of a body
THREADS = 4  # posts to one function that are carried out at the same time; others wait

_FREE = re.compile(r"[^A-Za-z0-9.-]")

T = TypeVar("T")


def post(kind: Any, do: Callable[[Request, T], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that decodes the body, and has the function answer."""
    # `kind`: type of the body, or several with tags. `do`: takes the request and the decoded body; it may block, and
    # raise what other handlers raise.
    turn = asyncio.Semaphore(THREADS)
    bare: msgspec.json.Decoder[Any] = msgspec.json.Decoder(float_hook=_number)

    async def handle(request: Request) -> Response:
        try:
            asked = msgspec.convert(bare.decode(await _read(request)), kind)
            async with turn:
                return await run_in_threadpool(do, request, asked)
        except (msgspec.MsgspecError, RecursionError) as error:
            return problem(400, f"The body cannot be used: {error}.")
        except Exception as error:  # noqa: BLE001  # it is raised again if it is a mistake of ours
            return trouble(error)

    return handle


def posted(
    path: str, body: Any, do: Callable[[Request, Any], Response], summary: str, answer: Any, refusals: tuple[int, ...]
) -> Operation:
    """Return the operation that begins something which goes on after its answer."""
    refusals = (*refusals, 413, 415)
    return Operation(path, post(body, do), summary, answer, 202, refusals, body=body, method="POST")


def begin_thread(do: Callable[..., object], *arguments: object, name: str) -> None:
    """Start a thread for what goes on after the answer; refused if the host has none left."""
    try:
        threading.Thread(target=do, args=arguments, name=name, daemon=True).start()
    except RuntimeError as error:
        raise lacking(f"{error}") from error


def lacking(what: str) -> HTTPException:
    """Return the refusal of what this host cannot begin now."""
    return HTTPException(
        503, f"This host cannot begin it now, and nothing has begun: {what}. Ask again.", {"Retry-After": AGAIN_S}
    )


def asker(request: Request) -> str:
    """Who asks, for people."""
    client = _FREE.sub("-", request.client.host) if request.client else "somebody"
    return f"http-from-{client}"[:64]


def _number(text: str) -> float:
    """Return an int for 3.0: both are one number in JSON, and clients of some languages write no other."""
    number = float(text)
    return int(number) if number.is_integer() else number


async def _read(request: Request) -> bytes:
    said = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if said != JSON:
        raise HTTPException(415, f"Send the body as {JSON}.")
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > MOST_BYTES:
            raise HTTPException(413, f"The body has more than {MOST_BYTES:,} bytes.", {"Connection": "close"})
    return bytes(found)
