"""What a report comes to: the verdict, and one row a drill. The page and the Markdown tables say the same."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ha.drill.outcome import Outcome, Report, Status
from ha.drill.report.figures import figures, seconds
from ha.drill.report.keys import Key

GUARDS = {"hybrid-ha": "Hybrid HA", "kazoo": "kazoo Election", "curator": "Curator LeaderLatch"}
"""What guards are called, in the order in which they are shown."""

VERDICTS: dict[Status, str] = {"passed": "passed", "failed": "FAILED", "skipped": "NOT RUN"}
"""How each status is said: what is not good is said loudly."""

NOTHING = "\N{EN DASH}"
"""What is shown where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many drills came out how, under one guard.

    Attributes:
        guard: who guarded the job.
        passed: drills.
        failed: drills.
        skipped: drills.
    """

    guard: str
    passed: int
    failed: int
    skipped: int

    @property
    def sentence(self) -> str:
        """The verdict in a few words, the bad news first."""
        counted = ((self.failed, "FAILED"), (self.skipped, "NOT RUN"), (self.passed, "passed"))
        said = [f"{number} {what}" for number, what in counted if number]
        return f"all {said[0]}" if said == [f"{self.passed} passed"] and self.passed > 1 else ", ".join(said)


@dataclass(frozen=True, slots=True)
class Row:
    """One outcome in the summary; what was not measured is a dash.

    Attributes:
        outcome: what came of the drill.
        anchor: of its section in the page.
        guard: what its guard is called.
        verdict: how its status is said.
        why: what failed, or why it was not run; empty if it passed.
        leader_changes: how many.
        recovery: from the fault to the next leader.
        bound: what that may be at most.
        share: recovery as a part of its bound, from 0 to 1; None if there is none.
        late: whether it was more than its bound.
        slowest_lookup: the time it took.
        lookups_failed: how many.
        words: counted.
        expected: words that there should be.
        words_wrong: whether they differ, or any was counted wrong.
        took: seconds of the drill.
    """

    outcome: Outcome
    anchor: str
    guard: str
    verdict: str
    why: str
    leader_changes: str
    recovery: str
    bound: str
    share: float | None
    late: bool
    slowest_lookup: str
    lookups_failed: str
    words: str
    expected: str
    words_wrong: bool
    took: str


def arranged(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return outcomes as they are shown: groups and drills in the order they ran, the guards of one drill together."""
    groups = {name: number for number, name in enumerate(dict.fromkeys(each.group for each in outcomes))}
    drills = {name: number for number, name in enumerate(dict.fromkeys(each.drill for each in outcomes))}
    guards = guards_of(outcomes)
    return sorted(
        outcomes,
        key=lambda each: (groups[each.group], drills[each.drill], each.ground, guards.index(each.guard)),
    )


def guards_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the guards that there are, in the order in which they are shown."""
    found = dict.fromkeys(each.guard for each in outcomes)
    return [*filter(found.__contains__, GUARDS), *(guard for guard in found if guard not in GUARDS)]


def tallies(report: Report) -> list[Tally]:
    """Count the outcomes under each guard; what the others did is no verdict on the first one."""
    found = []
    for guard in guards_of(report.outcomes):
        counts = Counter(each.status for each in report.outcomes if each.guard == guard)
        found.append(Tally(guard, counts["passed"], counts["failed"], counts["skipped"]))
    return found


def rows(report: Report) -> list[Row]:
    """Return the rows of the summary, in the order in which they are shown."""
    return [_row(outcome) for outcome in arranged(report.outcomes)]


def _row(outcome: Outcome) -> Row:
    measures = outcome.measures
    shown = {each.name: each for each in figures(measures)}
    values = {name: each.value for name, each in shown.items()}
    takeover, bound = measures.get("takeover_seconds"), measures.get("takeover_bound_seconds")
    recovery = shown.get("takeover_seconds")
    expected, counted = measures.get("words_expected"), measures.get("words_counted")
    return Row(
        outcome=outcome,
        anchor=Key.of(outcome).stem,
        guard=GUARDS.get(outcome.guard, outcome.guard),
        verdict=VERDICTS[outcome.status],
        why=_why(outcome),
        leader_changes=values.get("leader_changes", NOTHING),
        recovery=recovery.value if recovery else NOTHING,
        bound=recovery.bound if recovery else "",
        share=None if takeover is None or not bound else max(0.0, min(1.0, takeover / bound)),
        late=recovery is not None and recovery.exceeds,
        slowest_lookup=values.get("slowest_lookup_seconds", NOTHING),
        lookups_failed=values.get("lookups_failed", NOTHING),
        words=values.get("words_counted", NOTHING),
        expected=values.get("words_expected", ""),
        words_wrong=bool(measures.get("words_wrong")) or (None not in {counted, expected} and counted != expected),
        took=seconds(outcome.seconds) if outcome.seconds else NOTHING,
    )


def _why(outcome: Outcome) -> str:
    if outcome.status == "passed":
        return ""
    failed = [
        f"{check.name}: {check.detail}" if check.detail else check.name for check in outcome.checks if not check.passed
    ]
    reason = outcome.reason.removeprefix(f"{VERDICTS[outcome.status]}: ")  # it is said beside
    return "; ".join(filter(None, [reason, *failed])) or "no reason was given"
