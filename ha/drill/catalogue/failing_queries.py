"""Queries fail or hang in a program that goes on: others must not notice."""

from typing import Literal

from ha.drill.asking import (
    STOP_GRACE,
    asked,
    check_named,
    check_recovered,
    check_untouched,
    heal,
    poison,
    queries,
    state,
    trouble,
)
from ha.drill.drill import drill
from ha.drill.fixture import Fixture, Setup
from ha.drill.ha_provider import WORD_REGIONS
from store.clock import now

ATTEMPTS = 2
RESTARTS = {
    "failed_region": "stay",
    "restart_strategy": "fixed-delay",
    "restart_attempts": f"{ATTEMPTS}",
    "restart_delay": "0.5",
}
REGIONS = Setup(settings=STOP_GRACE, program=WORD_REGIONS, others=RESTARTS)
BATCH_TIMEOUT_S = 12.0
HANGS = Setup(settings={**STOP_GRACE, "batch_deadline": BATCH_TIMEOUT_S}, program=WORD_REGIONS, others=RESTARTS)

RESTART_S = 5.0  # from a failure, or the end of a time-out, until the next batch of the region

REGION, OTHERS = ("words", "counts"), ("totals",)


def done_by_others(fixture: Fixture, since: float) -> int:
    """Return how many batches the other region has completed since a time."""
    return sum(each.query in OTHERS for each in fixture.observer.completed(since))


def _goes_on(fixture: Fixture, what: Literal["fail", "hang"], limit: float, promise: str, cause: str) -> None:
    """Let a batch of ``counts`` go wrong: its region restarts in time, and the others do not notice."""
    before = queries(fixture)
    with fixture.fault(f"a batch of counts, one of three queries, is to {what}"):
        batch = trouble(fixture, "counts", what)
        began = now()
        fixture.wait_for(f"batch {batch} of counts", lambda: fixture.observer.has_completed("counts", batch))
    check_recovered(fixture, began, limit, promise)
    fixture.await_batches(2, query="counts")
    fixture.await_batches(1, query="totals")
    after = queries(fixture)
    again = all(after[name].run_id != before[name].run_id and after[name].state == "RUNNING" for name in REGION)
    found = ", ".join(f"{name}: {after[name].state}, {after[name].restarts} restarts" for name in REGION)
    fixture.check("its region runs again", again, found)
    check_untouched(fixture, OTHERS, before, done_by_others(fixture, began))
    check_named(fixture, "counts", cause)


@drill("queries", setup=REGIONS)
def query_dies(fixture: Fixture) -> None:
    """One of three declared queries fails once; its region restarts in place, and the other loses no batch."""
    _goes_on(fixture, "fail", RESTART_S, "the restart", "wants the query counts to fail")


@drill("hangs", setup=HANGS)
def hang_batch(fixture: Fixture) -> None:
    """A batch of one of three queries hangs for good; it is interrupted, and its region restarts in place."""
    limit, cause = BATCH_TIMEOUT_S + RESTART_S, f"more than {BATCH_TIMEOUT_S:g} s"
    _goes_on(fixture, "hang", limit, "batch timeout + 5 s", cause)


@drill("queries", setup=REGIONS)
def region_dies(fixture: Fixture) -> None:
    """A poisoned query brings its region down, and no other; healed, the job is restarted in place."""
    before = queries(fixture)
    with fixture.fault(f"counts is poisoned: each of its batches fails, and its region may restart {ATTEMPTS} times"):
        poison(fixture, "counts")
        began = now()
        fixture.wait_for("the region's end", lambda: queries(fixture)["counts"].state == "FAILED")
        failed = now()
        fixture.await_batches(3, query="totals")
    after = queries(fixture)
    found = ", ".join(f"{name}: {after[name].state} after {after[name].restarts} restarts" for name in REGION)
    as_told = all((after[name].state, after[name].restarts) == ("FAILED", ATTEMPTS) for name in REGION)
    fixture.check("its region fails as configured", as_told, f"{found}; after {failed - began:.1f} s")
    check_untouched(fixture, OTHERS, before, done_by_others(fixture, began))
    check_named(fixture, "counts", "wants the query counts to poison")
    fixture.check("the job goes on", state(fixture) == "RUNNING", f"it is {state(fixture)}")
    heal(fixture, "counts")
    asked(fixture, "job", "restart", fixture.job.name)
    fixture.await_batches(2, query="counts")
