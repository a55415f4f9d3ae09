"""What a run says at its end, and whether it is red."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from tests.gate import again, machine
from tests.gate.lane import Result
from tests.gate.run import Run, first_line

RED = 1
MOST = 10
FIGURES: Mapping[str, Callable[[Result], float]] = {
    "The slowest": lambda each: each.seconds,
    "The dearest, by processors": lambda each: each.cores,
}

Plan = Mapping[str, Sequence[str]]


class Clock:
    """Says lines with the seconds since its making."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.core_seconds = machine.core_seconds()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    def say(self, text: str) -> None:
        for line in text.splitlines():
            sys.stdout.write(f"{self.seconds:6.0f} s  {line}\n")
        sys.stdout.flush()


def red(run: Run, plan: Plan, often: Sequence[Result]) -> str:
    """Return why a run is red; nothing if it is not."""
    if run.why:
        return run.why
    if failed := [each.id for each in run.results.values() if each.outcome == "failed"]:
        return f"FAILED: {', '.join(failed)}"
    if missing := not_run(run, plan):
        return f"NOT RUN: {len(missing)} tests, {missing[0]} among them."
    if often:
        return f"FLAKY within 14 days before already: {', '.join(each.id for each in often)}"
    return "" if any(each.outcome == "passed" for each in run.results.values()) else "No test was run."


def not_run(run: Run, plan: Plan) -> list[str]:
    return [name for ids in plan.values() for name in ids if name not in run.results]


def conclude(run: Run, clock: Clock, plan: Plan, flaky: Sequence[Result]) -> int:
    """Say what came of a run, and enter what was flaky into the ledger; returns the exit code."""
    today, entries = datetime.now(UTC).date(), again.known()
    often = [each for each in flaky if again.too_often(each.id, today, entries)]
    for each in flaky:
        again.entered(
            each, next(iter(again.git("rev-parse", "--short=10", "HEAD")), "none"), today, run.watch.at(each.at)
        )
    _details(run, clock)
    for result in flaky:
        clock.say(f"FLAKY: FAILURE, THEN SUCCESS: {result.id}: {first_line(result.error)}; {run.watch.at(result.at)}")
        clock.say(f"    It is in tests/gate/{again.LEDGER.name} now: commit that.")
    failed = [each for each in run.results.values() if each.outcome == "failed"]
    for result in failed:
        clock.say(f"FAILED {result.id}: {first_line(result.error)}")
    why = red(run, plan, often)
    if why:
        clock.say(f"RED. {why}")
    count = Counter(each.outcome for each in run.results.values())
    summary = f"{count['passed']} passed, {len(failed)} failed, {count['skipped']} skipped"
    rest = f"{len(flaky)} flaky, {len(not_run(run, plan))} not run in {clock.seconds:.0f} s"
    sys.stdout.write(f"======== {summary}, {rest} ========\n{summary}\n")
    return RED if why else 0


def _details(run: Run, clock: Clock) -> None:
    for result in run.results.values():
        if result.outcome == "failed":
            clock.say(f"\n==== FAILED {result.id} (lane {result.lane})\n{result.text or result.error}")
    for title, figure in FIGURES.items():
        most = sorted(run.results.values(), key=figure, reverse=True)[:MOST]
        clock.say(f"{title}: " + "; ".join(f"{figure(each):.0f} s {each.id.rpartition('/')[2]}" for each in most))
    clock.say(
        "Lanes: "
        + ", ".join(f"{name} {took:.0f} s ({cores:.0f} of cores)" for name, (took, cores) in run.seconds.items())
    )
    cores = machine.core_seconds() - clock.core_seconds
    clock.say(f"{cores / 60:.1f} core-minutes of this machine; longest stall {run.watch.stall():.1f} s.")
    skipped = Counter(each.skipped for each in run.results.values() if each.outcome == "skipped")
    for reason, times in skipped.items():
        clock.say(f"SKIPPED {times}: {reason.removeprefix('Skipped: ')}")
