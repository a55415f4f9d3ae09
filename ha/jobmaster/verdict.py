"""The verdict: whether a request is meant for this leader. No I/O.

It is asked for before a request is handled. Whether this process still leads is asked again before the answer is sent:
otherwise a zombie could answer for an epoch that is over.
"""

from enum import Enum
from typing import Protocol

import msgspec

from leader.layout import names
from store.errors import HaError

SESSION_ID_HEADER = "X-Ha-Session-Id"
EPOCH_HEADER = "X-Ha-Epoch"
VERDICT_HEADER = "X-Ha-Verdict"

MAX_DIGITS = 18  # the length of an epoch as text: longer than any epoch, and short enough to be parsed at once


class Verdict(Enum):
    """A job master's verdict on a request."""

    ACCEPTED = "accepted"
    MISSING = "missing"
    """The request names no readable session id or epoch. It was not executed."""
    OLD = "old"
    """The request is meant for an earlier leader. It was not executed."""
    UNKNOWN = "unknown"
    """The request is meant for a leader that is not known here, a later or a forged one. It was not executed."""
    NOT_LEADING = "not-leading"
    """This process does not lead. The request was not executed."""
    DENIED = "denied"
    """The caller may not make this request, or it is too long. It was not executed."""
    ENDED = "ended"
    """The leadership ended while the request was handled. Only the next leader can say whether it counts."""

    @property
    def executed(self) -> bool:
        """Whether the request may have been executed."""
        return self in (Verdict.ACCEPTED, Verdict.ENDED)


_ANSWERS = {
    Verdict.MISSING: (400, f"The request names no leader: send {SESSION_ID_HEADER} and {EPOCH_HEADER}."),
    Verdict.OLD: (409, "The request is meant for an earlier leader: look up the present one, and send it again."),
    Verdict.UNKNOWN: (409, "The request is meant for a leader that is not known here: look it up again."),
    # A misdirected request: RFC 9110 lets clients try elsewhere, whatever the method.
    Verdict.NOT_LEADING: (421, "This process does not lead the job: look up who does."),
    Verdict.DENIED: (403, "You may not make this request."),
    Verdict.ENDED: (503, "The leadership ended while the request was handled: ask the next leader what became of it."),
}
"""Of each that rejects a request, the HTTP status and a sentence."""


class LeaderNow(Protocol):
    """The part of a :class:`ha.leadership.leadership.Leadership` that is used here."""

    job: str
    epoch: int
    session_id: str

    def is_leader(self) -> bool:
        """Whether this process leads now."""


class Rejected(HaError):
    """A request was rejected; this is the answer to send.

    Attributes:
        verdict: the reason.
        status: the HTTP status.
        headers: the HTTP headers.
        body: JSON: ``error`` (a sentence), ``verdict``, ``job``, and the present ``epoch`` and ``session_id`` unless
            this process does not lead, or the caller is denied.
    """

    def __init__(self, leader: LeaderNow, verdict: Verdict) -> None:
        """Make the answer to a request to this leader."""
        self.status, sentence = _ANSWERS[verdict]
        super().__init__(sentence)
        self.verdict = verdict
        said: dict[str, str | int] = {"error": sentence, "verdict": verdict.value, "job": leader.job}
        if verdict not in (Verdict.NOT_LEADING, Verdict.DENIED, Verdict.ENDED):
            said |= {"epoch": leader.epoch, "session_id": leader.session_id}
        self.body = msgspec.json.encode(said)
        self.headers = {
            VERDICT_HEADER: verdict.value,
            "Content-Type": "application/json",
            "Content-Length": str(len(self.body)),
        }


def check(leader: LeaderNow, session_id: str | None, epoch: str | int | None) -> Verdict:
    """Return the verdict on a request that names this session id and epoch."""
    if not leader.is_leader():
        return Verdict.NOT_LEADING
    number = _epoch(epoch)
    if session_id is None or not names.is_session_id(session_id) or number is None:
        return Verdict.MISSING
    if (number, session_id) == (leader.epoch, leader.session_id):
        return Verdict.ACCEPTED
    return Verdict.OLD if number < leader.epoch else Verdict.UNKNOWN


def accept(leader: LeaderNow, session_id: str | None, epoch: str | int | None) -> None:
    """Return if the request may be handled, else raise ``Rejected``."""
    verdict = check(leader, session_id, epoch)
    if verdict is not Verdict.ACCEPTED:
        raise Rejected(leader, verdict)


def dismiss(leader: LeaderNow) -> dict[str, str]:
    """Return the headers for the answer to a request; ``Rejected`` if the leadership ended while it was handled."""
    if not leader.is_leader():
        raise Rejected(leader, Verdict.ENDED)
    own = {SESSION_ID_HEADER: leader.session_id, EPOCH_HEADER: str(leader.epoch)}
    return {VERDICT_HEADER: Verdict.ACCEPTED.value, **own}


def _epoch(epoch: str | int | None) -> int | None:
    if isinstance(epoch, str):
        epoch = int(epoch) if epoch.isascii() and epoch.isdecimal() and len(epoch) <= MAX_DIGITS else None
    return epoch
