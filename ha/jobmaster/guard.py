"""Guards for a job master's handlers: a decorator for functions, and a middleware for WSGI applications.

An answer is held in memory until it is complete, because the leadership is checked once more before anything is sent.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec, TypeVar

from ha.jobmaster.verdict import EPOCH_HEADER, SESSION_ID_HEADER, LeaderNow, Rejected, accept, dismiss

P = ParamSpec("P")
T = TypeVar("T")

MAX_HELD_BYTES = 64 << 20  # a longer answer is not held in memory: answer with a place where it can be read

Headers = Mapping[str, str]


def guarded(
    leader: LeaderNow,
) -> Callable[[Callable[Concatenate[Headers, P], T]], Callable[Concatenate[Headers, P], T]]:
    """Return a decorator: the function handles only requests that are meant for this leader, and only while it leads.

    The function's first argument must be the request's headers. Send what it returns with the headers of
    :func:`ha.jobmaster.verdict.dismiss`, by which clients know that a leader has answered.

    The decorated function raises:
        Rejected: instead of running, or instead of returning; send its ``status``, ``headers`` and ``body``.
    """

    def decorate(handler: Callable[Concatenate[Headers, P], T]) -> Callable[Concatenate[Headers, P], T]:
        @wraps(handler)
        def handle(headers: Headers, /, *args: P.args, **kwargs: P.kwargs) -> T:
            accept(leader, _header(headers, SESSION_ID_HEADER), _header(headers, EPOCH_HEADER))
            answer = handler(headers, *args, **kwargs)
            dismiss(leader)
            return answer

        return handle

    return decorate


def _header(headers: Headers, name: str) -> str | None:
    """Return a header; servers keep names as they came, or turn them to lower case."""
    found = headers.get(name)
    return found if found is not None else headers.get(name.lower())


StartResponse = Callable[..., Any]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class GuardedApplication:
    """A WSGI application that gets only requests meant for this leader, and answers only while it leads."""

    def __init__(self, application: Application, leader: LeaderNow) -> None:
        """Wrap ``application``."""
        self._application = application
        self._leader = leader

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> list[bytes]:
        """See PEP 3333; an answer that is longer than :data:`MAX_HELD_BYTES` is a ``ValueError``."""
        try:
            accept(self._leader, environ.get(_variable(SESSION_ID_HEADER)), environ.get(_variable(EPOCH_HEADER)))
            status, headers, body = _answer(self._application, environ)
            headers += dismiss(self._leader).items()
        except Rejected as rejected:
            phrase = HTTPStatus(rejected.status).phrase
            start_response(f"{rejected.status} {phrase}", list(rejected.headers.items()))
            return [rejected.body]
        start_response(status, headers)
        return [body]


def _answer(application: Application, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
    """Return the application's whole answer."""
    said: list[tuple[str, list[tuple[str, str]]]] = []
    parts: list[bytes] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], None]:
        del exc_info  # nothing has been sent yet, so an earlier status may always be replaced
        said.append((status, list(headers)))
        return parts.append

    found = application(environ, start_response)
    try:
        length = 0
        for part in found:
            length += len(part)
            if length > MAX_HELD_BYTES:
                most = f"{MAX_HELD_BYTES:,} bytes"
                raise ValueError(f"An answer may have {most}: answer with a place where it can be read.")
            parts.append(part)
    finally:
        if hasattr(found, "close"):
            found.close()
    status, headers = said[-1]
    return status, headers, b"".join(parts)


def _variable(header: str) -> str:
    return f"HTTP_{header.upper().replace('-', '_')}"
