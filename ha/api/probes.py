"""Probes: whether this process lives, is ready, leads or stands by. They ask no store and need no token."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ha.api.operations import Operation
from ha.api.process import StatusSource


class Well(msgspec.Struct, frozen=True):
    """The process is well; ``jobs`` is the number of those that it contends for."""

    jobs: int
    status: Literal["ok"] = "ok"


class ProbeRole(msgspec.Struct, frozen=True):
    """The role of this process in a job."""

    job: str
    role: Literal["leader", "standby"]
    epoch: int | None


def operations(process: StatusSource) -> list[Operation]:
    """Return the probes of a process."""

    def alive(_: Request) -> Well:
        return Well(len(process.statuses()))

    def ready(_: Request) -> Well:
        found = process.statuses()
        refused = [f"{job}: {each['not_eligible']}" for job, each in sorted(found.items()) if each["not_eligible"]]
        if refused:
            raise HTTPException(503, " ".join(refused))
        return Well(len(found))

    def role(wanted: Literal["leader", "standby"], request: Request) -> ProbeRole:
        status = _chosen(process.statuses(), request.query_params.get("job", ""))
        if status["not_eligible"] and not status["is_leader"]:
            raise HTTPException(503, status["not_eligible"])
        found: Literal["leader", "standby"] = "leader" if status["is_leader"] else "standby"
        if found != wanted:
            raise HTTPException(503, f"{status['job']}: this process is the {found}, not the {wanted}.")
        return ProbeRole(status["job"], found, status["epoch"])

    said: dict[Literal["leader", "standby"], str] = {
        "leader": "200 while this process leads the job, else 503.",
        "standby": "200 while this process stands by for the job and could lead it, else 503.",
    }
    return [
        Operation("/livez", alive, "Whether the process lives: its contender's thread answers.", Well, probe=True),
        Operation("/readyz", ready, "Whether it could lead every job that it contends for.", Well, probe=True),
        *(
            Operation(f"/{name}", partial(role, name), text, ProbeRole, refusals=(404,), probe=True, query=("job",))
            for name, text in said.items()
        ),
    ]


def _chosen(statuses: Mapping[str, dict[str, Any]], job: str) -> dict[str, Any]:
    if job:
        if job not in statuses:
            raise HTTPException(404, f"This process does not contend for job {job!r}.")
        return statuses[job]
    if len(statuses) != 1:
        known = ", ".join(sorted(statuses)) or "none"
        raise HTTPException(404, f"Name the job, as in ?job=orders. The jobs of this process: {known}.")
    return next(iter(statuses.values()))
