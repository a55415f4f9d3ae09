"""Requests: POST for what operators ask of a job's leader, and GET for how far that has come.

Asking twice with one id is asking once, so a client that was not answered asks again. The answer comes at once: the
leader carries the request out meanwhile.
"""

from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from ha.api.asked import Asked, Pause, texts
from ha.api.operations import PREFIX, Operation, encoded
from ha.api.posts import asker, post
from ha.api.process import ApiStores
from ha.views.requests import ask, find
from leader.job.requests import Request


def operations(stores: ApiStores) -> list[Operation]:
    """Return what operators may ask for."""
    path = f"{PREFIX}/jobs/{{job}}/requests"

    def ask_for(request: HttpRequest, asked: Asked) -> Response:
        job = request.path_params["job"]
        reason = asked.reason if isinstance(asked, Pause) else ""
        made = ask(stores.admin(), job, asked.verb, asked.id, asker(request), reason, arguments=texts(asked))
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
