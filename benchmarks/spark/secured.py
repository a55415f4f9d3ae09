"""Hour on secured stores: ``python -m benchmarks.spark.secured --minutes 60 --failovers 10 --switches 10``."""

import random
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from threading import Event

import click

from benchmarks.alone import Alone, report_option
from benchmarks.context import Say, servers
from benchmarks.result import Result, at_most
from benchmarks.spark.failover import environment
from benchmarks.spark.marathon import JOB, KINDS, SESSION_TIMEOUT, Leg, flaws, ids_in, run_leg
from benchmarks.spark.sidecars import PATIENCE, NotSo, Sidecars
from benchmarks.spark.words import Verdict, Words
from ha.history import edits, events
from ha.history.checker import check
from ha.sandbox import Sandbox
from store.clock import now

NAME = "spark_secured"
TITLE = "Failovers and NameNode switches on secured stores whose tickets end"

ASKED, KILLED = "NameNode asked", "NameNode killed"
SWITCHES = (ASKED, KILLED)

TICKET_LIFE = 2  # Minutes
INTERVAL = 2.0  # Seconds between two batches: an hour of them shall also be read in a minute or two
DRAWN = 0.6  # Part of its share of the time in which a fault begins: the rest is for the recovery


@dataclass(frozen=True, slots=True)
class Switch:
    """One change of the active NameNode, and the seconds until the other one took writes."""

    kind: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Hour:
    """The events, and the verdicts."""

    seed: int  # of the times and kinds
    minutes: float  # how long it took
    legs: tuple[Leg, ...]  # the failovers, in order
    switches: tuple[Switch, ...]  # of the active NameNode, in order
    verdict: Verdict  # on the output
    ids: int  # number of checkpoint ids drawn
    repeated: int  # number of ids that had been drawn before
    events: int  # number of events in the history
    violations: tuple[str, ...]  # of guarantees, each in a sentence
    tickets: int  # that the owner of the job was given


def plan(dice: random.Random, kinds: Sequence[str], count: int, seconds: float) -> list[tuple[float, str]]:
    """Return when each of so many faults begins, and its kind: each has an equal share of the time to itself."""
    chosen = [kinds[number % len(kinds)] for number in range(count)]
    dice.shuffle(chosen)
    share = seconds / max(count, 1)
    return [((number + dice.uniform(0, DRAWN)) * share, kind) for number, kind in enumerate(chosen)]


def run(sandbox: Sandbox, folder: Path, seed: int, minutes: float, *, failovers: int, switches: int, say: Say) -> Hour:
    dice, began, over = random.Random(seed), now(), Event()  # noqa: S311  # faults, not secrets
    seconds = minutes * 60
    planned, later = plan(dice, KINDS, failovers, seconds), plan(dice, SWITCHES, switches, seconds)
    files = f"{sandbox.environment()['HA_FILES']}/jobs"  # beside it the words: nothing above belongs to the job's owner
    words = Words(files, f"{JOB}-{seed}-{time.time_ns():x}")
    variables = {**environment(sandbox), "HA_SESSION_TIMEOUT": SESSION_TIMEOUT, "HA_FILES": files}
    sidecars = Sidecars(words, variables, folder, INTERVAL)

    def disturb() -> tuple[tuple[Leg, ...], tuple[Switch, ...]]:
        with ThreadPoolExecutor(1, "switching") as pool:
            switching = pool.submit(_switch_all, sandbox, later, over, say)
            try:
                legs = _fail_over(words, sidecars, switching, planned, say)
                _wait(sidecars, switching, began + seconds)
                sidecars.until(switching.done, "the last switch is done")
            except NotSo:
                over.set()
                switching.result()  # if this has failed, it is the reason
                raise
            finally:
                over.set()
            return legs, tuple(switching.result())

    (legs, switched), verdict = sidecars.through(disturb)
    say("Checking the history")
    minutes, (history, broken, tickets) = (now() - began) / 60, _check(sandbox, words, folder)
    return Hour(seed, minutes, legs, switched, verdict, *ids_in(folder), history, broken, tickets)


def _fail_over(
    words: Words, sidecars: Sidecars, switching: "Future[list[Switch]]", planned: Sequence[tuple[float, str]], say: Say
) -> tuple[Leg, ...]:
    began, legs = now(), []
    for number, (at, kind) in enumerate(planned):
        _wait(sidecars, switching, began + at)
        legs.append(run_leg(words, sidecars, kind, 0))
        said = f"{legs[-1].granted:.2f} s, {legs[-1].committed:.2f} s"
        say(f"Failover {number + 1} of {len(planned)}: {kind}: {said}")
    return tuple(legs)


