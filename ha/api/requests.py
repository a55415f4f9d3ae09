"""Requests: POST for what operators ask of a job's leader, and GET for how far that has come.

Asking twice with one id is asking once, so a client that was not answered asks again. The answer comes at once: the
leader carries the request out meanwhile.
"""

from typing import Annotated, Literal

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from ha.api.operations import PREFIX, Operation, encoded
from ha.api.posts import asker, post
from ha.api.process import ApiStores
from ha.views.requests import ask, find
from leader.job.requests import Request


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request in the body of a POST. The id of an earlier request returns that one and asks for nothing new.

    The arguments are texts. savepoint takes ``to`` and ``timeout``, stop-with-savepoint ``drain`` as well,
    restart-from takes ``from`` and ``discard_newer``, restart-query takes ``query``, and rescale-executors takes
    ``executors``, their number. restart and restart-from take ``exclude``: hosts that executors keep off from then on,
    separated by commas.
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
        "rescale-executors",
    ]
    id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")] | None = None
    reason: Annotated[str, msgspec.Meta(pattern=r"^[ -~]{0,56}\Z")] = ""
    """Of a pause, for people; as many characters as fit into the name of an entry, however they are escaped there."""
    arguments: dict[str, str] = {}


def operations(stores: ApiStores) -> list[Operation]:
    """Return what operators may ask for."""
    path = f"{PREFIX}/jobs/{{job}}/requests"

    def ask_for(request: HttpRequest, asked: Asked) -> Response:
        job = request.path_params["job"]
        by = asker(request)
        made = ask(stores.admin(), job, asked.verb, asked.id, by, asked.reason, arguments=asked.arguments)
        return encoded(made, 202, {"Location": f"{PREFIX}/jobs/{job}/requests/{made.id}"})

    def get(request: HttpRequest) -> Request:
        found = find(stores.admin(), request.path_params["job"], request.path_params["id"])
        if found is None:
            raise HTTPException(404, f"Job {request.path_params['job']!r} has no such request (any more).")
        return found

    return [
        Operation(
            path,
            post(Asked, ask_for),
            "Ask the job's leader to stop, cancel or restart it, to restart a query, to take a savepoint, or to have "
            "another number of executors; or pause and resume it, which needs no leader.",
            Request,
            status=202,
            refusals=(400, 404, 409, 413, 415, 500),
            body=Asked,
            method="POST",
        ),
        Operation(f"{path}/{{id}}", get, "How far a request has come.", Request, refusals=(400, 404, 409, 500)),
    ]
