"""Whether a request is meant for this leader. No I/O.

Asked before a request is handled, and whether this process still leads is asked again before it is answered: else a
zombie could answer for an epoch that is over.
"""

from enum import Enum
from typing import Protocol

import msgspec

from leader import names

SESSION_ID_HEADER = "X-Ha-Session-Id"
EPOCH_HEADER = "X-Ha-Epoch"
VERDICT_HEADER = "X-Ha-Verdict"

MAX_DIGITS = 18
"""Of an epoch as text: more than any has, and Python reads as many in no time."""


class Verdict(Enum):
    """What a job master says to a request."""

    ACCEPTED = "accepted"
    MISSING = "missing"
    """It names no session id or no epoch, or none that can be read. It was not executed."""
    OLD = "old"
    """It is meant for an earlier leader. It was not executed."""
    UNKNOWN = "unknown"
    """It is meant for a leader that this one does not know: a later one, or a forged one. It was not executed."""
    NOT_LEADING = "not-leading"
    """This process does not lead. It was not executed."""
    ENDED = "ended"
    """The leadership ended while the request was handled: whether that counts is for the next leader to say."""

    @property
    def executed(self) -> bool:
        """Whether the request may have been executed."""
        return self in (Verdict.ACCEPTED, Verdict.ENDED)


STATUSES = {
    Verdict.ACCEPTED: 200,
    Verdict.MISSING: 400,
    Verdict.OLD: 409,
    Verdict.UNKNOWN: 409,
    Verdict.NOT_LEADING: 421,  # a misdirected request: RFC 9110 lets clients try elsewhere, whatever the method
    Verdict.ENDED: 503,
}

_SENTENCES = {
    Verdict.MISSING: f"The request names no leader: send {SESSION_ID_HEADER} and {EPOCH_HEADER}.",
    Verdict.OLD: "The request is meant for an earlier leader: look up the present one, and send it again.",
    Verdict.UNKNOWN: "The request is meant for a leader that is not known here: look it up again.",
    Verdict.NOT_LEADING: "This process does not lead the job: look up who does.",
    Verdict.ENDED: "The leadership ended while the request was handled: ask the next leader what became of it.",
}


class Leading(Protocol):
    """What :class:`ha.leadership.Leadership` is to this."""

    job: str
    epoch: int
    session_id: str

    def is_leader(self) -> bool:
        """Whether this process leads now."""


class Rejected(Exception):
    """A request that is not answered as it wanted; what to say instead.

    Attributes:
        verdict: why.
        status: of HTTP.
        headers: likewise.
        body: JSON: ``error`` (a sentence), ``verdict``, ``job``, and unless this process does not lead the present
            ``epoch`` and ``session_id``.
    """

    def __init__(self, leader: Leading, verdict: Verdict) -> None:
        """Say what became of a request to this leader."""
        super().__init__(_SENTENCES[verdict])
        self.verdict = verdict
        self.status = STATUSES[verdict]
        said: dict[str, str | int] = {"error": _SENTENCES[verdict], "verdict": verdict.value, "job": leader.job}
        if verdict not in (Verdict.NOT_LEADING, Verdict.ENDED):
            said |= {"epoch": leader.epoch, "session_id": leader.session_id}
        self.body = msgspec.json.encode(said)
        self.headers = {
            VERDICT_HEADER: verdict.value,
            "Content-Type": "application/json",
            "Content-Length": str(len(self.body)),
        }


def check(leader: Leading, session_id: str | None, epoch: str | int | None) -> Verdict:
    """Say whether a request that names this session id and epoch is meant for this leader."""
    if not leader.is_leader():
        return Verdict.NOT_LEADING
    number = _epoch(epoch)
    if session_id is None or not names.is_session_id(session_id) or number is None:
        return Verdict.MISSING
    if (number, session_id) == (leader.epoch, leader.session_id):
        return Verdict.ACCEPTED
    return Verdict.OLD if number < leader.epoch else Verdict.UNKNOWN


def accept(leader: Leading, session_id: str | None, epoch: str | int | None) -> None:
    """Return if the request may be handled.

    Raises:
        Rejected: it may not.
    """
    verdict = check(leader, session_id, epoch)
    if verdict is not Verdict.ACCEPTED:
        raise Rejected(leader, verdict)


def dismiss(leader: Leading) -> dict[str, str]:
    """Return the headers with which a request that was handled is answered.

    Raises:
        Rejected: the leadership has ended meanwhile.
    """
    if not leader.is_leader():
        raise Rejected(leader, Verdict.ENDED)
    return {
        VERDICT_HEADER: Verdict.ACCEPTED.value,
        SESSION_ID_HEADER: leader.session_id,
        EPOCH_HEADER: str(leader.epoch),
    }


def _epoch(epoch: str | int | None) -> int | None:
    if isinstance(epoch, str):
        epoch = int(epoch) if epoch.isascii() and epoch.isdecimal() and len(epoch) <= MAX_DIGITS else None
    return epoch
