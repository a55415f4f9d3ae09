"""Benchmark of drivers and batches that hang, and of a NameNode that is killed: until the next batch.

Each round is a drill of ``ha drill``: a real job under two sidecars, judged by its history and its output. The standby
is warm here. The time begins when the time-out is over, and ends with the next batch, of the query that had hung or of
the successor. Under the killed NameNode, Spark and Hadoop have the patience that they have by default.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import nan
from statistics import median

from benchmarks.context import Context
from benchmarks.drawing import dots
from benchmarks.result import Picture, Result, Target
from ha.drill.catalogue import DRILLS
from ha.drill.catalogue.queries import BATCH_TIMEOUT_S, REGIONS
from ha.drill.drill import Drill
from ha.drill.ha_provider import HYBRID, DrillJob
from ha.drill.outcome import Outcome
from ha.drill.runner import run_series
from ha.drill.sandbox_environment import SandboxEnvironment

NAME = "spark_hangs"
TITLE = "Drivers and batches that hang, and a NameNode that dies: until the next batch"

AFTER_TIMEOUT_S = 5.0
NAMENODE = "namenode-killed"


def _warm(job: DrillJob, name: str) -> list[str]:
    """Contend with a warm standby."""
    command = HYBRID.contend(job, name)
    return [*command[: command.index("--")], "--standby", "warm", *command[command.index("--") :], "--warm"]


def drills() -> list[Drill]:
    """Return the drills of one round."""
    warm = [
        replace(DRILLS[name], setup=replace(DRILLS[name].setup, contend=_warm)) for name in ("hang-driver", "hang-jvm")
    ]
    return [*warm, DRILLS["hang-batch"], replace(DRILLS[NAMENODE], setup=REGIONS)]


@dataclass(frozen=True, slots=True)
class Round:
    """One drill.

    Attributes:
        drill: its name.
        passed: whether all its conditions were met.
        after: seconds from the end of the time-out, or from the kill, until the next batch.
        changes: further leaders.
        wrong: words lost or counted twice.
        failed: the conditions that were not met.
    """

    drill: str
    passed: bool
    after: float
    changes: float
    wrong: float
    failed: str


def run(context: Context) -> Result:
    """Run the benchmark.

    Raises:
        DrillError: the servers did not start.
    """
    environment = SandboxEnvironment(context.folder / "sandbox")
    rounds = []
    try:
        for number in range(context.repeats(quick=1)):
            for outcome, _ in run_series(drills(), environment, [HYBRID], context.folder / "drills", lambda _: None):
                rounds.append(_measured(outcome))
                context.say(f"Round {number + 1}: {rounds[-1]}")
    finally:
        environment.down()
    return summarise(rounds)


def _measured(outcome: Outcome) -> Round:
    measures = outcome.measures
    timeouts = {"hang-driver": _timeout("hang-driver"), "hang-jvm": _timeout("hang-jvm"), "hang-batch": BATCH_TIMEOUT_S}
    timeout = timeouts.get(outcome.drill, 0.0)
    name = "takeover_seconds" if outcome.drill == "hang-batch" else "first_batch_seconds"
    if outcome.drill == NAMENODE:
        name = "longest_without_batch_seconds"
    failed = "; ".join(f"{each.name}: {each.detail}" for each in outcome.checks if not each.passed) or outcome.reason
    return Round(
        outcome.drill,
        outcome.status == "passed",
        measures.get(name, nan) - timeout,
        measures.get("leader_changes", nan),
        measures.get("words_wrong", nan),
        failed,
    )


def _timeout(drill: str) -> float:
    return float(DRILLS[drill].setup.settings["heartbeat_timeout"])


def summarise(rounds: Sequence[Round]) -> Result:
    """Return the result."""
    found = {each.drill: [other for other in rounds if other.drill == each.drill] for each in rounds}
    middles = {name: median(each.after for each in of) for name, of in found.items()}
    targets = [
        Target(f"{name}: next batch after the time-out", AFTER_TIMEOUT_S, middle, "s", True)
        for name, middle in middles.items()
        if name != NAMENODE
    ]
    moved = max((each.changes for each in found.get(NAMENODE, [])), default=nan)
    wrong = max((each.wrong for each in rounds), default=nan)
    return Result(
        name=NAME,
        title=TITLE,
        columns=("what", "times", "passed", "next batch (s)", "fastest (s)", "slowest (s)", "leaders", "words wrong"),
        rows=tuple(
            (
                name,
                len(of),
                sum(each.passed for each in of),
                middles[name],
                min(each.after for each in of),
                max(each.after for each in of),
                max(each.changes for each in of),
                max(each.wrong for each in of),
            )
            for name, of in found.items()
        ),
        targets=(
            *targets,
            Target("NameNode killed, usual patience: further leaders", 0.0, moved, "", True),
            Target("words lost or counted twice in any round", 0.0, wrong, "", True),
        ),
        notes=(
            "Medians. Each round is a drill with all its conditions; one in which a condition failed counts as well.",
            "next batch: from the end of the time-out; of the NameNode, the longest time without a batch of any query.",
            "Driver and JVM are frozen by SIGSTOP, and the standby is warm; the batch hangs in a task of Spark.",
            "The NameNode is replaced 3 s after its kill. Queries have Hadoop's usual retries, and restart in place.",
        ),
        pictures=(
            Picture(
                "next",
                "Until the next batch",
                dots("Until the next batch", "s", {name: [each.after for each in of] for name, of in found.items()}),
            ),
        ),
        raw={"rounds": [asdict(each) for each in rounds]},
    )
