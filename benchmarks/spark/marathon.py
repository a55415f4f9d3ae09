"""Marathon of failovers of one job: ``python -m benchmarks.spark.marathon --failovers 100 [--input kafka]``.

The word count runs under two sidecars with warm standbys: a stateful query that draws a checkpoint id for each batch
and publishes it with ``ha.spark.Output``. Faults hit the leader repeatedly, at random moments drawn from a seed. At the
end the output is compared with a count of the whole input: no word lost or doubled, no id drawn twice. With ``--input
kafka`` the example that writes a topic into files runs instead: each (partition, offset) must be there exactly once.
"""

import math
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from threading import Event

import click

from benchmarks.alone import Alone, report_option
from benchmarks.context import servers
from benchmarks.drawing import dots
from benchmarks.result import Picture, Result, Target
from benchmarks.spark.failover import environment
from benchmarks.spark.records import Records
from benchmarks.spark.sidecars import PATIENCE, NotSo, Sidecar, Sidecars
from benchmarks.spark.words import Verdict, Words
from ha.cli.operate import job_admin
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

SESSION_TIMEOUT = "4"
"""Seconds; only the session timeout reveals a paused leader."""

AT_WORK = 1
"""Least number of batches that a leader commits before a fault."""

SOONEST, LATEST = 0.0, 1.0
"""Longest further wait in seconds: about a batch's length, so that the fault hits anywhere within a batch."""

_ID = re.compile(rf"^Checkpoint id (\d+) of {JOB}\S*\.$", re.MULTILINE)
"""The job's name is part of the line because a rehearsal also draws ids, those of its own job."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One failover.

    Attributes:
        kind: the leader's fault.
        granted: seconds from the fault until the standby was granted the leadership.
        committed: seconds from the fault until it had committed a batch.
    """

    kind: str
    granted: float
    committed: float


@dataclass(frozen=True, slots=True)
class Marathon:
    """All failovers, and the verdict.

    Attributes:
        seed: of the random faults.
        legs: in order.
        verdict: on the output.
        ids: number of checkpoint ids drawn.
        repeated: number of ids that had been drawn before.
        source: one of ``INPUTS``.
    """

    seed: int
    legs: tuple[Leg, ...]
    verdict: Verdict
    ids: int
    repeated: int
    source: str = FILES


def run(
    sandbox: Sandbox,
    folder: Path,
    failovers: int,
    seed: int,
    say: Callable[[str], None],
    source: str = FILES,
    longest: float = math.inf,
) -> Marathon:
    """Run the marathon.

    Args:
        sandbox: real ZooKeeper and HDFS, which are up.
        folder: for the sidecars' logs; it exists.
        failovers: their number.
        seed: of the random faults.
        say: reports each failover.
        source: one of ``INPUTS``.
        longest: seconds from now on after which no failover begins any more.

    Raises:
        NotSo: no standby took over, or the job did not finish.
    """
    end = now() + longest
    dice = random.Random(seed)  # noqa: S311  # faults, not secrets
    kinds = [KINDS[number % len(KINDS)] for number in range(failovers)]
    dice.shuffle(kinds)
    words, variables = _input(sandbox, source, f"{JOB}-{seed}-{time.time_ns():x}", say)
    sidecars = Sidecars(words, variables, folder)
    with ExitStack() as stack:
        stack.callback(words.close)
        stack.callback(sidecars.end)
        with words.feeding():
            sidecars.start(warm=True)
            sidecars.until(words.commits, "the first leader commits a batch")
            sidecars.start(warm=True)
            legs = []
            for number, kind in enumerate(kinds):
                if now() > end:
                    break
                legs.append(run_leg(words, sidecars, kind, dice.uniform(SOONEST, LATEST)))
                say(f"{number + 1} of {failovers}: {kind}: {legs[-1].granted:.2f} s, {legs[-1].committed:.2f} s")
        words.stop()
        for sidecar in sidecars.all:
            if sidecar.wait(PATIENCE) != 0:
                raise NotSo(f"{sidecar.name} has not finished the job: {sidecar.log()[-1500:]}")
        drawn = ids_in(folder)
        return Marathon(seed, tuple(legs), words.judge(), len(drawn), len(drawn) - len(set(drawn)), source)


