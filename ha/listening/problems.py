"""Problem documents: how every HTTP error says what was wrong (RFC 9457)."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"


class Problem(msgspec.Struct, frozen=True):
    """An error: its status and the status's name, and in one sentence what was wrong and what to do."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to a request that fails."""
    said = Problem(HTTPStatus(status).phrase, status, detail)
    return Response(msgspec.json.encode(said), status, dict(headers or {}), MEDIA_TYPE)


def of_exception(request: Request, error: Exception) -> Response:
    """Answer what the router refuses: a path that does not exist, a method that it does not have."""
    assert isinstance(error, HTTPException)
    said = {
        404: f"There is nothing at {request.scope['path']!r}: see /api/v1/openapi.json.",
        405: f"{request.scope['path']} does not answer {request.method}: see /api/v1/openapi.json.",
    }
    return problem(error.status_code, said.get(error.status_code, error.detail), error.headers)
