"""Judge: checks what must be true after a drill, and takes its measures."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ha.drill.clients import text, words
from ha.drill.drill import Drill
from ha.drill.environment import Ability
from ha.drill.observer import new_batches
from ha.drill.outcome import Check, Span
from ha.history.checker import check
from ha.history.edits import TOLERANCE
from ha.history.events import Ended, Event, Granted, LookedUp, Ran
from leader.layout.names import ADOPTED
from store.clock import now

RECOVERY_SLACK_S = 3.0
"""A recovery may exceed its bound by this: one small machine may run the whole drill. The report shows both figures."""

LOOKUP_SLACK_S = 0.5  # a lookup may exceed its timeout by this, for the same reason


@dataclass
class Judge:
    """Judges one drill that is over."""

    drill: Drill
    events: Sequence[Event]  # the whole history, in order
    faults: Sequence[Span]
    over: float  # when the job was told to end
    durations: Mapping[str, float]
    keeps_guarantees: bool = field(kw_only=True)
    checks: list[Check] = field(default_factory=list)
    measures: dict[str, float] = field(default_factory=dict)

    def judge(self, fed: Sequence[int], outcomes: Sequence[Mapping[str, int]], codes: Mapping[str, int | None]) -> None:
        """Check everything: ``outcomes`` are each word's count, in each of the job's outputs that count every word."""
        # ``fed`` are the numbers of the files in the input directory, ``codes`` the exit codes of the contenders that
        # had to end by themselves.
        if self.keeps_guarantees:
            self._check_guarantees()
        self._check_words(fed, outcomes)
        self._check_lookups()
        self._check_changes()
        self._check_end(codes)
        self._measure_batches()
        self.measures["overlap_seconds"] = overlap([each for each in self.events if isinstance(each, Ran | Ended)])

    def add(self, name: str, passed: bool, detail: str) -> None:
        self.checks.append(Check(name, passed, detail))

    # ---

    def _check_guarantees(self) -> None:
        # A server whose clock was set knows only in which order things were written, not when.
        tolerance = math.inf if Ability.CLOCK in self.drill.needs else TOLERANCE
        violations = check(self.events, tolerance=tolerance)
        first = f"; the first: {violations[0].guarantee}: {violations[0].sentence}" if violations else ""
        detail = f"{len(self.events)} events, {len(violations)} violations{first}"
        self.add("history keeps every guarantee", not violations, detail)

    def _check_words(self, fed: Sequence[int], outcomes: Sequence[Mapping[str, int]]) -> None:
        expected = expected_words(fed)
        of_each = [wrong_words(counted, expected) for counted in outcomes]
        wrong, counted = sum(of_each), outcomes[of_each.index(max(of_each))]
        self.measures |= {
            "words_expected": expected.total(),
            "words_counted": sum(counted.values()),
            "words_wrong": wrong,
            "files": len(fed),
        }
        detail = f"{sum(counted.values())} counted, {expected.total()} expected, {wrong} wrong"
        self.add("every word counted once", not wrong, detail)

    def _check_lookups(self) -> None:
        lookups = [each for each in self.events if isinstance(each, LookedUp)]
        answered = {each.reader: each.ended for each in reversed(lookups) if each.outcome == "leader"}
        # Before its first answer, a reader waits for the servers and the first leader: no part of the drill.
        counted = [each for each in lookups if each.ended >= answered.get(each.reader, float("inf"))]
        failed = [each for each in counted if each.outcome == "unreachable"]
        unexcused = [each for each in failed if not (self.drill.expected.blind and self._broken(each))]
        slow = [each for each in counted if each.ended - each.at > each.timeout + LOOKUP_SLACK_S]
        slowest = max((each.ended - each.at for each in counted), default=0.0)
        by_source = Counter(each.source for each in counted if each.outcome == "leader")
        self.measures |= {
            "lookups": len(counted),
            "lookups_failed": len(failed),
            "lookups_without_leader": sum(each.outcome == "none" for each in counted),
            "slowest_lookup_seconds": round(slowest, 3),
            **{f"lookups_{source}": number for source, number in sorted(by_source.items())},
        }
        detail = f"{len(counted)} lookups, {len(failed)} failed" + (
            f", {len(failed) - len(unexcused)} of them while no store could know" if failed else ""
        )
        self.add("lookups are answered", bool(counted) and not unexcused, detail)
        self.add("lookups keep their deadline", not slow, f"the slowest took {slowest:.2f} s, {len(slow)} were late")

    def _broken(self, lookup: LookedUp) -> bool:
        # For one timeout longer: a reader that has just lost a store has yet to find it again.
        return any(each.begins <= lookup.ended <= each.ends + lookup.timeout for each in self.faults)

    def _check_changes(self) -> None:
        grants = sorted((each for each in self.events if isinstance(each, Granted)), key=lambda each: each.at)
        grants = [each for each in grants if each.reason != ADOPTED]  # that is the same leadership
        begun = self.faults[0].begins if self.faults else now()
        later = [each for each in grants if begun < each.at < self.over]
        least, most = self.drill.expected.changes
        self.measures["leader_changes"] = len(later)
        wanted = f"{least}" if least == most else f"{least} to {most}"
        self.add("leader changes as expected", least <= len(later) <= most, f"{len(later)}, expected {wanted}")
        bound = self.drill.expected.recovery
        if bound is None or not later:
            return
        outage = self.faults[0].ends - begun if self.faults else 0.0
        took, limit = later[0].at - begun, bound({**self.durations, "outage": outage})
        self.measures |= {"takeover_seconds": round(took, 3), "takeover_bound_seconds": round(limit, 3)}
        detail = f"{took:.1f} s until the next grant, promised within {limit:.1f} s ({bound.__doc__})"
        self.add("recovered in time", took <= limit + RECOVERY_SLACK_S, detail)

    def _check_end(self, codes: Mapping[str, int | None]) -> None:
        listed = ", ".join(f"{name}: {code}" for name, code in sorted(codes.items()))
        self.add("the job finished", bool(codes) and set(codes.values()) == {0}, f"exit codes {listed or 'none'}")

    def _measure_batches(self) -> None:
        ended = [each.ended for each in new_batches(self.events)]
        self.measures["batches"] = len(ended)
        if len(ended) > 1:
            longest = max(after - before for before, after in pairwise(ended))
            self.measures["longest_without_batch_seconds"] = round(longest, 3)
        begun = self.faults[0].begins if self.faults else None
        changed = [each.at for each in self.events if isinstance(each, Granted) and begun and each.at > begun]
        if begun is not None and changed:
            after = [at for at in ended if at > min(changed)]
            if after:
                self.measures["first_batch_seconds"] = round(after[0] - begun, 3)


def expected_words(fed: Sequence[int]) -> Counter[str]:
    """Return each word's count in the files with these numbers."""
    return Counter(word for number in fed for word in words(text(number)))


def wrong_words(counted: Mapping[str, int], expected: Mapping[str, int]) -> int:
    """Return how many words were lost, or counted once more."""
    return sum(abs(counted.get(word, 0) - expected.get(word, 0)) for word in counted.keys() | expected.keys())


def overlap(events: Sequence[Ran | Ended]) -> float:
    """Return for how many seconds commands of two contenders ran at once."""
    running: set[str] = set()
    total, since = 0.0, 0.0
    for event in sorted(events, key=lambda each: each.at):
        if len(running) > 1:
            total += event.at - since
        since = event.at
        if isinstance(event, Ran) and event.running:
            running.add(event.contender)
        else:
            running.discard(event.contender)
    return round(total, 3)
