"""Checker of what leaders were told and published, and of what readers heard: S5 of leaderships, R1 and R2.

Readers are judged by this. So it shares nothing with :mod:`leader.layout.information`, by which they read: a mistake
there would otherwise be right by definition.
"""

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple
from urllib.parse import unquote

from ha.history.events import Event, Granted, LookedUp, Published, Stored, Violation
from ha.history.highest import Highest
from leader.layout.names import LeaderDirectory

# --- the answers that leaders have published, read from the changes of the file system


class PublishedAnswer(NamedTuple):
    """An answer, and since when all its parts are in the file system."""

    since: float
    epoch: int  # this and the session id are those of the leader directory
    session_id: str
    endpoints: tuple[tuple[str, str], ...]  # names and addresses, sorted


def published_answers(events: Sequence[Event]) -> Iterator[PublishedAnswer]:
    """Yield each answer of one job as soon as the last of its entries has been made."""
    # An entry counts for the directory in which it was made, if it bears the directory's epoch.
    parts: dict[tuple[str, str], dict[str, str]] = {}  # by a leader directory, and a publication below it
    for event in events:
        if not isinstance(event, Stored) or event.operation not in ("make", "rename"):
            continue
        directory, _, entry = (event.target or event.path).partition("/record/endpoint~")
        epoch, _, session_id = directory.partition("-")
        fields = entry.split("~", 3)
        if len(fields) != 4 or fields[0] != epoch:  # noqa: PLR2004  # epoch, version, count, name=address
            continue
        _, version, count, endpoint = fields
        name, _, address = endpoint.partition("=")
        found = parts.setdefault((directory, version), {})
        found[name] = unquote(address.replace("_", "%"))
        if len(found) == max(1, int(count)):
            endpoints = tuple(sorted(found.items())) if int(count) else ()
            yield PublishedAnswer(event.at, int(epoch), session_id, endpoints)


# --- S5 of leaderships: what a leader was told is in the file system by then


def check_leaderships(events: Sequence[Event], tolerance: float) -> Iterator[Violation]:
    """Yield each grant and publication that was acknowledged, and that the store does not hold by then."""
    stored: dict[tuple[object, ...], float] = {}
    for event in events:
        claimed = LeaderDirectory.parse(event.target) if isinstance(event, Stored) else None
        if claimed is not None:
            stored.setdefault((claimed.epoch, claimed.session_id), event.at)
    for answer in published_answers(events):
        stored.setdefault(answer[1:], answer.since)
    for event in events:
        match event:
            case Granted():
                what: tuple[object, ...] = event.epoch, event.session_id
            case Published():
                what = _answer(event)
            case _:
                continue
        if stored.get(what, inf) > event.at + tolerance:
            sentence = f"{event.contender} was told that {what} is stored, and the store does not hold it."
            yield Violation("S5", event.at, sentence)


# --- R1 and R2: a reader is told epochs that never go back, and answers that a real grant has published

_Answer = tuple[int, str, tuple[tuple[str, str], ...]]


def check_lookups(events: Sequence[Event], tolerance: float) -> Iterator[Violation]:
    """Yield each break of R1 and R2 in one job's events; see :func:`check`."""
    lookups = [event for event in events if isinstance(event, LookedUp) and event.outcome == "leader"]
    known = _published(events)
    for event in lookups:
        since = known.get(_answer(event))
        if since is None or since > event.ended + tolerance:
            early = f"{since - event.ended:.3f} s before it was published" if since is not None else ""
            answer = f"epoch {event.epoch}, {dict(event.endpoints)}, {early or 'that was never published'}"
            yield Violation("R2", event.ended, f"{event.reader} was told {answer}.")
    yield from _order(lookups)


def _answer(event: LookedUp | Published) -> _Answer:
    return event.epoch, event.session_id, tuple(sorted(event.endpoints.items()))


def _published(events: Sequence[Event]) -> dict[_Answer, float]:
    """Every correct answer, and since when it is one: from the file system's changes, else from what leaders said.

    A leader says that it has published when it has been told so. Readers may see it earlier, not before the grant.
    """
    found: dict[_Answer, float] = {}
    granted: dict[tuple[int, str], float] = {}
    for event in events:
        if isinstance(event, Granted):
            granted.setdefault((event.epoch, event.session_id), event.at)  # it may be granted again: taken up
    if any(isinstance(event, Stored) for event in events):
        for answer in published_answers(events):
            since = granted.get(answer[1:3])
            if since is not None:
                found.setdefault(answer[1:], max(answer.since, since))
        return found
    for event in events:
        if isinstance(event, Published):
            found.setdefault(_answer(event), granted.get((event.epoch, event.session_id), event.at))
    return found


def _order(lookups: Sequence[LookedUp]) -> Iterator[Violation]:
    readers: dict[str, Highest[LookedUp]] = {}
    sessions: dict[tuple[str, int], str] = {}
    for event in sorted(lookups, key=lambda each: each.ended):
        highest = readers.setdefault(event.reader, Highest())
        known = highest.before(event.at)
        if known is not None and event.epoch < known[0]:
            yield Violation("R1", event.ended, f"{event.reader} was told epoch {known[0]}, and later {event.epoch}.")
        if sessions.setdefault((event.reader, event.epoch), event.session_id) != event.session_id:
            yield Violation("R1", event.ended, f"{event.reader} was told two sessions of epoch {event.epoch}.")
        highest.add(event.ended, event.epoch, event)
