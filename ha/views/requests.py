"""Asking a job's leader for something by the job's name, as ``ha stop`` and the HTTP API do."""

import time
import uuid

from ha.sidecar.operator_requests import VERBS
from leader.job.admin import JobAdmin
from leader.job.requests import Request, Requests
from leader.layout.names import check_word
from store.errors import Conflict, StoreError, Unknown
from store.outcome import doubts


def ask(admin: JobAdmin, job: str, verb: str, identity: str | None, by: str) -> Request:
    """Leave a request for the job's leader, have it look, and return the request as it is now.

    Args:
        admin: of the stores.
        job: the job's name.
        verb: one of :data:`ha.sidecar.operator_requests.VERBS`.
        identity: of the request: asking twice with one is asking once; None for a new one.
        by: who asks, for people.

    Raises:
        InvalidName: the job or the request cannot have such a name.
        NoLeader: nobody leads the job, so there is nobody to ask.
        Fenced: another leader has begun meanwhile: ask that one.
        Conflict: something else was asked under this id; nothing is asked now.
        StoreError: the store refuses, or does not answer. Then the message says with which id to ask again.
    """
    assert verb in VERBS
    identity = check_word(identity, "a request") if identity else new_id()
    admin.check_led(job)
    with doubts(
        f"request {identity} to {verb} job {job!r} is left", f"ask again with the id {identity}, which asks once"
    ):
        request = Requests(admin.directory(job)).ask(identity, verb, by)
    if request.verb != verb:
        raise Conflict(f"Request {identity} of job {job!r} asks to {request.verb}, not to {verb}: take another id.")
    if not request.state.final:
        try:
            admin.ask_to_look(job)
        except StoreError as error:
            raise Unknown(
                f"Request {identity} to {verb} job {job!r} is left, and it is not known whether the leader is told: "
                f"ask again with the id {identity}, which asks once. ({error})"
            ) from error
    return request


def find(admin: JobAdmin, job: str, identity: str) -> Request | None:
    """Return a request as it is now; None if there is none of that id (any more).

    Raises:
        InvalidName: the job or the request cannot have such a name.
        NoLeader: there is no such job.
        StoreError: the store does not answer.
    """
    return Requests(admin.directory(job)).load(check_word(identity, "a request"))


def new_id() -> str:
    """Return an id that sorts by the time of this host, for people, and is new."""
    return f"{time.time_ns() // 1_000_000:013d}-{uuid.uuid4().hex[:6]}"
