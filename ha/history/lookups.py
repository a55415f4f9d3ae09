"""R1 and R2: what readers were told. Epochs never go back, and every answer was published by a real grant."""

from collections.abc import Iterator, Sequence

from ha.history.events import Event, Granted, LookedUp, Published, Stored
from ha.history.tree import publications
from ha.history.violation import Violation

Answer = tuple[int, str, tuple[tuple[str, str], ...]]


def check_lookups(events: Sequence[Event], job: str, tolerance: float) -> Iterator[Violation]:
    """Yield each break of R1 and R2 in one job's events.

    Args:
        events: of one job, in order.
        job: the job's name.
        tolerance: seconds by which the file system's times may be off against the readers'.
    """
    lookups = [event for event in events if isinstance(event, LookedUp) and event.outcome == "leader"]
    known = _published(events, job)
    for event in lookups:
        since = known.get(_answer(event))
        if since is None or since > event.ended + tolerance:
            when = (
                "that was never published" if since is None else f"{since - event.ended:.3f} s before it was published"
            )
            yield Violation(
                "R2", event.ended, f"{event.reader} was told epoch {event.epoch}, {dict(event.endpoints)}, {when}."
            )
    yield from _order([event for event in lookups if _answer(event) in known])


def _answer(event: LookedUp) -> Answer:
    return event.epoch, event.session_id, tuple(sorted(event.endpoints.items()))


def _published(events: Sequence[Event], job: str) -> dict[Answer, float]:
    """Every answer that may be given, and since when: what the file system told, or else what leaders have said."""
    found: dict[Answer, float] = {}
    granted = {event.session_id for event in events if isinstance(event, Granted)}
    if any(isinstance(event, Stored) for event in events):
        for publication in publications(events, job):
            if (information := publication.information) is not None and information.session_id in granted:
                endpoints = tuple(sorted(information.endpoints.items()))
                found.setdefault((information.epoch, information.session_id, endpoints), publication.since)
        return found
    for event in events:
        if isinstance(event, Published):
            found.setdefault((event.epoch, event.session_id, tuple(sorted(event.endpoints.items()))), event.at)
    return found


def _order(lookups: Sequence[LookedUp]) -> Iterator[Violation]:
    newest: dict[str, LookedUp] = {}
    for event in sorted(lookups, key=lambda each: each.ended):
        known = newest.get(event.reader)
        if known is not None and event.at >= known.ended:
            if event.epoch < known.epoch:
                yield Violation(
                    "R1", event.ended, f"{event.reader} was told epoch {known.epoch}, and later {event.epoch}."
                )
            elif event.epoch == known.epoch and event.session_id != known.session_id:
                yield Violation("R1", event.ended, f"{event.reader} was told two sessions of epoch {event.epoch}.")
        if known is None or event.epoch >= known.epoch:
            newest[event.reader] = event
