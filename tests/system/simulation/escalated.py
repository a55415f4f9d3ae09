"""Check of escalation: each failure counts once, and the next try waits for it, whoever makes it (TRIED).

How often the job has failed in a row is known between two bounds here: a leader that dies while it counts may have
counted. The pauses are written down once more, so that production's are judged and not repeated.
"""

import re
from collections.abc import Iterator

from ha.history.events import Stored, Violation
from leader.layout.names import SEQUENCE
from tests.system.simulation import escalation as what
from tests.system.simulation.escalation import Happened
from tests.system.simulation.sidecar import JOB
from tests.system.simulation.system import System

PAUSES = (0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0)
"""Seconds before the next try, by the number of failures; the last one for all that are more."""

ANY = len(PAUSES)
"""A number of failures after which none of these pauses is longer."""

ROUNDING = 1e-3

_COUNT = re.compile(rf"[^/]+/graph/attempts=([0-9]+)~([0-9]+)~[^/]*?{SEQUENCE}")
_GIVEN_UP = re.compile(rf"[^/]+/status=FAILED{SEQUENCE}")


def pause_after(failures: int) -> float:
    """Return the seconds before the next try."""
    return PAUSES[min(failures, len(PAUSES) - 1)]


class _Bounds:
    """How often the job has failed in a row: at least, and at most; likewise how many attempts are used up."""

    def __init__(self) -> None:
        self.least = self.most = self.least_used = self.most_used = 0
        self.given_up = False
        self.before_grant = 0
        """How often, at least, when the present leadership began."""
        self._hopeless, self._doubted = False, 0
        """Whether the last failure was; the epoch of a batch that may have been completed."""
        self._uncounted = False
        """Whether there is a failure since then; one that an earlier life covers counts no more."""
        self._remedied = False
        """Whether the last one that was counted may be hopeless."""

    @property
    def longest(self) -> float:
        """The longest pause that there may be: what no restart mends is tried once more, then every five minutes."""
        return PAUSES[-1] if self._remedied and self.most > 1 else pause_after(self.most)

    def begin_anew(self, *, certain: bool = True) -> None:
        self.least = self.least_used = 0
        if certain:
            self.most = self.most_used = 0
            self._remedied = False

    def learn(self, event: Happened) -> None:
        """Take what has happened into account."""
        match event.what:
            case what.GRANTED:
                self.before_grant = self.least
            case what.BEFORE:
                self.least = self.most = self.least_used = self.most_used = round(event.seconds)
                self._uncounted = False
            case what.AGAIN:
                self.begin_anew()
                self.given_up, self.before_grant = False, 0
            case what.DOUBTED:
                self._doubted = event.epoch
                self.begin_anew(certain=False)
            case what.COMPLETED:
                self._doubted = 0
                self.begin_anew()
            case what.LASTED:
                self.begin_anew(certain=event.held)
            case what.FAILED | what.HOPELESSLY:
                self._hopeless, self._uncounted = event.what == what.HOPELESSLY, True
                self._remedied = self._remedied or self._hopeless
                self.most += 1
                self.most_used += not self._hopeless
            case what.COUNTED if event.held and self._uncounted and self._doubted != event.epoch:
                self.least += 1
                self.least_used += not self._hopeless
                self._remedied = self._hopeless


def check_escalated(system: System) -> Iterator[Violation]:
    """Yield each try that comes too soon, too late, or not before the job was given up, and each wrong count."""
    if not system.plan.attempts:
        return
    stored = (each for each in system.history if isinstance(each, Stored) and each.job == JOB)
    events: list[Happened | Stored] = [*system.failures.happened, *stored]
    events.sort(key=lambda each: each.at)
    bounds = _Bounds()
    for event in events:
        if isinstance(event, Happened):
            yield from _judge(system, bounds, event)
            bounds.learn(event)
        elif match := _COUNT.fullmatch(event.target):
            failures = int(match[1])
            if failures > bounds.most:
                sentence = f"{event.by} has counted {failures} failures in a row, and there were {bounds.most}."
                yield Violation("TRIED", event.at, sentence)
        elif _GIVEN_UP.fullmatch(event.target):
            bounds.given_up = True
            if bounds.most_used < system.plan.attempts:
                sentence = f"{event.by} has given the job up after {bounds.most_used} attempts at most."
                yield Violation("TRIED", event.at, sentence)


def _judge(system: System, bounds: _Bounds, event: Happened) -> Iterator[Violation]:
    who = f"{event.contender} in epoch {event.epoch}"
    if event.what == what.DECIDED and event.held and event.seconds > bounds.longest + ROUNDING:
        sentence = f"{who} waits {event.seconds:.1f} s after {bounds.most} failures in a row at most."
        yield Violation("TRIED", event.at, sentence)
    elif event.what == what.STARTED:
        if event.seconds < pause_after(bounds.before_grant) - ROUNDING:
            sentence = f"{who} has waited {event.seconds:.1f} s after {bounds.before_grant} failures in a row at least."
            yield Violation("TRIED", event.at, sentence)
        if bounds.given_up or bounds.least_used >= system.plan.attempts:
            ended = "had FAILED" if bounds.given_up else f"had used up {bounds.least_used} attempts"
            yield Violation("TRIED", event.at, f"{who} has started the command of a job that {ended}.")
