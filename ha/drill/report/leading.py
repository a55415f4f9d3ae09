"""Who led, and whose command ran, in spans of time: what the lanes of contenders show."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ha.drill.report.spans import Span
from ha.history.events import Believed, Ended, Event, Granted, Ran, Revoked

NEVER = float("-inf")

_GRANT = 1.0
"""Seconds by which a grant may come before the belief that belongs to it."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A contender believed to lead, without a break.

    Attributes:
        contender: who.
        begins: when it began to believe.
        ends: when it stopped, or when its belief ran out.
        died: when its process ended, if that came first: from then on nobody led, though nobody else could know it.
        epoch: that it was granted; None if the history does not say.
    """

    contender: str
    begins: float
    ends: float
    died: float | None = None
    epoch: int | None = None

    @property
    def alive(self) -> Span:
        """When it believed to lead and there was somebody to believe it."""
        return self.begins, self.ends if self.died is None else self.died


def stays(events: Sequence[Event]) -> list[Stay]:
    """Return who believed to lead and when; renewals of a belief make one stay, another epoch makes another.

    Args:
        events: in order.

    Returns:
        The stays, in the order in which they ended or were last heard of.
    """
    lanes: dict[str, _Lane] = {}
    for event in events:
        match event:
            case Believed():
                until = NEVER if event.leads_until is None else event.leads_until
                lanes.setdefault(event.contender, _Lane()).believed(event.contender, event.at, until)
            case Granted():
                lanes.setdefault(event.contender, _Lane()).granted(event.at, event.epoch)
            case Revoked() if event.contender in lanes:
                lanes[event.contender].stop(event.at)
            case Ended() if event.contender in lanes:
                lanes[event.contender].ended(event.at)
            case _:
                pass
    return [stay for lane in lanes.values() for stay in lane.finish()]


class _Lane:
    """One contender's stays."""

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
        return self._grant[1] if self._grant is not None and at - self._grant[0] <= _GRANT else None


def commands(events: Sequence[Event]) -> dict[str, list[Span]]:
    """Return when each contender's command ran; one that was never seen to end runs for ever.

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
