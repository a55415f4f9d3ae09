"""Benchmark of drivers and batches that hang, and of a NameNode that is killed: until the next batch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import nan
from statistics import median

from benchmarks.context import Context
from benchmarks.drawing import dotted
from benchmarks.result import Result, at_least, at_most, table
from benchmarks.spark.sidecars import WARM
from ha.drill.asking import STOP_GRACE
from ha.drill.catalogue import DRILLS
from ha.drill.catalogue.failing_queries import BATCH_TIMEOUT_S
from ha.drill.drill import Drill, Expected
from ha.drill.fixture import Fixture, Setup
from ha.drill.ha_provider import HYBRID, WORD_REGIONS, DrillJob
from ha.drill.outcome import DrillOutcome
from ha.drill.runner import run_series
from ha.drill.sandbox_environment import SandboxEnvironment
from store.clock import now

TITLE = "Drivers and batches that hang, and a NameNode that dies: until the next batch"

AFTER_TIMEOUT_S = 5.0
UNWATCHED_S = 60.0
NAMENODE, UNWATCHED = "namenode-killed", "hang-driver-unwatched"


def _warm(job: DrillJob, name: str) -> list[str]:
    command = HYBRID.contend(job, name)
    return [*command[: command.index("--")], "--standby", "warm", *command[command.index("--") :], "--warm"]


def _once_warm(drill: Drill) -> Drill:
    """Return the drill with standbys that are warm before anything is broken."""

    def run(fixture: Fixture) -> None:
        standby = fixture.standby
        fixture.wait_for("a warm standby", lambda: WARM.search(standby.log()) is not None)
        drill.action(fixture)

    return replace(drill, action=run, setup=replace(drill.setup, contend=_warm))


def _unwatched(fixture: Fixture) -> None:
    leader, epoch = fixture.leader, fixture.epoch
    what = f"the driver of {leader.name} is frozen, and nobody watches it"
    fixture.fault_at_once(what, lambda: leader.strike("freeze", "driver"))
    began = now()
    fixture.run_for(UNWATCHED_S)
    done = len(fixture.observer.completed(began + AFTER_TIMEOUT_S))
    same = fixture.epoch == epoch
    detail = f"{done} batches; {'the same' if same else 'another'} leader"
    fixture.check("unwatched, nothing happens", same and not done, detail)
    fixture.lose(leader, leader.kill)  # a person has noticed
    fixture.await_leader(epoch)
    fixture.contend(leader.name)
    fixture.await_batches()


def drills() -> list[Drill]:
    warm = [_once_warm(DRILLS[name]) for name in ("hang-driver", "hang-jvm")]
    patient = replace(DRILLS[NAMENODE], setup=Setup(settings=STOP_GRACE, program=WORD_REGIONS))
    return [*warm, DRILLS["hang-batch"], patient]


def unwatched() -> Drill:
    """Return the drill that shows what happens without a heartbeat."""
    return Drill(
        UNWATCHED,
        f"the driver is frozen without a heartbeat to tell: nobody takes over within {UNWATCHED_S:g} s",
        "hangs",
        _unwatched,
        Expected((1, 1)),
        setup=Setup(settings={"heartbeat_timeout": 0.0}),
    )


@dataclass(frozen=True, slots=True)
class Round:
    """One drill."""

    drill: str  # its name
    passed: bool  # whether all its conditions were met
    after: float  # seconds from the end of the time-out, or from the kill, until the next batch
    changes: float  # further leaders
    wrong: float  # words lost or counted twice
    failed: str  # the conditions that were not met


def run(context: Context) -> Result:
    environment = SandboxEnvironment(context.folder / "sandbox")
    rounds = []
    try:
        for number in range(context.repeats(quick=1)):
            once = [] if number else [unwatched()]
            places = (environment, [HYBRID], context.folder / "drills")
            for outcome, _ in run_series([*drills(), *once], *places, lambda _: None):
                rounds.append(_measured(outcome))
                context.say(f"Round {number + 1}: {rounds[-1]}")
    finally:
        environment.down()
    return summarise(rounds)


def _measured(outcome: DrillOutcome) -> Round:
    measures = outcome.measures
    timeouts = {name: DRILLS[name].setup.settings["heartbeat_timeout"] for name in ("hang-driver", "hang-jvm")}
    timeout = {**timeouts, "hang-batch": BATCH_TIMEOUT_S}.get(outcome.drill, 0.0)
    name = "takeover_seconds" if outcome.drill == "hang-batch" else "first_batch_seconds"
    if outcome.drill in (NAMENODE, UNWATCHED):
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


def summarise(rounds: Sequence[Round]) -> Result:
    found = {each.drill: [other for other in rounds if other.drill == each.drill] for each in rounds}
    middles = {name: median(each.after for each in of) for name, of in found.items()}
    targets = [
        at_most(f"{name}: next batch after the time-out", AFTER_TIMEOUT_S, middle, "s")
        for name, middle in middles.items()
        if name not in (NAMENODE, UNWATCHED)
    ]
    never = [each.after for each in found.get(UNWATCHED, []) if each.passed]
    moved = max((each.changes for each in found.get(NAMENODE, [])), default=nan)
    wrong = max((each.wrong for each in rounds), default=nan)
    series = {name: [each.after for each in of] for name, of in found.items()}
    return Result(
        *table(
            {
                "what": str,
                "times": lambda name: len(found[name]),
                "passed": lambda name: sum(each.passed for each in found[name]),
                "next batch (s)": middles.__getitem__,
                "fastest (s)": lambda name: min(each.after for each in found[name]),
                "slowest (s)": lambda name: max(each.after for each in found[name]),
                "leaders": lambda name: max(each.changes for each in found[name]),
                "words wrong": lambda name: max(each.wrong for each in found[name]),
            },
            found,
        ),
        targets=(
            *targets,
            at_least("without the heartbeat: no next batch for", UNWATCHED_S, min(never, default=nan), "s"),
            at_most("NameNode killed, usual patience: further leaders", 0.0, moved),
            at_most("words lost or counted twice in any round", 0.0, wrong),
        ),
        notes=(
            "next batch: from the end of the time-out. With the NameNode, and unwatched: the longest time without one.",
            f"Without a heartbeat nothing happens until a person kills the leader, here after {UNWATCHED_S:g} s.",
            "Driver and JVM are frozen by SIGSTOP, and the standby is warm; the batch hangs in a task of Spark.",
            "The NameNode is replaced 3 s after its kill. Queries have Hadoop's usual retries, and restart in place.",
        ),
        pictures=(dotted("next", "Until the next batch", "s", series),),
        raw={"rounds": [asdict(each) for each in rounds]},
    )
