"""Benchmark of Spark failovers: from SIGKILL of a driver to its successor's first commit, by the kind of standby."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from math import nan
from statistics import median
from threading import Event

from benchmarks.context import Context, servers
from benchmarks.drawing import dotted
from benchmarks.result import Result, Target, at_least, at_most, table
from benchmarks.spark.sidecars import NotSo, Sidecar, Sidecars
from benchmarks.spark.words import Words
from ha.sandbox import Sandbox
from ha.sidecar.command.class_data import ClassData
from store.clock import now

TITLE = "SIGKILL of a Spark driver until its successor commits a batch, by the kind of standby"

JOB = "failover"
DRIVER, ALL = "driver", "all"
WARM, COLD, CLASS_DATA = "warm", "cold", "cold with class data"
STANDBYS = (WARM, COLD, CLASS_DATA)
WARM_WITHIN = {DRIVER: 1.2, ALL: 1.0}
FASTER, CLASS_DATA_FASTER = 6.0, 1.5

BEFORE = 2  # Batches that the leader commits before the kill, so that it and its JVM are warm
SETTLED = 10.0
"""Seconds for which a standby has stood by: its JVM is quiet by then. Idle Python workers live for a minute."""


@dataclass(frozen=True, slots=True)
class Failover:
    """One failover."""

    killed: str  # ``driver`` or ``all``
    standby: str  # its kind, one of ``STANDBYS``
    granted: float  # seconds from the kill until the standby was granted the leadership
    committed: float  # seconds from the kill until its first batch was committed


def run(context: Context) -> Result:
    with servers(context) as sandbox:
        return summarise(measure(context, sandbox))


def measure(context: Context, sandbox: Sandbox) -> list[Failover]:
    """Kill the leaders of one job, one after the other; each successor is the next victim."""
    found = sandbox.environment()
    words = Words(found["HA_FILES"], JOB)
    sidecars = Sidecars(words, environment(sandbox), context.folder)
    failovers = []
    class_data = ClassData([sys.executable], found["HA_FILES"], environment(sandbox))
    context.say("Making the archive of Spark's classes, if there is none")
    class_data.find()
    if class_data.archive is None:
        raise NotSo("There is no archive of Spark's classes: see the log.")
    with ExitStack() as stack:
        stack.callback(words.close)
        stack.callback(sidecars.end)
        stack.enter_context(words.feeding())
        leader = sidecars.start(warm=False)
        sidecars.until(words.commits, "the first leader commits a batch")
        for number in range(context.repeats(quick=1)):
            for standby in STANDBYS:
                for killed in (DRIVER, ALL):
                    each, leader = _once(words, sidecars, leader, killed, standby)
                    failovers.append(each)
                    took = f"granted after {each.granted:.2f} s, committed after {each.committed:.2f} s"
                    context.say(f"Round {number + 1} of {context.repeats(quick=1)}: {killed}, {standby}: {took}")
    return failovers


def environment(sandbox: Sandbox) -> dict[str, str]:
    quick = {"HA_SNAPSHOTS": "off", "HA_HAND_OVER": "20"}
    return {**os.environ, **sandbox.environment(), **quick}


def _once(words: Words, sidecars: Sidecars, leader: Sidecar, killed: str, standby: str) -> tuple[Failover, Sidecar]:
    successor = sidecars.start(warm=standby == WARM, class_data=standby == CLASS_DATA)
    sidecars.until(lambda: successor.ready, "the standby is ready")
    Event().wait(SETTLED)
    before = words.newest()
    sidecars.until(lambda: words.newest() >= before + BEFORE, "the leader commits batches")
    wall, at = time.time(), now()
    if killed == DRIVER:
        if not leader.strike("kill", DRIVER):
            raise NotSo(f"{leader.name} has no driver to be killed: see its log.")
    else:
        sidecars.drop(leader)
    granted = sidecars.until(lambda: next(iter(successor.grants), None), "the standby is granted the job")
    if killed == DRIVER:
        sidecars.drop(leader)  # on its own host it would warm up again; here it would use the successor's processor
    granted_at = wall + granted.at - at
    first = sidecars.until(
        lambda: next((c for c in words.commits() if c.epoch >= granted.epoch and c.at > granted_at), None),
        "the successor commits a batch",
    )
    return Failover(killed, standby, granted.at - at, first.at - wall), successor


def _targets(killed: str, middles: Mapping[tuple[str, str], float]) -> tuple[Target, ...]:
    """Return the targets of one kind of kill, by the medians of each kind of kill and standby."""
    cold, archived = middles[killed, COLD], middles[killed, CLASS_DATA]
    than = f"{killed} killed: ratio of a cold standby's time"
    return (
        at_most(f"{killed} killed, standby warm: first commit", WARM_WITHIN[killed], middles[killed, WARM], "s"),
        at_least(f"{than} to a warm one's", FASTER, cold / middles[killed, WARM], "x"),
        at_least(f"{than} without class data to that with it", CLASS_DATA_FASTER, cold / archived, "x"),
    )


def summarise(failovers: Sequence[Failover]) -> Result:
    cases = {
        (killed, standby): [each for each in failovers if (each.killed, each.standby) == (killed, standby)]
        for killed in (DRIVER, ALL)
        for standby in STANDBYS
    }
    middles = {case: median(each.committed for each in found) if found else nan for case, found in cases.items()}
    names = {case: f"{case[0]} killed, standby {case[1]}" for case in cases}
    series = {names[case]: [each.committed for each in found] for case, found in cases.items()}
    return Result(
        *table(
            {
                "what": names.__getitem__,
                "times": lambda case: len(cases[case]),
                "granted (s)": lambda case: median(each.granted for each in cases[case]),
                "first commit (s)": middles.__getitem__,
                "fastest (s)": lambda case: min(each.committed for each in cases[case]),
                "slowest (s)": lambda case: max(each.committed for each in cases[case]),
            },
            [case for case, found in cases.items() if found],
        ),
        targets=tuple(each for killed in (DRIVER, ALL) for each in _targets(killed, middles)),
        notes=(
            "The query counts words and has a Python function: one file a batch, the next at once; state in HDFS.",
            "granted: until the standby's sidecar knows that it leads; the rest is the work of Spark and the program.",
            f"A standby has been ready for {SETTLED:g} s: it watches the leader, and its Python workers are alive.",
        ),
        pictures=(dotted("commits", "Until the successor commits its first batch", "s", series, log=True),),
        raw={"failovers": [asdict(each) for each in failovers]},
    )