def _wait(sidecars: Sidecars, switching: "Future[list[Switch]]", end: float) -> None:
    """Wait until a time; raise what has ended a sidecar or the switches, if something has."""

    def over() -> bool:
        if switching.done():
            switching.result()
        return now() >= end

    sidecars.until(over, "the time of the next fault", max(0.0, end - now()) + PATIENCE)


def _switch_all(sandbox: Sandbox, planned: Sequence[tuple[float, str]], over: Event, say: Say) -> list[Switch]:
    began, made = now(), []
    for number, (at, kind) in enumerate(planned):
        if over.wait(max(0.0, began + at - now())):
            break
        made.append(_switch(sandbox, kind))
        say(f"Switch {number + 1} of {len(planned)}: {kind}: {made[-1].seconds:.2f} s")
    return made


def _switch(sandbox: Sandbox, kind: str) -> Switch:
    active = sandbox.active_namenode()
    if active is None:
        raise NotSo("No NameNode is active.")
    other = next(name for name in sandbox.names("namenode") if name != active)
    sandbox.wait_ready(other)  # it may have been restarted: before it knows all blocks it cannot take over
    at = now()
    if kind == KILLED:
        sandbox.kill(active)
    sandbox.failover(other)
    seconds = now() - at
    if kind == KILLED:
        sandbox.start(active)
        sandbox.wait_ready(active)
    return Switch(kind, seconds)


def _check(sandbox: Sandbox, words: Words, folder: Path) -> tuple[int, tuple[str, ...], int]:
    """Return the number of events in the history, the violations, and the number of tickets."""
    history = folder / "history"
    history.mkdir()
    for part in folder.glob("history-*/*.jsonl"):
        (history / f"{part.parent.name}-{part.name}").write_bytes(part.read_bytes())
    edits.save(sandbox.edits(), words.root, words.job, history)
    found = [event for event in events.load(history) if event.job in ("", words.job)]
    broken = tuple(f"{each.guarantee}: {each.sentence}" for each in check(found, tolerance=edits.TOLERANCE))
    return len(found), broken, sandbox.tickets()


def summarise(hour: Hour) -> Result:
    verdict = hour.verdict
    found = {**flaws(verdict, hour.repeated, "words"), "violations of guarantees": len(hour.violations)}
    faults = f"{len(hour.legs)} failovers and {len(hour.switches)} NameNode switches"
    failovers = [(kind, [leg.committed for leg in hour.legs if leg.kind == kind]) for kind in KINDS]
    switches = [(kind, [each.seconds for each in hour.switches if each.kind == kind]) for kind in SWITCHES]
    return Result(
        columns=("what happened", "times", "until it went on (s)", "slowest (s)"),
        rows=tuple((kind, len(took), median(took), max(took)) for kind, took in failovers + switches if took),
        targets=tuple(at_most(f"{what}, in {faults}", 0, count) for what, count in found.items()),
        notes=(
            f"{verdict.words:,} words in {verdict.batches:,} batches, {hour.ids:,} checkpoint ids.",
            f"{hour.minutes:.0f} minutes; tickets last {TICKET_LIFE} minutes, and {hour.tickets} were given.",
            f"{hour.events:,} events in the history, with every change that HDFS has executed.",
            "Medians. A failover lasts until the successor's first commit, a switch until the other takes writes.",
            f"The seed of times and kinds is {hour.seed}. Everything runs on one host.",
            *hour.violations[:10],
        ),
        pictures=(),
        raw=asdict(hour),
    )


@click.command()
@click.option("--minutes", type=click.FloatRange(1), default=60, show_default=True, help="Spread the faults over them.")
@click.option("--failovers", type=click.IntRange(1), default=10, show_default=True)
@click.option("--switches", type=click.IntRange(0), default=10, show_default=True, help="Of the active NameNode.")
@click.option("--seed", type=int, default=7, show_default=True, help="Draws what happens, and when.")
@report_option
def main(minutes: float, failovers: int, switches: int, seed: int, report: Path) -> None:
    """Run the hour. Exit code 0: the output is exact and every guarantee was kept; 1: not so, or it did not finish."""
    alone = Alone("benchmarks.spark.secured", NAME, TITLE, report)
    with servers(alone.context, namenodes=2, ticket_life=TICKET_LIFE) as sandbox:
        hour = run(sandbox, alone.folder, seed, minutes, failovers=failovers, switches=switches, say=alone.say)
    alone.end(summarise(hour))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.spark.secured")