def _input(sandbox: Sandbox, source: str, job: str, say: Callable[[str], None]) -> tuple[Words, dict[str, str]]:
    """Return a new input, and the variables of the sidecars that read it."""
    if source == KAFKA:
        sandbox.up(progress=say, kafka=True)
    found = sandbox.environment()
    variables = {**environment(sandbox), "HA_SESSION_TIMEOUT": SESSION_TIMEOUT}
    if source == FILES:
        return Words(found["HA_FILES"], job), variables
    variables["PYSPARK_SUBMIT_ARGS"] = f"--jars {found['HA_SANDBOX_KAFKA_JARS']} pyspark-shell"
    return Records(found["HA_FILES"], job, found["HA_SANDBOX_KAFKA"], variables), variables


def ids_in(folder: Path) -> list[int]:
    """Return the checkpoint ids that drivers have drawn, by the logs of their sidecars."""
    return [int(text) for log in folder.glob("*.out") for text in _ID.findall(log.read_text(errors="replace"))]


def run_leg(words: Words, sidecars: Sidecars, kind: str, later: float) -> Leg:
    """Wait until the standby is ready and so many seconds more, disturb the leader, and wait for the next one's batch.

    Raises:
        NotSo: no standby took over.
    """
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
        with job_admin(words.root, sidecars.zookeeper) as hand:
            hand.ask_to_hand_over(words.job, ANYBODY)
    elif kind == PAUSE:
        leader.freeze()
    elif kind == SIDECAR:
        leader.kill()
        sidecars.all.remove(leader)
    elif not leader.kill_child("driver" if kind == DRIVER else "jvm"):
        raise NotSo(f"{leader.name} has no {kind.partition(' ')[0]} to be killed: see its log.")


def summarise(marathon: Marathon) -> Result:
    """Return the result."""
    cases = {kind: [leg for leg in marathon.legs if leg.kind == kind] for kind in KINDS}
    verdict, many = marathon.verdict, len(marathon.legs)
    name, title, things = INPUTS[marathon.source]
    found = {
        f"{things} lost": verdict.lost,
        f"{things} or rows doubled": verdict.doubled,
        "batches missing, or counts that went back": verdict.crooked,
        "checkpoint ids drawn twice": marathon.repeated,
    }
    ids = f", {marathon.ids:,} checkpoint ids"
    if marathon.source == KAFKA:  # its program draws none
        del found["checkpoint ids drawn twice"]
        ids = ""
    said = ", ".join(f"{count} times {kind}" for kind, count in Counter(leg.kind for leg in marathon.legs).items())
    picture = "Until the successor commits its first batch"
    return Result(
        name=name,
        title=title,
        columns=("what happened", "times", "granted (s)", "first commit (s)", "slowest (s)"),
        rows=tuple(
            (
                kind,
                len(legs),
                median(leg.granted for leg in legs),
                median(leg.committed for leg in legs),
                max(leg.committed for leg in legs),
            )
            for kind, legs in cases.items()
            if legs
        ),
        targets=tuple(Target(f"{what}, in {many} failovers", 0, count, "", True) for what, count in found.items()),
        notes=(
            f"{verdict.words:,} {things} in {verdict.batches:,} batches{ids}. {said}.",
            f"Medians. The seed of the faults is {marathon.seed}.",
            "Everything runs on one host: a warming standby takes processor time from the successor.",
            f"A paused leader's session ends after {SESSION_TIMEOUT} s; it goes on after the successor's commit.",
        ),
        pictures=(
            Picture(
                "commits",
                picture,
                dots(picture, "s", {kind: [leg.committed for leg in legs] for kind, legs in cases.items() if legs}),
            ),
        ),
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
    alone = Alone("benchmarks.spark.marathon", INPUTS[source][0], report)
    with servers(alone.context) as sandbox:
        result = summarise(run(sandbox, alone.folder, failovers, seed, alone.say, source, minutes * 60))
    alone.end(result)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.spark.marathon")
