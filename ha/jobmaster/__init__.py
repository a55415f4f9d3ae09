"""Calls to a job master, and its side of them: each request names the leader it is meant for, so no zombie is obeyed.

A worker calls with the session id and epoch of the leader that it knows. A job master rejects every other session id,
and everything once it has stopped leading. So a request reaches its leader or none. The caller learns one of three
outcomes: answered, refused (not executed), or unknown.

It does NOT promise that the leader still leads when its answer arrives, nor that no fence undoes what the leader did.
Imports are lazy: a worker never pays for the server's side.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ha.jobmaster.call_errors import CallRefused, CallUnknown
    from ha.jobmaster.caller import Caller
    from ha.jobmaster.exchange import Reply
    from ha.jobmaster.guard import GuardedApplication, guarded
    from ha.jobmaster.master import JobMaster, NoEndpoint
    from ha.jobmaster.security import Security
    from ha.jobmaster.serving import serve
    from ha.jobmaster.verdict import Rejected, Verdict, check

_PLACES = {
    "CallRefused": "call_errors",
    "CallUnknown": "call_errors",
    "Caller": "caller",
    "GuardedApplication": "guard",
    "JobMaster": "master",
    "NoEndpoint": "master",
    "Rejected": "verdict",
    "Reply": "exchange",
    "Security": "security",
    "Verdict": "verdict",
    "check": "verdict",
    "guarded": "guard",
    "serve": "serving",
}

__all__ = [
    "CallRefused",
    "CallUnknown",
    "Caller",
    "GuardedApplication",
    "JobMaster",
    "NoEndpoint",
    "Rejected",
    "Reply",
    "Security",
    "Verdict",
    "check",
    "guarded",
    "serve",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'ha.jobmaster' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # laziness is the point

    return globals().setdefault(name, getattr(import_module(f"ha.jobmaster.{_PLACES[name]}"), name))
