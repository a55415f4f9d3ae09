"""Marathon of failovers of one job: ``python -m benchmarks.spark.marathon --failovers 100 [--input kafka]``."""

import math
import random
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from threading import Event

import click

from benchmarks.alone import Alone, report_option
from benchmarks.context import Say, servers
from benchmarks.drawing import dotted
from benchmarks.result import Result, at_most, table
from benchmarks.spark.failover import environment
from benchmarks.spark.records import Records
from benchmarks.spark.sidecars import NotSo, Sidecar, Sidecars
from benchmarks.spark.words import Verdict, Words
from ha.cli.context import Context
from ha.sandbox import Sandbox
from leader.layout.lease import ANYBODY
from store.clock import now

NAME = "spark_marathon"
TITLE = "Failovers in a row over a stateful query with fenced output"
JOB = "marathon"

FILES, KAFKA = "files", "kafka"
INPUTS = {
    FILES: (NAME, TITLE, "words"),
    KAFKA: (f"{NAME}_kafka", "Failovers in a row of a job that writes a Kafka topic into HDFS", "records"),
}
"""By the input: the benchmark's name and title, and what it counts."""

DRIVER, JVM, SIDECAR, PAUSE, RESIGN = "driver killed", "JVM killed", "sidecar killed", "all paused", "resigned"
KINDS = (DRIVER, JVM, SIDECAR, PAUSE, RESIGN)

SESSION_TIMEOUT = "4"  # Seconds; only the session timeout reveals a paused leader
AT_WORK = 1  # Least number of batches that a leader commits before a fault
SOONEST, LATEST = 0.0, 1.0
"""Longest further wait in seconds: about a batch's length, so that the fault hits anywhere within a batch."""

_ID = re.compile(rf"^Checkpoint id (\d+) of {JOB}\S*\.$", re.MULTILINE)
"""The job's name is part of the line because a rehearsal also draws ids, those of its own job."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One failover."""

    kind: str  # the leader's fault
    granted: float  # seconds from the fault until the standby was granted the leadership
    committed: float  # seconds from the fault until it had committed a batch


@dataclass(frozen=True, slots=True)
class Marathon:
    """All failovers, and the verdict."""

    seed: int  # of the random faults
    legs: tuple[Leg, ...]  # in order
    verdict: Verdict  # on the output
    ids: int  # number of checkpoint ids drawn
    repeated: int  # number of ids that had been drawn before
    source: str = FILES  # one of ``INPUTS``


def run(
    sandbox: Sandbox, folder: Path, failovers: int, seed: int, say: Say, source: str = FILES, longest: float = math.inf
) -> Marathon:
    end = now() + longest
    dice = random.Random(seed)  # noqa: S311  # faults, not secrets
    kinds = [KINDS[number % len(KINDS)] for number in range(failovers)]
    dice.shuffle(kinds)
    words, variables = _input(sandbox, source, f"{JOB}-{seed}-{time.time_ns():x}", say)
    sidecars = Sidecars(words, variables, folder)

    def disturb() -> tuple[Leg, ...]:
        legs = []
        for number, kind in enumerate(kinds):
            if now() > end:
                break
            legs.append(run_leg(words, sidecars, kind, dice.uniform(SOONEST, LATEST)))
            say(f"{number + 1} of {failovers}: {kind}: {legs[-1].granted:.2f} s, {legs[-1].committed:.2f} s")
        return tuple(legs)

    legs, verdict = sidecars.through(disturb)
    return Marathon(seed, legs, verdict, *ids_in(folder), source)


def _input(sandbox: Sandbox, source: str, job: str, say: Say) -> tuple[Words, dict[str, str]]:
    """Return a new input, and the variables of the sidecars that read it."""
    if source == KAFKA:
        sandbox.up(progress=say, kafka=True)
    found = sandbox.environment()
    variables = {**environment(sandbox), "HA_SESSION_TIMEOUT": SESSION_TIMEOUT}
    if source == FILES:
        return Words(found["HA_FILES"], job), variables
    variables["PYSPARK_SUBMIT_ARGS"] = f"--jars {found['HA_SANDBOX_KAFKA_JARS']} pyspark-shell"
    return Records(found["HA_FILES"], job, found["HA_SANDBOX_KAFKA"], variables), variables


def ids_in(folder: Path) -> tuple[int, int]:
    """Return how many checkpoint ids drivers have drawn, and drawn again, by the logs of their sidecars."""
    drawn = [text for log in folder.glob("*.out") for text in _ID.findall(log.read_text(errors="replace"))]
    return len(drawn), len(drawn) - len(set(drawn))


