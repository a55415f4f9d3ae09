"""Asking a job's leader for something by the job's name, as ``ha stop`` and the HTTP API do."""

import re
import time
import uuid
from collections.abc import Mapping

from ha.sidecar.operator_requests import (
    EXCLUDE,
    EXECUTORS,
    QUERY,
    RESCALE_EXECUTORS,
    RESTART,
    RESTART_FROM,
    RESTART_QUERY,
    SAVEPOINT,
    STOP_WITH_SAVEPOINT,
    VERBS,
)
from ha.spark.savepoints.arguments import DISCARD, DRAIN, FROM, TIMEOUT, TO, check_arguments
from leader.errors import InvalidName
from leader.job import pausing
from leader.job.admin import JobAdmin
from leader.job.excluded import hosts_of, text_of
from leader.job.requests import Request, Requests
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory, check_word
from leader.layout.pause import Pause
from store.errors import Conflict, StoreError, Unknown
from store.outcome import doubts

PAUSE, RESUME = "pause", "resume"
AT_ONCE = (PAUSE, RESUME)
"""Verbs that need no leader: the change of the lease is all that there is to do."""

ARGUMENTS = {
    SAVEPOINT: (TO, TIMEOUT),
    STOP_WITH_SAVEPOINT: (TO, TIMEOUT, DRAIN),
    RESTART: (EXCLUDE,),
    RESTART_FROM: (FROM, DISCARD, EXCLUDE),
    RESTART_QUERY: (QUERY,),
    RESCALE_EXECUTORS: (EXECUTORS,),
}
"""The arguments of each verb; other verbs take none."""

_EXECUTORS = re.compile("[1-9][0-9]{0,3}")


def ask(
    admin: JobAdmin,
    job: str,
    verb: str,
    identity: str | None,
    by: str,
    reason: str = "",
    *,
    arguments: Mapping[str, str] | None = None,
) -> Request:
    """Leave a request for the job's leader, have it look, and return the request as it is now.

    A pause and its end need no leader, so they are done, or refused, when this returns.

    Args:
        admin: of the stores.
        job: the job's name.
        verb: one of :data:`ha.sidecar.operator_requests.VERBS`, or of :data:`AT_ONCE`.
        identity: of the request: asking twice with one is asking once; None for a new one.
        by: who asks, for people.
        reason: of a pause, for people.
        arguments: of the verb, see :data:`ARGUMENTS`; empty ones count as none.

    Raises:
        InvalidName: the job or the request cannot have such a name, the reason is too long, or the verb takes no such
            argument.
        NoLeader: nobody leads the job, so there is nobody to ask.
        Fenced: another leader has begun meanwhile: ask that one.
        Conflict: something else was asked under this id; nothing is asked now.
        StoreError: the store refuses, or does not answer. Then the message says with which id to ask again.
    """
    assert verb in (*VERBS, *AT_ONCE)
    identity = check_word(identity, "a request") if identity else new_id()
    given = _checked(verb, arguments or {})
    if verb in AT_ONCE:
        return _at_once(admin, job, verb, identity, by, reason)
    admin.check_led(job)
    with doubts(
        f"request {identity} to {verb} job {job!r} is left", f"ask again with the id {identity}, which asks once"
    ):
        request = Requests(admin.directory(job)).ask(identity, verb, by, given)
    _check_verb(request, job, verb)
    if request.arguments != given:
        raise Conflict(
            f"Request {identity} of job {job!r} asks to {verb}{_shown(request.arguments)}, and now to "
            f"{verb}{_shown(given)}: take another id."
        )
    if not request.state.final:
        try:
            admin.ask_to_look(job)
        except StoreError as error:
            raise Unknown(
                f"Request {identity} to {verb} job {job!r} is left, and it is not known whether the leader is told: "
                f"ask again with the id {identity}, which asks once. ({error})"
            ) from error
    return request


def _at_once(admin: JobAdmin, job: str, verb: str, identity: str, by: str, reason: str) -> Request:
    """Carry a request out and note it among the others, unless it was carried out before."""
    requests = Requests(admin.directory(job))
    if (known := requests.load(identity)) is not None:
        _check_verb(known, job, verb)
        return known
    said = _pause(admin, job, by, reason) if verb == PAUSE else _resume(admin, job)
    return Requests(admin.directory(job)).note(identity, verb, by, {"reason": reason} if reason else {}, said)


def _pause(admin: JobAdmin, job: str, by: str, reason: str) -> str:
    leader, lease, new = pausing.pause(admin, job, Pause(int(time.time()), by, reason))
    since = "" if new else ", and was so before"
    return f"The job is paused{since}: {_leader(leader, lease)}, and nobody takes over."


def _resume(admin: JobAdmin, job: str) -> str:
    leader, lease, before = pausing.resume(admin, job)
    if before is None:
        return f"The job was not paused: {_leader(leader, lease)}."
    return f"The job was {before}, and goes on: {_leader(leader, lease)}, and standbys take over when they must."


def _leader(leader: LeaderDirectory, lease: Lease) -> str:
    if lease.mode is Mode.RELEASED:
        return "nobody leads it"
    return f"{lease.contender}, which holds its lease in epoch {leader.epoch}, stays"


def _check_verb(request: Request, job: str, verb: str) -> None:
    if request.damaged:
        raise Conflict(f"Request {request.id} of job {job!r}: {request.said}")
    if request.verb != verb:
        raise Conflict(f"Request {request.id} of job {job!r} asks to {request.verb}, not to {verb}: take another id.")


def _checked(verb: str, arguments: Mapping[str, str]) -> dict[str, str]:
    known = ARGUMENTS.get(verb, ())
    if unknown := sorted(set(arguments) - set(known)):
        raise InvalidName(f"A request to {verb} takes {', '.join(known) or 'no arguments'}, and no {unknown[0]!r:.60}.")
    if verb == RESTART_FROM and not arguments.get(FROM):
        raise InvalidName("A request to restart from a savepoint says from which: its URI, or a name of the job's own.")
    if verb == RESTART_QUERY:
        check_word(arguments.get(QUERY, ""), "a query")
    if verb == RESCALE_EXECUTORS and not _EXECUTORS.fullmatch(arguments.get(EXECUTORS, "")):
        raise InvalidName("A request to rescale executors says how many, from 1 to 9999.")
    hosts = text_of(hosts_of(arguments.get(EXCLUDE, "")))
    return check_arguments({**arguments, EXCLUDE: hosts} if hosts else arguments)


def _shown(arguments: Mapping[str, str]) -> str:
    told = ", ".join(f"{name} {text}" for name, text in sorted(arguments.items()))
    return f" ({told})" if told else ""


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
