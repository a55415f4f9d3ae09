"""Asking a job's leader for something by the job's name, as ``ha job stop`` and the HTTP API do."""

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from ha.verbs.places import FROM, check_arguments
from ha.verbs.table import EXCLUDE, OF_LEADER, PAUSE, QUERY, RESTART_FROM, RESTART_QUERY
from leader.errors import Fenced, InvalidName, LeaderError, Leaderless, NoLeader
from leader.job import pausing
from leader.job.admin import JobAdmin
from leader.job.excluded import hosts_of, text_of
from leader.job.request_folder import Request, Requests, State
from leader.job.status import JobStatus
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory, check_word
from leader.layout.pause import Pause
from store.clock import BOOT_CLOCK, now
from store.errors import Conflict, StoreError, Unknown
from store.outcome import doubts

T = TypeVar("T")

REASON = "reason"  # the argument of a pause, for people
LOOK_S = 0.25  # seconds between two looks for a leader


def ask(
    admin: JobAdmin, job: str, verb: str, identity: str | None, by: str, arguments: Mapping[str, str] | None = None
) -> Request:
    """Leave a request for the job's leader, have it look, and return the request as it is now."""
    # A pause and its end need no leader, so they are done, or refused, when this returns.
    # `verb`: one of :data:`ha.verbs.table.OF_LEADER`. `identity`: of the request: asking twice with one is asking once;
    # None for a new one. `by`: who asks, for people. `arguments`: of the verb, as texts; empty ones count as none.
    # InvalidName: a name of the job, the request or an argument is invalid, or the reason is too long. NoLeader: there
    # is no such job, or it has ended; or it has no leader (``Leaderless``), and the verb is not kept for the next
    # leader. Fenced: another leader has begun meanwhile: ask that one. Conflict: something else was asked under this
    # id; nothing is asked now. StoreError: the store refuses, or does not answer. Then the message says with which id
    # to ask again.
    known = OF_LEADER[verb]
    identity = check_word(identity, "a request") if identity else new_id()
    given = _checked(verb, arguments or {})
    if known.at_once:
        return _at_once(admin, job, verb, identity, by, given)
    ended, kept = _ended(admin, job, verb), known.kept
    with doubts(
        f"request {identity} to {verb} job {job!r} is left", f"ask again with the id {identity}, which asks once"
    ):
        requests = Requests(admin.directory(job))
        if ended:
            request = requests.note(identity, verb, by, given, ended)
        else:
            request = requests.ask(identity, verb, by, given, kept=kept)
    _check_verb(request, job, verb)
    if request.arguments != given:
        raise Conflict(
            f"Request {identity} of job {job!r} asks to {verb}{_shown(request.arguments)}, and now to "
            f"{verb}{_shown(given)}: take another id."
        )
    if not request.state.final:
        try:
            with suppress(*([Leaderless] if kept else [])):
                admin.ask_to_look(job)
        except StoreError as error:
            raise Unknown(
                f"Request {identity} to {verb} job {job!r} is left, and it is unknown whether the leader noticed: "
                f"ask again with the id {identity}, which asks once. ({error})"
            ) from error
    return request


def _ended(admin: JobAdmin, job: str, verb: str) -> str:
    """Return a sentence if the job has already ended as this verb ends it; else empty."""
    # NoLeader: it has ended otherwise. Or it has no leader (``Leaderless``), and the verb is not kept until then.
    try:
        admin.check_led(job)
    except Leaderless:
        status = JobStatus(admin.directory(job)).read()
        if status is OF_LEADER[verb].ends:
            return f"The job is {status.value} already: nothing is changed."
        if status.globally_terminal:
            raise NoLeader(f"Job {job!r} is {status.value}: no leader, and nothing to {verb}.") from None
        if not OF_LEADER[verb].kept:
            raise
    return ""


def _at_once(admin: JobAdmin, job: str, verb: str, identity: str, by: str, given: Mapping[str, str]) -> Request:
    """Carry a request out and note it among the others, unless it was carried out before."""
    requests = Requests(admin.directory(job))
    if (known := requests.load(identity)) is not None:
        _check_verb(known, job, verb)
        return known
    said = _pause(admin, job, by, given.get(REASON, "")) if verb == PAUSE else _resume(admin, job)
    try:
        return Requests(admin.directory(job)).note(identity, verb, by, given, said)
    except (StoreError, LeaderError) as error:  # it is done all the same
        return Request(identity, verb, 0, by, dict(given), State.DONE, f"{said} It could not be noted: {error}")


def _pause(admin: JobAdmin, job: str, by: str, reason: str) -> str:
    leader, lease, new = pausing.pause(admin, job, Pause(int(time.time()), by, reason))
    since = "" if new else ", and was so before"
    return f"The job is paused{since}: {_leader(leader, lease)}, and no process takes over."


def _resume(admin: JobAdmin, job: str) -> str:
    leader, lease, before = pausing.resume(admin, job)
    if before is None:
        return f"The job was not paused: {_leader(leader, lease)}."
    return f"The job was {before}, and goes on: {_leader(leader, lease)}, and standbys take over when they must."


def _leader(leader: LeaderDirectory, lease: Lease) -> str:
    if lease.mode is Mode.RELEASED:
        return "it has no leader"
    return f"{lease.contender}, which holds its lease in epoch {leader.epoch}, stays"


def _check_verb(request: Request, job: str, verb: str) -> None:
    if request.damaged:
        raise Conflict(f"Request {request.id} of job {job!r}: {request.said}")
    if request.verb != verb:
        raise Conflict(f"Request {request.id} of job {job!r} asks to {request.verb}, not to {verb}: take another id.")


def _checked(verb: str, arguments: Mapping[str, str]) -> dict[str, str]:
    known = [each.encode_name for each in msgspec.structs.fields(OF_LEADER[verb].takes)]
    if unknown := sorted(set(arguments) - set(known)):
        raise InvalidName(f"A request to {verb} takes {', '.join(known) or 'no arguments'}, and no {unknown[0]!r:.60}.")
    if verb == RESTART_FROM and not arguments.get(FROM):
        raise InvalidName("A request to restart from a savepoint says from which: its URI, or a name of the job's own.")
    if verb == RESTART_QUERY:
        check_word(arguments.get(QUERY, ""), "a query")
    hosts = text_of(hosts_of(arguments.get(EXCLUDE, "")))
    return check_arguments({**arguments, EXCLUDE: hosts} if hosts else arguments)


def _shown(arguments: Mapping[str, str]) -> str:
    told = ", ".join(f"{name} {text}" for name, text in sorted(arguments.items()))
    return f" ({told})" if told else ""


def once_led(do: Callable[[], T], end: float) -> T:
    """Ask the leader of a job for something; wait for a leader until ``end``, in seconds of the clock."""
    while True:
        try:
            return do()
        except (Leaderless, Fenced):  # the next one is on its way, or has just begun
            if now() >= end:
                raise
        BOOT_CLOCK.sleep(LOOK_S)


def find(admin: JobAdmin, job: str, identity: str) -> Request | None:
    """Return a request as it is now; None if there is none of that id (any more)."""
    # InvalidName: the job or the request cannot have such a name. NoLeader: there is no such job.
    return Requests(admin.directory(job)).load(check_word(identity, "a request"))


def new_id() -> str:
    """Return an id that sorts by the time of this host, for people, and is new."""
    return f"{time.time_ns() // 1_000_000:013d}-{uuid.uuid4().hex[:6]}"
