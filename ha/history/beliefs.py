"""S1: at any instant at most one contender believes that it leads, or that nobody else can."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ha.history.events import Believed, Event, Suspected
from ha.history.violation import Violation

NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Belief:
    """A time during which a contender believed something."""

    contender: str
    begins: float
    ends: float


def beliefs(events: Sequence[Event], *, leads: bool) -> Iterator[Belief]:
    """Yield when each contender believed to lead, or else to hold the lease, in the order in which that ended.

    A belief counts until its time, whatever became of the process: it may be paused, and may wake up again. But one
    whose process was taken for ended counts until then, if that was right: if it changed its mind no more.
    """
    present: dict[str, tuple[float, float]] = {}
    for event in _with_ends(events):
        until = event.leads_until if leads else event.holds_until
        began, known = present.get(event.contender, (NEVER, NEVER))
        if event.at < known:  # it still believed when it changed its mind
            if until is not None and until > event.at:
                present[event.contender] = began, until
                continue
            yield Belief(event.contender, began, event.at)
            del present[event.contender]
        elif known > NEVER:
            yield Belief(event.contender, began, known)
            del present[event.contender]
        if until is not None and until > event.at:
            present[event.contender] = event.at, until
    for contender, (began, until) in present.items():
        yield Belief(contender, began, until)


def _with_ends(events: Sequence[Event]) -> list[Believed]:
    """The changes of beliefs, and the ends of those whose process was rightly taken for ended."""
    changes = [event for event in events if isinstance(event, Believed)]
    ends = []
    for event in events:
        if not isinstance(event, Suspected):
            continue
        theirs = [each for each in changes if each.contender == event.contender]
        last = next((each for each in reversed(theirs) if each.at < event.at), None)
        until = NEVER if last is None or last.holds_until is None else last.holds_until
        if not any(event.at <= each.at < until for each in theirs):
            ends.append(Believed(event.at, event.job, event.contender, None, None))
    # Of two things at one time the end comes first: it is why the other could begin.
    return sorted([*ends, *changes], key=lambda each: each.at) if ends else changes


def check_beliefs(events: Sequence[Event]) -> Iterator[Violation]:
    """Yield each overlap of two contenders' beliefs in one job."""
    for leads, what in ((True, "believed to lead"), (False, "believed that nobody else could lead")):
        last: Belief | None = None
        for belief in sorted(beliefs(events, leads=leads), key=lambda each: each.begins):
            if last is not None and last.contender != belief.contender and belief.begins < last.ends:
                both = min(last.ends, belief.ends) - belief.begins
                yield Violation(
                    "S1",
                    belief.begins,
                    f"{last.contender} and {belief.contender} both {what}, for {both:.3f} s: {last.contender} until "
                    f"{last.ends:.3f}, {belief.contender} from {belief.begins:.3f}.",
                )
            if last is None or belief.ends > last.ends:
                last = belief
