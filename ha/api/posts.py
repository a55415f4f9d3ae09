"""Posts: how the body of a POST is read, in bounded length, and given to a function on a thread."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ha.api.operations import AGAIN_S, JSON, trouble
from ha.listening.problems import problem

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
