"""Regions beside a poisoned one: ``python -m benchmarks.spark.regions --minutes 10``.

One program runs many declared queries in regions under ``ha run``, on real HDFS and ZooKeeper. Every batch of one query
is poisoned for so many minutes. The others must go on in the runs that they had, without a batch that is missing or
done twice; the poisoned region must end in FAILED after the restarts that it is allowed, and ``ha exceptions`` must
name the cause. Then the poison is taken away, ``ha restart`` starts the region again, and all sums must be exact.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from threading import Event

import click

from benchmarks.alone import Alone, report_option
from benchmarks.context import servers
from benchmarks.result import Result, Target
from benchmarks.spark.regions_job import ATTEMPTS, JOB, PATIENCE_S, Regions, gaps, out_of_order, sum_of
from store.clock import now

NAME = "spark_regions"
TITLE = "Many queries in regions, one of them poisoned: what the others lose"


@dataclass(frozen=True, slots=True)
class Found:
    """The job after the poison.

    Attributes:
        minutes: for which a query was poisoned.
        queries: of all regions.
        batches: of the other regions meanwhile.
        lost: batches of theirs that are missing in the order, or were done twice.
        moved: queries of the other regions that have another run, or restarts.
        median_gap: seconds between two batches of such a query, while all was well.
        longest_gap: the longest ones, before and after the poison.
        states: of the poisoned region's queries, each with its restarts.
        failed_after: seconds from the poison until the poisoned query was FAILED.
        causes: exceptions that name the poison, among those that ``ha exceptions`` keeps.
        leaders: that there were.
        wrong: queries whose sum is not that of the input, at the end.
    """

    minutes: float
    queries: int
    batches: int
    lost: int
    moved: int
    median_gap: float
    longest_gap: tuple[float, float]
    states: Mapping[str, int]
    failed_after: float
    causes: int
    leaders: int
    wrong: int


def run(job: Regions, minutes: float, say: Callable[[str], None]) -> Found:
    """Poison one query for so many minutes, and judge."""
    poisoned = job.plan.names(0)
    others = [name for region in range(1, job.plan.regions) for name in job.plan.names(region)]
    victim = poisoned[-1]
    with job.feeding():
        job.wait("two batches of each query", lambda: all(len(job.batches(each)) > 1 for each in [*others, *poisoned]))
        say(f"{len(others) + len(poisoned)} queries in {job.plan.regions} regions run; all is well for a minute.")
        calm = now()
        Event().wait(60.0)
        before, began = job.queries(), now()
        say(f"{victim} is poisoned for {minutes:g} minutes.")
        Path(job.plan.poison, victim).touch()
        job.wait(f"{victim} to be FAILED", lambda: job.queries()[victim]["state"] == "FAILED")
        failed_after = now() - began
        say(f"{victim} is FAILED after {failed_after:.0f} s.")
        Event().wait(max(0.0, began + 60 * minutes - now()))
        ended, after = now(), job.queries()
        exceptions, leaders = job.asked("exceptions", JOB), len(job.asked("history", JOB))
        done = {each: [batch for batch in job.batches(each) if began < batch.at <= ended] for each in others}
        say("The poison is taken away, and the query is restarted.")
        Path(job.plan.poison, victim).unlink()
        job.asked("restart", JOB, "--query", victim, "--timeout", f"{PATIENCE_S:g}")
    expected = sum(range(job.fed))
    everybody = [*others, *poisoned]
    job.wait("all sums", lambda: all(sum_of(job.batches(each)) >= expected for each in everybody))
    well = {each: gaps([batch for batch in job.batches(each) if calm < batch.at <= began]) for each in others}
    same = [(before[each]["run_id"], 0) == (after[each]["run_id"], after[each]["restarts"] or 0) for each in others]
    return Found(
        minutes=minutes,
        queries=len(everybody),
        batches=sum(map(len, done.values())),
        lost=sum(out_of_order(each) for each in done.values()),
        moved=same.count(False),
        median_gap=median(gap for each in well.values() for gap in each),
        longest_gap=(
            max(gap for each in well.values() for gap in each),
            max(gap for each in done.values() for gap in gaps(each)),
        ),
        states={f"{each}: {after[each]['state']}": after[each]["restarts"] or 0 for each in poisoned},
        failed_after=failed_after,
        causes=sum(each["query"] == victim and f"poison in {victim}" in each["message"] for each in exceptions),
        leaders=leaders,
        wrong=sum(sum_of(job.batches(each)) != expected for each in everybody),
    )


def summarise(found: Found) -> Result:
    """Return the result."""
    all_failed = all(each.endswith("FAILED") for each in found.states)
    restarts = sorted(set(found.states.values()))
    return Result(
        name=NAME,
        title=TITLE,
        columns=("what", "found"),
        rows=(
            ("queries, in all regions", found.queries),
            ("minutes with the poison", found.minutes),
            ("batches of the other regions meanwhile", found.batches),
            ("their median distance before (s)", found.median_gap),
            ("their longest distance before (s)", found.longest_gap[0]),
            ("their longest distance meanwhile (s)", found.longest_gap[1]),
            ("poisoned query FAILED after (s)", found.failed_after),
            ("restarts of the poisoned region", max(restarts)),
        ),
        targets=(
            Target("batches of other regions lost or repeated", 0, found.lost, "", True),
            Target("queries of other regions with another run", 0, found.moved, "", True),
            Target("the poisoned region is FAILED, all of it", 1, int(all_failed), "", at_most=False),
            Target(
                f"restarts of it, off the {ATTEMPTS} allowed",
                0,
                max(abs(each - ATTEMPTS) for each in restarts),
                "",
                True,
            ),
            Target("exceptions that name the root cause", ATTEMPTS + 1, found.causes, "", at_most=False),
            Target("leaders", 1, found.leaders, "", True),
            Target("queries with a wrong sum at the end", 0, found.wrong, "", True),
        ),
        notes=(
            "One driver under one sidecar. In each region one query publishes what the others read.",
            f"The region may restart {ATTEMPTS} times, 5 s after each failure; `failed_region` is `stay`.",
        ),
        pictures=(),
        raw=asdict(found),
    )


@click.command()
@click.option("--minutes", type=click.FloatRange(0.5), default=10.0, show_default=True)
@click.option("--regions", type=click.IntRange(2), default=4, show_default=True)
@click.option("--queries", type=click.IntRange(2), default=10, show_default=True, help="In each region.")
@click.option("--interval", type=float, default=10.0, show_default=True, help="Seconds between batches of a query.")
@report_option
def main(minutes: float, regions: int, queries: int, interval: float, report: Path) -> None:
    """Poison one of many queries. Exit code 0: the others lost nothing, and it FAILED as configured; 1: not so."""
    alone = Alone("benchmarks.spark.regions", NAME, report)
    with servers(alone.context) as sandbox:
        job = Regions(sandbox, alone.folder, regions, queries, interval)
        try:
            result = summarise(run(job, minutes, alone.say))
        finally:
            job.end()
    alone.end(result)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.spark.regions")
