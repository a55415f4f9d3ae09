"""Lanes of a timeline: what is shown of each contender, reader and query of a drill, in seconds since it began."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from ha.drill.outcome import Outcome
from ha.drill.report.figures import count, seconds
from ha.drill.report.spans import Span, Stay, by_contender, commands, complement, shared, stays, total, union
from ha.history.events import Believed, Completed, Event, Granted, LookedUp, Ran

MAX_LANES = 16
"""Of contenders, readers or queries; a sentence says how many more there are."""

MAX_EPOCHS = 4
"""A longer list of epochs is summed up."""

PAUSE_S, PAUSE_FACTOR = 2.0, 3.0
"""A pause between batches is worth a word if it is this long, and so many times the usual one."""

_RECORDED = re.compile(r"(?P<name>.+)-(?P<process>\d+)-[0-9a-f]{8}\.(?P<number>\d+)")
"""Unique name that a recorder gives a reader: name, process id, random digits, number."""

_SHORT_NAMES = ("{name}", "{name} .{number}", "{name} {process}", "{name} {process}.{number}")
"""Names for people, the shortest first."""


@dataclass
class Lane:
    """One strip of a timeline.

    Attributes:
        name: stands at its left.
        sums: one or two lines that stand at its right.
        spans: by kind: ``leads``, ``lapsing``, ``runs``, ``nobody``, ``two``, ``snapshot``, ``zookeeper``, ``hdfs``,
            ``stale``, ``other``, ``none``, ``unreachable``, ``slow``, ``batch``, ``again``, ``pause``.
    """

    name: str
    sums: tuple[str, ...] = ()
    spans: dict[str, list[Span]] = field(default_factory=dict)


@dataclass(frozen=True)
class Window:
    """The part of the clock that a timeline shows.

    Attributes:
        began: its second 0, on the clock of the events.
        seconds: its length; more than 0.
    """

    began: float
    seconds: float

    @property
    def ends(self) -> float:
        """The last moment that is shown, on the clock of the events."""
        return self.began + self.seconds

    def shows(self, at: float) -> bool:
        """Return whether it shows a moment."""
        return self.began <= at <= self.ends

    def clipped(self, spans: Iterable[Span]) -> list[Span]:
        """Return the parts that it shows, in seconds since it began."""
        return [
            (max(begins - self.began, 0.0), min(ends - self.began, self.seconds))
            for begins, ends in spans
            if ends >= self.began and begins <= self.ends
        ]


def window(outcome: Outcome, events: Sequence[Event], least: float = 0.0) -> Window:
    """Return the window that shows a whole drill.

    Args:
        outcome: when it began and how long it took.
        events: its history.
        least: seconds that the window has at least, so that timelines can be compared.
    """
    times = [event.at for event in events]
    began = outcome.began or min([*times, *(fault.begins for fault in outcome.faults)], default=0.0)
    times += [event.ended for event in events if isinstance(event, LookedUp | Completed)]
    last = max([*times, *(fault.begins for fault in outcome.faults)], default=began)
    return Window(began, max(outcome.seconds, least, last - began, 1.0))


def lanes(events: Sequence[Event], shown: Window) -> list[Lane]:
    """Return the lanes of a history.

    Args:
        events: in the order of time.
        shown: the window.
    """
    lookups: dict[str, list[LookedUp]] = {}
    batches: dict[str, list[Completed]] = {}
    for event in events:
        if isinstance(event, LookedUp) and shown.shows(event.ended):
            lookups.setdefault(event.reader, []).append(event)
        elif isinstance(event, Completed) and shown.shows(event.ended):
            batches.setdefault(event.query, []).append(event)
    names = _reader_names(sorted(lookups))
    until = _watched_until(events, shown)
    found = [
        *_limited(_contenders(events, shown), "contenders"),
        *_exceptions(events, shown, until),
        *_limited([_reader(names[each], lookups[each], shown) for each in sorted(lookups)], "readers"),
        *_limited(
            [_query("batches" if len(batches) == 1 else each, batches[each], shown, until) for each in sorted(batches)],
            "queries",
        ),
    ]
    return found or [Lane("", ("No events were recorded.",))]


def _watched_until(events: Sequence[Event], shown: Window) -> float:
    """The end of the last lookup or batch. Later nobody misses anything, because the drill is being cleared."""
    ends = [event.ended for event in events if isinstance(event, LookedUp | Completed)]
    return min(max(ends, default=shown.ends), shown.ends)


def _limited(found: Sequence[Lane], what: str) -> list[Lane]:
    if len(found) <= MAX_LANES:
        return list(found)
    return [*found[:MAX_LANES], Lane("", (f"{len(found) - MAX_LANES} more {what} are not shown.",))]


# --- contenders


def _contenders(events: Sequence[Event], shown: Window) -> list[Lane]:
    stayed, ran = stays(events), commands(events)
    # Not those who completed a batch: these are drivers, processes of other names below their sidecars.
    names = {event.contender for event in events if isinstance(event, Believed | Granted | Ran)}
    return [
        _contender(name, [stay for stay in stayed if stay.contender == name], ran.get(name, []), shown)
        for name in sorted(names)
    ]


def _contender(name: str, stayed: Sequence[Stay], ran: Sequence[Span], shown: Window) -> Lane:
    seen = [stay for stay in stayed if stay.ends > shown.began and stay.begins < shown.ends]
    led = shown.clipped(stay.alive for stay in seen)
    spans = {
        "leads": led,
        "lapsing": shown.clipped((stay.died, stay.ends) for stay in seen if stay.died is not None),
        "runs": union(shown.clipped(ran)),
    }
    return Lane(name, (f"led {seconds(total(led))}" if seen else "never led", _epochs(seen)), spans)


def _epochs(seen: Sequence[Stay]) -> str:
    epochs = [stay.epoch for stay in seen if stay.epoch is not None]
    if len(epochs) > MAX_EPOCHS:
        return f"{len(epochs)} epochs, {epochs[0]} to {epochs[-1]}"
    return f"epoch{'s' * (len(epochs) > 1)} {', '.join(map(str, epochs))}" if epochs else ""


def _exceptions(events: Sequence[Event], shown: Window, until: float) -> list[Lane]:
    """The times without a leader, with two leaders and with two drivers; no lane for what never was."""
    led, ran = by_contender(stays(events)), commands(events)
    first = min((begins for spans in led.values() for begins, _ in spans), default=shown.began)
    known = any(isinstance(event, Believed | Granted | Ran) for event in events)
    watched = max(shown.began, first), until
    nobody = complement([span for spans in led.values() for span in spans], watched) if known else []
    found = (("no leader", "nobody", nobody), ("two leaders", "two", shared(led)), ("two drivers", "two", shared(ran)))
    clipped = [(name, kind, shown.clipped(spans)) for name, kind, spans in found]
    return [Lane(name, (f"{seconds(total(spans))} in all",), {kind: spans}) for name, kind, spans in clipped if spans]


# --- readers


def _reader(name: str, lookups: Sequence[LookedUp], shown: Window) -> Lane:
    """Answers are shown where they arrived, failures and slow lookups for the time that they took."""
    pixel = shown.seconds / 800
    spans: dict[str, list[Span]] = {}
    counts: Counter[str] = Counter()
    for lookup in sorted(lookups, key=lambda each: each.ended):
        kind = _kind(lookup)
        counts[kind] += 1
        begins = lookup.at if kind in {"none", "unreachable"} else lookup.ended - pixel
        spans.setdefault(kind, []).append((begins, lookup.ended))
        if _took(lookup) > 3 * pixel:
            spans.setdefault("slow", []).append((lookup.at, lookup.ended))
    worst = max(lookups, key=_took)
    failed = counts["unreachable"]
    said = f", {count(failed)} failed" if failed < len(lookups) else ", all failed"
    return Lane(
        name,
        (
            f"{count(len(lookups))} lookups" + (said if failed else ""),
            f"slowest {seconds(_took(worst))} at {max(worst.at - shown.began, 0):.0f} s",
        ),
        {kind: shown.clipped(union(found, 3 * pixel)) for kind, found in spans.items()},
    )


def _kind(lookup: LookedUp) -> str:
    if lookup.outcome != "leader":
        return lookup.outcome
    if lookup.stale:
        return "stale"
    return lookup.source if lookup.source in {"snapshot", "zookeeper", "hdfs"} else "other"


def _took(lookup: LookedUp) -> float:
    return lookup.ended - lookup.at


def _reader_names(readers: Sequence[str]) -> dict[str, str]:
    """For each reader, the shortest form of its name that tells it from the readers whose names begin alike."""
    recorded = {reader: parts.groupdict() for reader in readers if (parts := _RECORDED.fullmatch(reader))}
    names = {reader: reader for reader in readers}
    for name in {parts["name"] for parts in recorded.values()} - names.keys():
        alike = {reader: parts for reader, parts in recorded.items() if parts["name"] == name}
        for form in _SHORT_NAMES:
            short = {reader: form.format(**parts) for reader, parts in alike.items()}
            if len(set(short.values())) == len(short):
                names |= short
                break
    return names


# --- batches


def _query(name: str, batches: Sequence[Completed], shown: Window, until: float) -> Lane:
    """A batch that was completed before is no progress: a successor says it again of the batch that it found."""
    new: list[Completed] = []
    again: list[Completed] = []
    for each in sorted(batches, key=lambda each: each.ended):
        (again if new and each.batch <= new[-1].batch else new).append(each)
    pause = _pause([each.ended for each in new], until)
    sums = [f"batch {new[0].batch} to {new[-1].batch}"]
    if pause:
        sums.append(f"{seconds(pause[1] - pause[0])} without a new batch")
    if again:
        sums[0] += f", {count(len(again))} again"
    spans = {
        "batch": shown.clipped((each.ended, each.ended) for each in new),
        "again": shown.clipped((each.ended, each.ended) for each in again),
        "pause": shown.clipped([pause] if pause else []),
    }
    return Lane(name, tuple(sums), spans)


def _pause(completed: Sequence[float], until: float) -> Span | None:
    """The longest time without a new batch, if it stands out."""
    pauses = list(pairwise([*(at for at in completed if at < until), until]))
    if not pauses:
        return None
    longest = max(pauses, key=lambda pause: pause[1] - pause[0])
    lasts, usual = longest[1] - longest[0], median(ends - begins for begins, ends in pauses)
    return longest if lasts >= PAUSE_S and lasts > PAUSE_FACTOR * usual else None
