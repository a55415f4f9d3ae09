"""Spans of time: who led, whose command ran, and what can be done with many spans."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ha.history.events import Believed, Ended, Event, Granted, Ran, Revoked

Span = tuple[float, float]
"""Beginning and end, in seconds."""

GRANT_S = 1.0
"""A grant may come this much before the belief that belongs to it."""


def union(spans: Iterable[Span], gap: float = 0.0) -> list[Span]:
    """Return the times that any of them covers, in order.

    Args:
        spans: in any order.
        gap: seconds; spans that are no further apart become one.
    """
    joined: list[Span] = []
    for begins, ends in sorted(span for span in spans if span[0] <= span[1]):
        if joined and begins <= joined[-1][1] + gap:
            joined[-1] = joined[-1][0], max(joined[-1][1], ends)
        else:
            joined.append((begins, ends))
    return joined


def complement(spans: Iterable[Span], within: Span) -> list[Span]:
    """Return the times of a span that none of them covers, in order."""
    free, at = [], within[0]
    for begins, ends in union(spans):
        if begins >= within[1]:
            break
        if begins > at:
            free.append((at, begins))
        at = max(at, ends)
    if at < within[1]:
        free.append((at, within[1]))
    return free


def shared(spans: Mapping[str, Sequence[Span]]) -> list[Span]:
    """Return the times that at least two of the owners cover, in order."""
    edges = sorted(
        edge for each in spans.values() for begins, ends in union(each) for edge in ((begins, 1), (ends, -1))
    )  # an end comes before a beginning of the same moment, so touching is not sharing
    found: list[Span] = []
    depth, since = 0, 0.0
    for at, step in edges:
        depth += step
        if (depth, step) == (2, 1):
            since = at
        elif (depth, step) == (1, -1) and at > since:
            found.append((since, at))
    return union(found)


def total(spans: Iterable[Span]) -> float:
    """Return how many seconds they cover."""
    return sum(ends - begins for begins, ends in union(spans))


@dataclass(frozen=True, slots=True)
class Stay:
    """A time during which a contender believed to lead, without a break.

    Attributes:
        contender: its name.
        begins: when it began to believe.
        ends: when it stopped, or when its belief ran out.
        died: when its process ended, if that came first: nobody led from then on, but nobody else could know.
        epoch: that it was granted; None if the history does not say.
    """

    contender: str
    begins: float
    ends: float
    died: float | None = None
    epoch: int | None = None

    @property
    def alive(self) -> Span:
        """The part of it during which the contender's process was there."""
        return self.begins, self.ends if self.died is None else self.died


def stays(events: Sequence[Event]) -> list[Stay]:
    """Return who believed to lead and when; renewals of a belief make one stay, another epoch makes another.

    Args:
        events: in order.

    Returns:
        The stays of each contender, in the order in which they ended or were last renewed.
    """
    contenders: dict[str, _Beliefs] = {}
    for event in events:
        match event:
            case Believed():
                until = float("-inf") if event.leads_until is None else event.leads_until
                contenders.setdefault(event.contender, _Beliefs()).believed(event.contender, event.at, until)
            case Granted():
                contenders.setdefault(event.contender, _Beliefs()).granted(event.at, event.epoch)
            case Revoked() if event.contender in contenders:
                contenders[event.contender].stop(event.at)
            case Ended() if event.contender in contenders:
                contenders[event.contender].ended(event.at)
            case _:
                pass
    return [stay for each in contenders.values() for stay in each.finish()]


class _Beliefs:
    """The stays of one contender, while its events are read."""

    def __init__(self) -> None:
        self._stays: list[Stay] = []
        self._open: Stay | None = None
        self._grant: tuple[float, int] | None = None

    def believed(self, contender: str, at: float, until: float) -> None:
        if self._open is not None and at > self._open.ends:
            self._close(self._open)
        if until <= at:
            self.stop(at)
        elif self._open is not None:
            self._open = replace(self._open, ends=until)
        else:
            if self._stays and self._stays[-1].ends > at:  # it died and is back before its old belief ran out
                self._stays[-1] = replace(self._stays[-1], ends=at)
            self._open = Stay(contender, at, until, epoch=self._epoch(at))

    def granted(self, at: float, epoch: int) -> None:
        self._grant = at, epoch
        present = self._open
        if present is None or at > present.ends:
            return
        if present.epoch is None:
            self._open = replace(present, epoch=epoch)
        elif present.epoch != epoch:
            self.stop(at)
            self._open = replace(present, begins=at, epoch=epoch)

    def stop(self, at: float) -> None:
        if self._open is not None:
            self._close(replace(self._open, ends=min(at, self._open.ends)))

    def ended(self, at: float) -> None:
        self._grant = None
        if self._open is not None:
            self._close(replace(self._open, died=at) if at < self._open.ends else self._open)

    def finish(self) -> list[Stay]:
        if self._open is not None:
            self._close(self._open)
        return self._stays

    def _close(self, stay: Stay) -> None:
        self._stays.append(stay)
        self._open = None

    def _epoch(self, at: float) -> int | None:
        return self._grant[1] if self._grant is not None and at - self._grant[0] <= GRANT_S else None


def commands(events: Sequence[Event]) -> dict[str, list[Span]]:
    """Return when each contender's command ran; one whose end is not in the history runs for ever.

    Args:
        events: in order.
    """
    since: dict[str, float] = {}
    found: dict[str, list[Span]] = {}
    for event in events:
        if not isinstance(event, Ran | Ended):
            continue
        if event.contender in since:
            found.setdefault(event.contender, []).append((since.pop(event.contender), event.at))
        if isinstance(event, Ran) and event.running:
            since[event.contender] = event.at
    for contender, at in since.items():
        found.setdefault(contender, []).append((at, float("inf")))
    return found


def by_contender(found: Sequence[Stay]) -> dict[str, list[Span]]:
    """Return when each contender led and was alive."""
    spans: dict[str, list[Span]] = {}
    for stay in found:
        spans.setdefault(stay.contender, []).append(stay.alive)
    return spans