def run_leg(words: Words, sidecars: Sidecars, kind: str, later: float) -> Leg:
    """Wait until the standby is ready, and so many seconds; disturb the leader, and wait for the next one's batch."""
    _, waiting = sidecars.in_order()
    sidecars.until(lambda: waiting.ready, f"the standby is ready, before the leader is {kind}")
    before = words.newest()
    sidecars.until(lambda: words.newest() >= before + AT_WORK, f"the leader commits a batch, before it is {kind}")
    Event().wait(later)
    leader, standby = sidecars.in_order()
    grants = len(standby.grants)
    leader.again()
    wall, at = time.time(), now()
    _kill_part(words, sidecars, leader, kind)
    granted = sidecars.until(lambda: next(iter(standby.grants[grants:]), None), f"a standby leads after {kind}")
    first = sidecars.until(
        lambda: next((c for c in words.commits() if c.epoch >= granted.epoch and c.at > wall + granted.at - at), None),
        f"a batch is committed after {kind}",
    )
    if kind == PAUSE:
        leader.thaw()
    if kind == SIDECAR:
        sidecars.start(warm=True)
    return Leg(kind, granted.at - at, first.at - wall)


def _kill_part(words: Words, sidecars: Sidecars, leader: Sidecar, kind: str) -> None:
    """Apply the fault to the leader."""
    if kind == RESIGN:
        with Context(False, words.root, sidecars.zookeeper) as hand:
            hand.admin.ask_to_hand_over(words.job, ANYBODY)
    elif kind == PAUSE:
        leader.freeze()
    elif kind == SIDECAR:
        leader.kill()
        sidecars.all.remove(leader)
    elif not leader.strike("kill", "driver" if kind == DRIVER else "jvm"):
        raise NotSo(f"{leader.name} has no {kind.partition(' ')[0]} to be killed: see its log.")


def flaws(verdict: Verdict, repeated: int, things: str) -> dict[str, int]:
    """Return the numbers of all that must not be."""
    return {
        f"{things} lost": verdict.lost,
        f"{things} or rows doubled": verdict.doubled,
        "batches missing, or counts that went back": verdict.crooked,
        "gaps between what Spark has committed and what is published": verdict.gaps,
        "checkpoint ids drawn twice": repeated,
    }


def summarise(marathon: Marathon) -> Result:
    cases = {kind: legs for kind in KINDS if (legs := [leg for leg in marathon.legs if leg.kind == kind])}
    series = {kind: [leg.committed for leg in legs] for kind, legs in cases.items()}
    verdict, many = marathon.verdict, len(marathon.legs)
    things = INPUTS[marathon.source][2]
    found = flaws(verdict, marathon.repeated, things)
    ids = f", {marathon.ids:,} checkpoint ids"
    if marathon.source == KAFKA:  # its program draws none
        del found["checkpoint ids drawn twice"]
        ids = ""
    said = ", ".join(f"{count} times {kind}" for kind, count in Counter(leg.kind for leg in marathon.legs).items())
    return Result(
        *table(
            {
                "what happened": str,
                "times": lambda kind: len(cases[kind]),
                "granted (s)": lambda kind: median(leg.granted for leg in cases[kind]),
                "first commit (s)": lambda kind: median(leg.committed for leg in cases[kind]),
                "slowest (s)": lambda kind: max(leg.committed for leg in cases[kind]),
            },
            cases,
        ),
        targets=tuple(at_most(f"{what}, in {many} failovers", 0, count) for what, count in found.items()),
        notes=(
            f"{verdict.words:,} {things} in {verdict.batches:,} batches{ids}. {said}.",
            f"Medians. The seed of the faults is {marathon.seed}.",
            "Everything runs on one host: a warming standby takes processor time from the successor.",
            f"A paused leader's session ends after {SESSION_TIMEOUT} s; it goes on after the successor's commit.",
        ),
        pictures=(dotted("commits", "Until the successor commits its first batch", "s", series),),
        raw=asdict(marathon),
    )


@click.command()
@click.option("--failovers", type=click.IntRange(1), default=100, show_default=True)
@click.option("--input", "source", type=click.Choice(list(INPUTS)), default=FILES, show_default=True)
@click.option("--seed", type=int, default=7, show_default=True, help="Mixes what happens.")
@click.option("--minutes", type=click.FloatRange(0), default=math.inf, help="Begin no failover after so many.")
@report_option
def main(failovers: int, source: str, seed: int, minutes: float, report: Path) -> None:
    """Run a marathon. Exit code 0: nothing was lost, doubled or repeated; 1: something was, or it did not finish."""
    alone = Alone("benchmarks.spark.marathon", *INPUTS[source][:2], report)
    with servers(alone.context) as sandbox:
        result = summarise(run(sandbox, alone.folder, failovers, seed, alone.say, source, minutes * 60))
    alone.end(result)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.spark.marathon")
