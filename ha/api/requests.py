"""Requests: POST an operator's request to a job's leader, and GET its progress.

Asking twice with one id is asking once, so a client without an answer asks again. It is answered before it ends.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Union

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from ha.api.operations import PREFIX, Operation, asker, encoded, posted
from ha.api.process import ApiStores
from ha.verbs.asking import ask, find
from ha.verbs.places import check_allowed, check_arguments
from ha.verbs.table import OF_LEADER, Verb, Word, texts
from leader.errors import InvalidSettings
from leader.job.request_folder import Request


def bodies(verbs: Mapping[str, Verb]) -> Any:
    """Return the type of the body of a POST that asks for one of these verbs: a struct each, told apart by its name."""
    # The id of an earlier request returns that one and asks for nothing new; without one the request is new.
    return Union[tuple(_body(name, verb) for name, verb in verbs.items())]  # noqa: UP007  # of as many as there are


def _body(name: str, verb: Verb) -> type[msgspec.Struct]:
    needed = any(each.required for each in msgspec.structs.fields(verb.takes))
    arguments = ("arguments", verb.takes) if needed else ("arguments", verb.takes, verb.takes())
    undone = re.sub(r"{(\w+)}", lambda field: field[1].upper(), verb.undo) or "Nothing undoes it"
    return msgspec.defstruct(
        "".join(part.capitalize() for part in name.split("-")),
        [arguments, ("id", Word | None, None)],
        namespace={"__doc__": f"As ``ha {verb.command}``. {verb.does} {undone}."},
        tag_field="verb",
        tag=name,
        frozen=True,
        forbid_unknown_fields=True,
        kw_only=True,
    )


def verb_of(asked: msgspec.Struct) -> str:
    """Return the name of the verb that a body asks for."""
    return str(asked.__struct_config__.tag)


def allowed(arguments: Mapping[str, str], roots: Sequence[str]) -> None:
    """Refuse with 403 a place that is neither the job's own nor below these directories."""
    try:
        check_allowed(check_arguments(arguments), roots)
    except InvalidSettings as error:
        raise HTTPException(403, f"{error}") from error


def operations(stores: ApiStores, roots: Sequence[str]) -> list[Operation]:
    """Return what operators may ask for; ``roots`` are the directories for savepoints."""
    path = f"{PREFIX}/jobs/{{job}}/requests"
    body = bodies(OF_LEADER)

    def ask_for(request: HttpRequest, asked: Any) -> Response:
        job, arguments = request.path_params["job"], texts(asked.arguments)
        allowed(arguments, roots)
        made = ask(stores.admin(), job, verb_of(asked), asked.id, asker(request), arguments)
        return encoded(made, 202, {"Location": f"{PREFIX}/jobs/{job}/requests/{made.id}"})

    def get(request: HttpRequest) -> Request:
        found = find(stores.admin(), request.path_params["job"], request.path_params["id"])
        if found is None:
            raise HTTPException(404, f"Job {request.path_params['job']!r} has no such request (any more).")
        return found

    return [
        posted(
            path,
            body,
            ask_for,
            "Ask the job's leader to stop, cancel or restart it, to restart a query, or to take a savepoint; or "
            "pause and resume it, which needs no leader.",
            Request,
            (400, 403, 404, 409, 500),
        ),
        Operation(f"{path}/{{id}}", get, "How far a request has come.", Request, refusals=(400, 404, 409, 500)),
    ]
